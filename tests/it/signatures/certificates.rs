//! Senders that sign with a certificate: PayPal and SNS.

use onceward::clock::Clock;
use onceward::operation::Timestamp;
use onceward::provider::signature::Certificates;
use serde::Deserialize;
use std::collections::BTreeMap;

use super::{CLAIMS, verifying};
use crate::support::{Event, Inside, Receiver};

#[derive(Deserialize)]
pub(super) struct Signed {
    certificate_url: String,
    pub(super) certificate_pem: String,
    #[serde(alias = "webhook_id", alias = "topic")]
    pub(super) secret: String,
    messages: Vec<Message>,
}

#[derive(Deserialize)]
struct Message {
    id: String,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    body: String,
}

impl Signed {
    fn paypal() -> Self {
        serde_json::from_str(include_str!("../../fixtures/paypal_messages.json")).unwrap()
    }

    pub(super) fn sns() -> Self {
        serde_json::from_str(include_str!("../../fixtures/sns_messages.json")).unwrap()
    }

    /// A message, with the headers that it is sent with.
    fn event(&self, id: &str) -> Event {
        let message = self.messages.iter().find(|message| message.id == id).unwrap();
        let event = Event::bytes(message.body.as_str());
        message.headers.iter().fold(event, |event, (name, value)| event.header(name, value))
    }

    /// A message of SNS to a subscription.
    pub(super) fn to_subscription(&self, id: &str, subscription: &str) -> Event {
        let event = self.event(id);
        let body: serde_json::Value = serde_json::from_slice(&event.body).unwrap();
        let text = |name: &str| body[name].as_str().unwrap().to_owned();
        let event = event.header("content-type", "text/plain; charset=UTF-8");
        let event = event.header("x-amz-sns-message-type", &text("Type"));
        let event = event.header("x-amz-sns-message-id", &text("MessageId"));
        let event = event.header("x-amz-sns-topic-arn", &text("TopicArn"));
        event.header("x-amz-sns-subscription-arn", subscription)
    }

    /// A proxy for which the certificate need not be fetched.
    fn proxy(&self, provider: &str, receiver: &Receiver) -> Inside {
        let toml = format!(
            "[store.memory]\n[routes.hooks]\npath = \"/hooks\"\nupstream = \"{}\"\n\
             provider = \"{provider}\"\nsecrets = [{{ env = \"THE_SECRET\" }}]\n\
             tolerance = \"3650d\"\n",
            receiver.url()
        );
        let clock = Clock::manual(Timestamp(1_767_225_600_000));
        let pem = self.certificate_pem.clone().into_bytes();
        let certificates =
            Certificates::with_trusted(clock.clone(), [(self.certificate_url.clone(), pem)]);
        Inside::with(&toml, &[("THE_SECRET", &self.secret)], clock, certificates.unwrap())
    }
}

/// The preset of PayPal: a resent event has a new transmission and a new signature.
#[tokio::test]
async fn paypal_sends_again_with_another_transmission() {
    let signed = Signed::paypal();
    let receiver = Receiver::that_answers(200, "ok").await;
    let proxy = signed.proxy("paypal", &receiver);
    proxy.sends(signed.event("event")).await.is_executed(200);
    proxy.sends(signed.event("retry")).await.is_replayed(200);
    proxy.sends(signed.event("sibling")).await.is_executed(200);
    receiver.was_called(2);
    assert_eq!(receiver.seen()[0].header("onceward-verified"), Some("paypal"));
    let claims = proxy.metric(CLAIMS);
    let signature = signed.event("sibling").value("paypal-transmission-sig");
    let of_the_sibling = signed.event("event").with("paypal-transmission-sig", &signature);
    proxy.sends(of_the_sibling).await.is_refused(401, "signature-invalid");
    for steered in [
        "https://evil.example.com/v1/notifications/certs/CERT-0123abcd",
        "https://api.paypal.com.evil.example/v1/notifications/certs/CERT-0123abcd",
        "http://api.paypal.com/v1/notifications/certs/CERT-0123abcd",
        "https://api.paypal.com@127.0.0.1/v1/notifications/certs/CERT-0123abcd",
    ] {
        let event = signed.event("event").with("paypal-cert-url", steered);
        proxy.sends(event).await.is_refused(401, "signature-invalid");
    }
    receiver.was_called(2);
    assert_eq!(proxy.metric(CLAIMS), claims);
}

