//! Adyen's standard webhooks: the item of the body carries a signature over eight of its members.
//!
//! The signature covers an item, not the request, so a request with the item twice, or with the
//! items of two requests, would be as valid and another one. JSON webhooks hold exactly one item
//! ("Webhook types", docs.adyen.com), so more are refused. The eight values are joined with `:`
//! and nothing is escaped ("Verify HMAC signatures", docs.adyen.com): a `:` within one of them could
//! be moved to its neighbour. Only the merchant's own reference may hold any, so that the text can
//! be divided in one way only.

use std::borrow::Cow;

use super::encoding::Encoding;
use super::keys::{Hash, Keyring, Method, Numbered, SecretForm};
use super::verdict::{Place, Reason, Refused};
use super::{SecretError, Signed};
use crate::json::{self, Found, Pointer, Scalar};

/// Checks `additionalData.hmacSignature` of the item.
#[derive(Debug)]
pub(super) struct Check {
    keys: Keyring,
    items: Pointer,
    signature: Pointer,
    members: Vec<Member>,
}

/// A member that is signed.
#[derive(Debug)]
struct Member {
    at: Pointer,
    kind: Kind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// A part of the key: a text, so that `true` and `"true"` are not two keys of one signature.
    Key,
    /// The merchant's own text.
    Reference,
    Other,
}

const ITEMS: &str = "notificationItems";
const ITEM: &str = "NotificationRequestItem";

impl Check {
    pub(super) fn new(secrets: &[Numbered<'_>]) -> Result<Self, SecretError> {
        let keys = Keyring::new(Method::Hmac(Hash::Sha256), SecretForm::Hex, secrets)?;
        let at = |names: &[&str]| Pointer::along(&[&[ITEMS, "0", ITEM], names].concat());
        let member = |kind, names: &[&str]| Member { at: at(names), kind };
        Ok(Self {
            keys,
            items: Pointer::of_each(ITEMS),
            signature: at(&["additionalData", "hmacSignature"]),
            members: vec![
                member(Kind::Key, &["pspReference"]),
                member(Kind::Other, &["originalReference"]),
                member(Kind::Key, &["merchantAccountCode"]),
                member(Kind::Reference, &["merchantReference"]),
                member(Kind::Other, &["amount", "value"]),
                member(Kind::Other, &["amount", "currency"]),
                member(Kind::Key, &["eventCode"]),
                member(Kind::Key, &["success"]),
            ],
        })
    }

    pub(super) fn verify(&self, signed: &Signed<'_>) -> Result<usize, Refused> {
        let place = Place::Member(self.signature.to_string());
        match json::find(signed.body, &self.items) {
            Found::Values(items) if items.len() == 1 => {}
            // An object has no items, whatever its members are named.
            Found::Absent => return Err(Refused::Missing(place)),
            Found::NotJson => return Err(Reason::Body("JSON in UTF-8").into()),
            Found::Values(_) | Found::InSomeItems | Found::Ambiguous | Found::TooMany => {
                return Err(Reason::Body("a notification with exactly one item").into());
            }
        }
        let written = text(signed.body, &self.signature)?;
        let written = written.ok_or_else(|| Refused::Missing(place.clone()))?;
        if written.is_empty() {
            return Err(Refused::Empty(place));
        }
        let decoded = Encoding::Base64.decode(written.as_bytes());
        let signatures =
            [decoded.ok_or_else(|| Reason::Undecodable(place.clone(), Encoding::Base64))?];
        let values: Result<Vec<String>, Reason> =
            self.members.iter().map(|member| member.value(signed.body)).collect();
        let found = self.keys.find(&[values?.join(":").as_bytes()], &signatures);
        Ok(found.ok_or(Reason::Mismatch(place))?)
    }
}

impl Member {
    /// What is missing is empty.
    fn value(&self, body: &[u8]) -> Result<String, Reason> {
        let place = || Place::Member(self.at.to_string());
        let value = match scalar(body, &self.at)? {
            None | Some(Scalar::Null) => String::new(),
            Some(Scalar::Text(text)) => text.into_owned(),
            Some(Scalar::Literal(text)) if self.kind != Kind::Key => text.to_owned(),
            Some(Scalar::Literal(_) | Scalar::Composite | Scalar::NotText) => {
                return Err(Reason::Unreadable(place()));
            }
        };
        if self.kind != Kind::Reference && value.contains(':') {
            return Err(Reason::Ambiguous(place(), ':'));
        }
        Ok(value)
    }
}

/// A text, be it an empty one.
fn text<'b>(body: &'b [u8], at: &Pointer) -> Result<Option<Cow<'b, str>>, Reason> {
    match scalar(body, at)? {
        None | Some(Scalar::Null) => Ok(None),
        Some(Scalar::Text(text)) => Ok(Some(text)),
        Some(Scalar::Literal(_) | Scalar::Composite | Scalar::NotText) => {
            Err(Reason::Unreadable(Place::Member(at.to_string())))
        }
    }
}

fn scalar<'b>(body: &'b [u8], at: &Pointer) -> Result<Option<Scalar<'b>>, Reason> {
    match json::find(body, at) {
        Found::Values(values) => Ok(values.first().map(|raw| json::scalar(raw))),
        Found::Absent => Ok(None),
        Found::NotJson => Err(Reason::Body("JSON in UTF-8")),
        Found::InSomeItems | Found::Ambiguous | Found::TooMany => {
            Err(Reason::Repeated(Place::Member(at.to_string())))
        }
    }
}
