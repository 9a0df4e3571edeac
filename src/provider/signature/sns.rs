//! Amazon SNS: RSA over members of the body, with a certificate from Amazon.

use std::borrow::Cow;
use std::time::Duration;

use http::HeaderName;
use serde::Deserialize;

use super::certificates::{Certificates, Rsa, SNS};
use super::encoding::Encoding;
use super::header::single;
use super::keys::Numbered;
use super::timestamp::TimestampFormat;
use super::verdict::{Place, Reason, Refused, Verified};
use super::{SecretError, Signed};
use crate::secret::Secret;

/// Checks the member `Signature` of the body.
#[derive(Debug)]
pub(super) struct Check {
    /// The topics that may send. SNS signs for everybody who has a topic.
    topics: Vec<(usize, Secret)>,
    tolerance: Option<Duration>,
}

/// What is signed, and with what. A member that occurs twice is refused by serde.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Message<'a> {
    #[serde(borrow, rename = "Type")]
    kind: Cow<'a, str>,
    #[serde(borrow, rename = "MessageId")]
    id: Cow<'a, str>,
    #[serde(borrow)]
    topic_arn: Cow<'a, str>,
    #[serde(borrow, rename = "Message")]
    text: Cow<'a, str>,
    #[serde(borrow)]
    timestamp: Cow<'a, str>,
    #[serde(borrow)]
    subject: Option<Cow<'a, str>>,
    #[serde(borrow)]
    token: Option<Cow<'a, str>>,
    #[serde(borrow, rename = "SubscribeURL")]
    subscribe_url: Option<Cow<'a, str>>,
    #[serde(borrow)]
    signature_version: Option<Cow<'a, str>>,
    #[serde(borrow)]
    signature: Option<Cow<'a, str>>,
    #[serde(borrow, rename = "SigningCertURL")]
    certificate: Option<Cow<'a, str>>,
}

impl Check {
    pub(super) fn new(
        secrets: &[Numbered<'_>],
        tolerance: Option<Duration>,
    ) -> Result<Self, SecretError> {
        let topic = |numbered: &Numbered<'_>| {
            let arn = numbered.secret.reveal();
            let error = SecretError {
                index: numbered.index,
                expected: "the ARN of a topic, `arn:aws:sns:REGION:ACCOUNT:NAME`",
            };
            let is_topic = arn.starts_with("arn:") && arn.split(':').nth(2) == Some("sns");
            is_topic.then(|| (numbered.index, numbered.secret.clone())).ok_or(error)
        };
        let topics = secrets.iter().map(topic).collect::<Result<_, _>>()?;
        Ok(Self { topics, tolerance })
    }

    pub(super) async fn verify(
        &self,
        signed: &Signed<'_>,
        certificates: &Certificates,
    ) -> Result<Verified, Refused> {
        let place = member("/Signature");
        if single(signed.headers, &HeaderName::from_static("x-amz-sns-rawdelivery"))?.is_some() {
            return Err(Refused::Missing(place));
        }
        let message: Message<'_> = serde_json::from_slice(signed.body)
            .map_err(|_| Reason::Body("a message as SNS writes it"))?;
        let written = message.signature.as_ref().filter(|text| !text.is_empty());
        let written = written.ok_or_else(|| Refused::Missing(place.clone()))?;
        let decoded = Encoding::Base64.decode(written.as_bytes());
        let signature =
            decoded.ok_or_else(|| Reason::Undecodable(place.clone(), Encoding::Base64))?;
        message.require_same_headers(signed)?;
        let (method, text) = (message.method()?, message.signed_text()?);
        let topic = self.topics.iter().find(|(_, arn)| arn.is(message.topic_arn.as_bytes()));
        let (secret, _) = topic.ok_or_else(|| Reason::NotOurs(member("/TopicArn")))?;
        let url = message.certificate.as_ref();
        let url = url.ok_or_else(|| Reason::Absent(member("/SigningCertURL")))?;
        let certificate = certificates.get(&SNS, url.as_bytes(), signed.now).await?;
        if !certificate.made(method, text.as_bytes(), &signature) {
            return Err(Reason::Mismatch(place).into());
        }
        let (format, place) = (TimestampFormat::Rfc3339, member("/Timestamp"));
        format.check(message.timestamp.as_bytes(), &place, signed, self.tolerance)?;
        Ok(Verified { secret: *secret })
    }
}

impl Message<'_> {
    fn method(&self) -> Result<Rsa, Reason> {
        match self.signature_version.as_deref() {
            Some("1") => Ok(Rsa::Sha1),
            Some("2") => Ok(Rsa::Sha256),
            Some(_) | None => Err(Reason::Unknown(member("/SignatureVersion"), "`1` and `2`")),
        }
    }

    /// Names and values, each with a line end, sorted by name. Which they are depends on the type.
    fn signed_text(&self) -> Result<String, Reason> {
        let is_notification = match &*self.kind {
            "Notification" => true,
            "SubscriptionConfirmation" | "UnsubscribeConfirmation" => false,
            _ => return Err(Reason::Unknown(member("/Type"), "the types of messages of SNS")),
        };
        let absent = |pointer| Reason::Absent(member(pointer));
        let mut members: Vec<(&str, &str)> = vec![("Message", &self.text), ("MessageId", &self.id)];
        if is_notification {
            members.extend(self.subject.as_deref().map(|subject| ("Subject", subject)));
            members.push(("Timestamp", &self.timestamp));
        } else {
            let url = self.subscribe_url.as_deref().ok_or_else(|| absent("/SubscribeURL"))?;
            let token = self.token.as_deref().ok_or_else(|| absent("/Token"))?;
            members.extend([
                ("SubscribeURL", url),
                ("Timestamp", &self.timestamp),
                ("Token", token),
            ]);
        }
        members.extend([("TopicArn", &*self.topic_arn), ("Type", &*self.kind)]);
        Ok(members.into_iter().flat_map(|(name, value)| [name, "\n", value, "\n"]).collect())
    }

    /// Headers say the same as the body, and are not signed. Keys and handshakes are read from
    /// them.
    fn require_same_headers(&self, signed: &Signed<'_>) -> Result<(), Reason> {
        let pairs = [
            ("x-amz-sns-message-type", &self.kind, "/Type"),
            ("x-amz-sns-message-id", &self.id, "/MessageId"),
            ("x-amz-sns-topic-arn", &self.topic_arn, "/TopicArn"),
        ];
        for (name, value, pointer) in pairs {
            let name = HeaderName::from_static(name);
            let found = single(signed.headers, &name)?;
            if found.is_some_and(|found| found != value.as_bytes()) {
                return Err(Reason::Differs(Place::Header(name), member(pointer)));
            }
        }
        Ok(())
    }
}

fn member(pointer: &str) -> Place {
    Place::Member(pointer.to_owned())
}