/// The preset of SNS: the key is what is signed; the header of the subscription is not.
#[tokio::test]
async fn sns_sends_one_message_whatever_its_unsigned_headers_say() {
    let signed = Signed::sns();
    let receiver = Receiver::that_answers(200, "ok").await;
    let proxy = signed.proxy("sns", &receiver);
    let to = |id: &str, subscription: &str| signed.to_subscription(id, subscription);
    proxy.sends(to("notification-v1", "arn:s1")).await.is_executed(200);
    proxy.sends(to("notification-v1", "arn:s1")).await.is_replayed(200);
    proxy.sends(to("notification-v2", "arn:s1")).await.is_replayed(200);
    proxy.sends(to("notification-v1", "arn:s2")).await.is_replayed(200);
    receiver.was_called(1);
    assert_eq!(receiver.seen()[0].header("onceward-verified"), Some("sns"));
    let other = to("notification-v1", "arn:s1").with("x-amz-sns-message-id", "another");
    proxy.sends(other).await.is_refused(401, "signature-invalid");
    receiver.was_called(1);
}

/// The handshake of SNS: signed, and it has no key.
#[tokio::test]
async fn sns_asks_for_a_confirmation_as_often_as_it_likes() {
    let signed = Signed::sns();
    let receiver = Receiver::that_answers(200, "ok").await;
    let proxy = signed.proxy("sns", &receiver);
    for (number, id) in ["confirmation-v1", "confirmation-v1", "confirmation-v2"].iter().enumerate()
    {
        let event = signed.to_subscription(id, "arn:s1");
        proxy.sends(event.clone()).await.is_passed(200);
        let seen = receiver.seen().pop().unwrap();
        assert_eq!((seen.body, receiver.count()), (event.body, number + 1));
        assert_eq!(seen.headers.iter().filter(|(n, _)| n.starts_with("onceward-")).count(), 1);
    }
    let changed = signed.to_subscription("confirmation-v1", "arn:s1");
    let changed = changed.rewritten(|body| body["SubscribeURL"] = "https://evil.example".into());
    proxy.sends(changed).await.is_refused(401, "signature-invalid");
    // The header says that it is a handshake, and the signed body does not.
    let dressed = signed.to_subscription("notification-v1", "arn:s1");
    let dressed = dressed.with("x-amz-sns-message-type", "SubscriptionConfirmation");
    proxy.sends(dressed).await.is_refused(401, "signature-invalid");
    receiver.was_called(3);
    assert_eq!(proxy.metric(CLAIMS), 0.0);
}

/// A certificate that cannot be fetched proves nothing: the sender is to come back.
#[tokio::test]
async fn without_a_certificate_nothing_is_decided() {
    let signed = Signed::sns();
    let receiver = Receiver::that_answers(200, "ok").await;
    let onceward = verifying(&receiver, "sns", &signed.secret).start().await;
    // There is no such region, so there is no such host.
    let nowhere = "https://sns.no-where-9.amazonaws.com/SimpleNotificationService-0.pem";
    let event = signed.to_subscription("notification-v2", "arn:s1");
    let event = event.rewritten(|body| body["SigningCertURL"] = nowhere.into());
    for _ in 0..2 {
        let reply = onceward.sends(event.clone()).await;
        reply.is_refused(503, "signature-undecided").comes_back();
        assert_eq!(reply.header("www-authenticate"), None);
    }
    receiver.was_called(0);
    assert_eq!(onceward.metric(CLAIMS).await, 0.0);
}
