//! Messages of Amazon SNS, which are signed member by member.

use serde::Deserialize;

use super::{Request, SENDERS, valid};
use crate::clock::Clock;
use crate::provider::signature::{Certificates, InvalidReason, Location, SignatureError, Verifier};
use crate::secret::Secret;

#[derive(Deserialize)]
struct SnsFile {
    certificate_url: String,
    certificate_pem: String,
    topic: String,
    messages: Vec<SnsMessage>,
}

#[derive(Deserialize)]
struct SnsMessage {
    id: String,
    body: String,
}

fn sns() -> (SnsFile, Certificates) {
    let text = include_str!("../../../../tests/fixtures/sns_messages.json");
    let file: SnsFile = serde_json::from_str(text).unwrap();
    let pem = file.certificate_pem.clone().into_bytes();
    let trusted = [(file.certificate_url.clone(), pem)];
    (file, Certificates::with_trusted(Clock::system(), trusted).unwrap())
}

fn sns_verifier(topic: &str, certificates: &Certificates) -> Verifier {
    let secrets = [Secret::new(topic.to_owned())];
    Verifier::new(&SENDERS["sns"], &secrets, None, certificates).unwrap()
}

#[test]
fn messages_of_sns_are_valid_until_a_signed_member_is_changed() {
    let (file, certificates) = sns();
    let verifier = sns_verifier(&file.topic, &certificates);
    for SnsMessage { id, body } in &file.messages {
        let request = Request::new(body.as_str()).header("x-amz-sns-topic-arn", &file.topic);
        assert_eq!(request.verify(&verifier), valid(0), "{id}");
        for (from, to) in [
            ("\"Message\": \"", "\"Message\": \"x"),
            ("\"Timestamp\": \"2019", "\"Timestamp\": \"2020"),
            ("\"MessageId\": \"", "\"MessageId\": \"x"),
            ("\"SignatureVersion\": \"1\"", "\"SignatureVersion\": \"2\""),
            ("\"SignatureVersion\": \"2\"", "\"SignatureVersion\": \"1\""),
            ("\"Type\": \"Notification\"", "\"Type\": \"SubscriptionConfirmation\""),
            ("\"Type\": \"SubscriptionConfirmation\"", "\"Type\": \"Notification\""),
        ] {
            let changed = body.replace(from, to);
            let expect_valid = changed == *body;
            let result = Request::new(changed).verify(&verifier);
            assert_eq!(result.is_ok(), expect_valid, "{id} {from} {result:?}");
        }
    }
}

/// A line end within a value could be one between values: behind the id there would be room for the
/// subject and its name, and the signed text would be the same.
#[test]
fn only_the_message_of_sns_may_hold_line_ends() {
    let (file, certificates) = sns();
    let verifier = sns_verifier(&file.topic, &certificates);
    let mut moved = 0;
    for SnsMessage { id, body } in &file.messages {
        let mut message: serde_json::Value = serde_json::from_str(body).unwrap();
        let Some(subject) = message.as_object_mut().unwrap().remove("Subject") else { continue };
        let own = message["MessageId"].as_str().unwrap().to_owned();
        message["MessageId"] = format!("{own}\nSubject\n{}", subject.as_str().unwrap()).into();
        let unreadable = InvalidReason::Unreadable(Location::Member("/MessageId".to_owned()));
        let result = Request::new(message.to_string()).verify(&verifier);
        assert_eq!(result, Err(unreadable.into()), "{id}");
        moved += 1;
    }
    assert!(moved > 0, "some messages have a subject");
}

#[test]
fn a_topic_of_somebody_else_is_not_ours_although_sns_signed_it() {
    let (file, certificates) = sns();
    let verifier = sns_verifier("arn:aws:sns:us-east-2:210987654321:theirs", &certificates);
    let request = Request::new(file.messages[0].body.as_str());
    let expected = InvalidReason::NotOurs(Location::Member("/TopicArn".to_owned()));
    assert_eq!(request.verify(&verifier), Err(expected.into()));
}

#[test]
fn headers_of_sns_say_what_the_signed_body_says() {
    let (file, certificates) = sns();
    let verifier = sns_verifier(&file.topic, &certificates);
    for name in ["x-amz-sns-message-type", "x-amz-sns-message-id", "x-amz-sns-topic-arn"] {
        let request = Request::new(file.messages[0].body.as_str()).header(name, "other");
        let result = request.verify(&verifier);
        assert!(
            matches!(result, Err(SignatureError::Invalid(InvalidReason::Differs(..)))),
            "{result:?}"
        );
    }
    let raw = Request::new("bare").header("x-amz-sns-rawdelivery", "true");
    assert!(matches!(raw.verify(&verifier), Err(SignatureError::Missing(_))));
}

#[test]
fn a_certificate_from_elsewhere_is_never_asked_for() {
    let (file, certificates) = sns();
    let verifier = sns_verifier(&file.topic, &certificates);
    let elsewhere = "https://sns.us-east-2.amazonaws.com.evil.test/SimpleNotificationService-0.pem";
    let body = file.messages[0].body.replace(&file.certificate_url, elsewhere);
    // It does not wait for anything: `verify` asks only once.
    let result = Request::new(body).verify(&verifier);
    assert!(
        matches!(result, Err(SignatureError::Invalid(InvalidReason::Certificate(_)))),
        "{result:?}"
    );
}
