//! Mailgun: a signature over two values of the body, in two places.

use std::time::Duration;

use super::encoding::Encoding;
use super::keys::{Hash, Method, SecretForm};
use super::part::{Item, Part, Source, TimestampSource};
use super::prefix::Prefix;
use super::settings::{Detached, Scheme, SignatureAt};
use super::timestamp::TimestampFormat;

/// A timestamp and a token in the body, and a signature over the two: all that Mailgun signs
/// ("Securing webhooks", documentation.mailgun.com). Its newer webhooks are JSON; the older ones and
/// received mail are forms.
pub(super) fn scheme(before: &str, tolerance: Option<Duration>) -> Option<Scheme> {
    let at = |name: &str| Source::read(&format!("{before}{name}"));
    let timestamp = at("timestamp")?;
    let token = at("token")?;
    Some(Scheme::Detached(Detached {
        method: Method::Hmac(Hash::Sha256),
        at: SignatureAt::Value(at("signature")?),
        prefix: Prefix::default(),
        separators: Vec::new(),
        repeated: false,
        encoding: Encoding::Hex,
        signed: vec![Item::One(Part::Timestamp), Item::One(Part::Value(token))],
        document: None,
        json_body: false,
        timestamp: Some(TimestampSource::Value(timestamp)),
        timestamp_format: TimestampFormat::Seconds,
        tolerance,
        secret: SecretForm::Text,
    }))
}
