//! Mailgun: an HMAC over a timestamp and a token ("Securing webhooks", documentation.mailgun.com).
//!
//! The event itself is not signed. Whoever has captured one request can put its timestamp, token
//! and signature beside any event, so the tolerance is all that limits this.

use std::time::Duration;

use super::encoding::Encoding;
use super::keys::{Algorithm, Hash, SecretForm};
use super::part::{Item, Part, Selector, TimestampSelector};
use super::prefix::Prefix;
use super::scheme::{Detached, Scheme, SignatureAt};
use super::timestamp_format::TimestampFormat;

/// The scheme as a table would describe it. `before` is where timestamp, token and signature stand:
/// Mailgun's newer webhooks are JSON, its older ones and received mail are forms.
pub(super) fn scheme(before: &str, tolerance: Option<Duration>) -> Option<Scheme> {
    let at = |name: &str| Selector::read(&format!("{before}{name}"));
    let timestamp = at("timestamp")?;
    let token = at("token")?;
    Some(Scheme::Detached(Detached {
        algorithm: Algorithm::Hmac(Hash::Sha256),
        at: SignatureAt::Value(at("signature")?),
        prefix: Prefix::default(),
        separators: Vec::new(),
        repeated: false,
        encoding: Encoding::Hex,
        signed: vec![Item::One(Part::Timestamp), Item::One(Part::Value(token))],
        document: None,
        json_body: false,
        timestamp: Some(TimestampSelector::Value(timestamp)),
        timestamp_format: TimestampFormat::Seconds,
        tolerance,
        secret: SecretForm::Text,
    }))
}
