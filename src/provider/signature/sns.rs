//! Amazon SNS: RSA over members of the body, with a certificate from Amazon.

use std::borrow::Cow;
use std::time::Duration;

use http::HeaderName;

use super::certificates::{Certificates, Rsa, SNS};
use super::encoding::Encoding;
use super::header::single;
use super::keys::Numbered;
use super::part::Source;
use super::request::Request;
use super::timestamp::TimestampFormat;
use super::verdict::{Place, Reason, Refused};
use super::{SecretError, Signed};
use crate::json::Pointer;
use crate::secret::Secret;

/// Checks the member `Signature` of the body.
#[derive(Debug)]
pub(super) struct Check {
    /// The topics that may send. SNS signs for everybody who has a topic.
    topics: Vec<(usize, Secret)>,
    tolerance: Option<Duration>,
}

/// What a message says, and what is signed.
struct Message<'a>(Request<'a>);

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
    ) -> Result<usize, Refused> {
        let place = member("Signature");
        if single(signed.headers, &HeaderName::from_static("x-amz-sns-rawdelivery"))?.is_some() {
            return Err(Refused::Missing(place));
        }
        let message = Message(Request::new(signed, None)?);
        let written = message.optional("Signature")?;
        let own = Source::Member(Pointer::along(&["Signature"]));
        let without = || Refused::without(place.clone(), message.0.has(&own));
        let written = written.ok_or_else(without)?;
        let decoded = Encoding::Base64.decode(written.as_bytes());
        let signature =
            decoded.ok_or_else(|| Reason::Undecodable(place.clone(), Encoding::Base64))?;
        message.require_same_headers()?;
        let method = message.method()?;
        let text = message.signed_text()?;
        let own = message.text("TopicArn")?;
        let topic = self.topics.iter().find(|(_, arn)| arn.is(own.as_bytes()));
        let (secret, _) = topic.ok_or_else(|| Reason::NotOurs(member("TopicArn")))?;
        let url = message.text("SigningCertURL")?;
        let certificate = certificates.get(&SNS, url.as_bytes(), signed.now).await?;
        if !certificate.made(method, text.as_bytes(), &signature) {
            return Err(Reason::Mismatch(place).into());
        }
        certificates.confirm(url.as_bytes());
        let timestamp = message.text("Timestamp")?;
        let format = TimestampFormat::Rfc3339;
        let place = member("Timestamp");
        format.check(timestamp.as_bytes(), &place, signed, self.tolerance)?;
        Ok(*secret)
    }
}

impl Message<'_> {
    /// A member that has to be a text where it is there.
    fn optional(&self, name: &str) -> Result<Option<String>, Reason> {
        let source = Source::Member(Pointer::along(&[name]));
        let text = self.0.text(&source)?.map(Cow::into_owned);
        text.map(|text| String::from_utf8(text).map_err(|_| Reason::Unreadable(member(name))))
            .transpose()
    }

    fn text(&self, name: &str) -> Result<String, Reason> {
        self.optional(name)?.ok_or_else(|| Reason::Absent(member(name)))
    }

    fn method(&self) -> Result<Rsa, Reason> {
        match self.optional("SignatureVersion")?.as_deref() {
            Some("1") => Ok(Rsa::Sha1),
            Some("2") => Ok(Rsa::Sha256),
            Some(_) | None => Err(Reason::Unknown(member("SignatureVersion"), "`1` and `2`")),
        }
    }

    /// Names and values, each with a line end, sorted by name. Which they are depends on the type.
    ///
    /// Only the message may hold line ends. In another value they could be those between values: a
    /// subject and the line of its name would fit behind the id as a part of it.
    fn signed_text(&self) -> Result<String, Reason> {
        let names: &[&str] = match self.text("Type")?.as_str() {
            "Notification" => &["Message", "MessageId", "Subject", "Timestamp", "TopicArn", "Type"],
            "SubscriptionConfirmation" | "UnsubscribeConfirmation" => {
                &["Message", "MessageId", "SubscribeURL", "Timestamp", "Token", "TopicArn", "Type"]
            }
            _ => return Err(Reason::Unknown(member("Type"), "the types of messages of SNS")),
        };
        let mut text = String::new();
        for name in names {
            let value = match *name {
                "Subject" => self.optional(name)?,
                "Message" => Some(self.optional(name)?.unwrap_or_default()),
                _ => Some(self.text(name)?),
            };
            if *name != "Message" && value.as_ref().is_some_and(|value| value.contains('\n')) {
                return Err(Reason::Unreadable(member(name)));
            }
            for line in value.iter().flat_map(|value| [*name, value.as_str()]) {
                text.push_str(line);
                text.push('\n');
            }
        }
        Ok(text)
    }

    /// Headers say the same as the body, and are not signed. Keys and handshakes are read from
    /// them.
    fn require_same_headers(&self) -> Result<(), Reason> {
        let pairs = [
            ("x-amz-sns-message-type", "Type"),
            ("x-amz-sns-message-id", "MessageId"),
            ("x-amz-sns-topic-arn", "TopicArn"),
        ];
        for (header, name) in pairs {
            let header = HeaderName::from_static(header);
            let found = single(self.0.signed.headers, &header)?;
            if found
                .is_some_and(|found| !self.text(name).is_ok_and(|value| value.as_bytes() == found))
            {
                return Err(Reason::Differs(Place::Header(header), member(name)));
            }
        }
        Ok(())
    }
}

fn member(name: &str) -> Place {
    Place::Member(format!("/{name}"))
}
