//! Amazon SNS: RSA over members of the body, checked with a certificate from Amazon
//! ("Verifying the signatures of Amazon SNS messages", docs.aws.amazon.com).
//!
//! SNS signs for everybody who has a topic, with the same certificate. So the secrets are the ARNs
//! of the topics that may send; without them anybody's own topic could send events.

use std::borrow::Cow;
use std::time::Duration;

use http::HeaderName;

use super::certificates::{Certificates, RsaDigest, SNS};
use super::encoding::Encoding;
use super::header::single;
use super::keys::{NumberedSecret, SecretError};
use super::part::Selector;
use super::profile::Profile;
use super::request::RequestReader;
use super::timestamp_format::TimestampFormat;
use super::verdict::{InvalidReason, Location, SignatureError};
use crate::json::Pointer;
use crate::provider::ReceivedRequest;
use crate::secret::Secret;

/// Checks the member `Signature` of the body.
#[derive(Debug)]
pub(super) struct SnsVerifier {
    /// The ARNs of the topics that may send, each with its index in the configuration.
    topics: Vec<(usize, Secret)>,
    tolerance: Option<Duration>,
}

/// The message in the body.
struct Message<'a>(RequestReader<'a>);

pub(super) const PROFILE: Profile = Profile {
    secret: "the ARN of the topic",
    header_prefixes: &["x-amz-sns-"],
    has_timestamp: true,
    is_fetched: true,
    ..Profile::OF_BODY
};

impl SnsVerifier {
    pub(super) fn new(
        secrets: &[NumberedSecret<'_>],
        tolerance: Option<Duration>,
    ) -> Result<Self, SecretError> {
        let topic = |numbered: &NumberedSecret<'_>| {
            let arn = numbered.secret.reveal();
            let error = SecretError {
                index: numbered.index,
                expected: "the ARN of a topic, `arn:aws:sns:REGION:ACCOUNT:NAME`",
            };
            // `arn:PARTITION:sns:REGION:ACCOUNT:NAME`, where China and the US government have
            // partitions of their own.
            let is_topic = arn.starts_with("arn:") && arn.split(':').nth(2) == Some("sns");
            is_topic.then(|| (numbered.index, numbered.secret.clone())).ok_or(error)
        };
        let topics = secrets.iter().map(topic).collect::<Result<_, _>>()?;
        Ok(Self { topics, tolerance })
    }

    pub(super) async fn verify(
        &self,
        received: &ReceivedRequest<'_>,
        certificates: &Certificates,
    ) -> Result<usize, SignatureError> {
        let location = member("Signature");
        // With raw delivery the body is the message alone, and nothing is signed.
        if single(received.headers, &HeaderName::from_static("x-amz-sns-rawdelivery"))?.is_some() {
            return Err(SignatureError::Missing(location));
        }
        let message = Message(RequestReader::new(received, None)?);
        let written = message.optional("Signature")?;
        let own = Selector::Member(Pointer::along(&["Signature"]));
        let without = || SignatureError::without(location.clone(), message.0.has(&own));
        let written = written.ok_or_else(without)?;
        let decoded = Encoding::Base64.decode(written.as_bytes());
        let signature = decoded
            .ok_or_else(|| InvalidReason::Undecodable(location.clone(), Encoding::Base64))?;
        message.require_same_headers()?;
        let method = message.method()?;
        let text = message.signed_text()?;
        let own = message.text("TopicArn")?;
        let topic = self.topics.iter().find(|(_, arn)| arn.is(own.as_bytes()));
        let (secret, _) = topic.ok_or_else(|| InvalidReason::NotOurs(member("TopicArn")))?;
        // Fetched last: a request that fails a cheaper check causes no fetch.
        let url = message.text("SigningCertURL")?;
        let certificate = certificates.get(&SNS, url.as_bytes(), received.now).await?;
        if !certificate.made(method, text.as_bytes(), &signature) {
            return Err(InvalidReason::Mismatch(location).into());
        }
        // Only after a right signature: anybody can name a URL.
        certificates.confirm(url.as_bytes());
        let timestamp = message.text("Timestamp")?;
        let format = TimestampFormat::Rfc3339;
        let location = member("Timestamp");
        format.check(timestamp.as_bytes(), &location, received, self.tolerance)?;
        Ok(*secret)
    }
}

impl Message<'_> {
    /// A member that has to be a text where it is present.
    fn optional(&self, name: &str) -> Result<Option<String>, InvalidReason> {
        let source = Selector::Member(Pointer::along(&[name]));
        let text = self.0.text(&source)?.map(Cow::into_owned);
        text.map(|text| {
            String::from_utf8(text).map_err(|_| InvalidReason::Unreadable(member(name)))
        })
        .transpose()
    }

    fn text(&self, name: &str) -> Result<String, InvalidReason> {
        self.optional(name)?.ok_or_else(|| InvalidReason::Absent(member(name)))
    }

    fn method(&self) -> Result<RsaDigest, InvalidReason> {
        match self.optional("SignatureVersion")?.as_deref() {
            Some("1") => Ok(RsaDigest::Sha1),
            Some("2") => Ok(RsaDigest::Sha256),
            Some(_) | None => {
                Err(InvalidReason::Unknown(member("SignatureVersion"), "`1` and `2`"))
            }
        }
    }

    /// The signed text: names and values, each followed by a line end, sorted by name. The type
    /// says which members are signed.
    ///
    /// Only the member `Message` may hold line ends. A line end in another value could be taken for
    /// the one that ends it: the lines of `Subject` could be moved into `MessageId`, and one
    /// captured signature would fit a request with another id.
    fn signed_text(&self) -> Result<String, InvalidReason> {
        let names: &[&str] = match self.text("Type")?.as_str() {
            "Notification" => &["Message", "MessageId", "Subject", "Timestamp", "TopicArn", "Type"],
            "SubscriptionConfirmation" | "UnsubscribeConfirmation" => {
                &["Message", "MessageId", "SubscribeURL", "Timestamp", "Token", "TopicArn", "Type"]
            }
            _ => {
                return Err(InvalidReason::Unknown(member("Type"), "the types of messages of SNS"));
            }
        };
        let mut text = String::new();
        for name in names {
            let value = match *name {
                "Subject" => self.optional(name)?,
                "Message" => Some(self.optional(name)?.unwrap_or_default()),
                _ => Some(self.text(name)?),
            };
            if *name != "Message" && value.as_ref().is_some_and(|value| value.contains('\n')) {
                return Err(InvalidReason::Unreadable(member(name)));
            }
            for line in value.iter().flat_map(|value| [*name, value.as_str()]) {
                text.push_str(line);
                text.push('\n');
            }
        }
        Ok(text)
    }

    /// Refuses headers that differ from the signed members. SNS repeats the members in headers,
    /// which are not signed, and a key or a handshake may be read from them.
    fn require_same_headers(&self) -> Result<(), InvalidReason> {
        let pairs = [
            ("x-amz-sns-message-type", "Type"),
            ("x-amz-sns-message-id", "MessageId"),
            ("x-amz-sns-topic-arn", "TopicArn"),
        ];
        for (header, name) in pairs {
            let header = HeaderName::from_static(header);
            let found = single(self.0.received.headers, &header)?;
            if found
                .is_some_and(|found| !self.text(name).is_ok_and(|value| value.as_bytes() == found))
            {
                return Err(InvalidReason::Differs(Location::Header(header), member(name)));
            }
        }
        Ok(())
    }
}

fn member(name: &str) -> Location {
    Location::Member(format!("/{name}"))
}
