//! Adyen's standard webhooks: the item in the body carries a signature over eight of its members.
//!
//! The signature covers an item and not the request. A request with the same item twice, or with
//! the items of two captured requests, would be valid and have a new key. JSON webhooks hold
//! exactly one item ("Webhook types", docs.adyen.com), so a request with more is refused.
//!
//! The eight values are joined with `:`, and nothing is escaped ("Verify HMAC signatures",
//! docs.adyen.com), so a `:` within one value could be moved to its neighbour. Only the merchant's
//! own reference may hold one, so that the text can be divided in one way only.

use std::borrow::Cow;

use super::encoding::Encoding;
use super::keys::{Algorithm, Hash, Keyring, NumberedSecret, SecretError, SecretForm};
use super::profile::{Profile, SignedValues};
use super::verdict::{InvalidReason, Location, SignatureError};
use crate::json::{self, Found, Pointer, Scalar};
use crate::provider::ReceivedRequest;

/// Checks `additionalData.hmacSignature` of the item.
#[derive(Debug)]
pub(super) struct AdyenVerifier {
    keys: Keyring,
    items: Pointer,
    signature: Pointer,
    members: Vec<SignedMember>,
}

/// A member that is signed.
#[derive(Debug)]
struct SignedMember {
    at: Pointer,
    kind: MemberKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum MemberKind {
    /// A part of the key. It has to be a JSON text: `true` and `"true"` have the same signature,
    /// and would be two keys.
    Key,
    /// The merchant's own text, which may hold a `:`.
    Reference,
    Other,
}

const ITEMS: &str = "notificationItems";
const ITEM: &str = "NotificationRequestItem";

pub(super) const PROFILE: Profile = Profile {
    secret: "the HMAC key in hexadecimal",
    covers_body: false,
    signed_values: SignedValues::None,
    ..Profile::OF_BODY
};

impl AdyenVerifier {
    pub(super) fn new(secrets: &[NumberedSecret<'_>]) -> Result<Self, SecretError> {
        let keys = Keyring::new(Algorithm::Hmac(Hash::Sha256), SecretForm::Hex, secrets)?;
        let at = |names: &[&str]| Pointer::along(&[&[ITEMS, "0", ITEM], names].concat());
        let member = |kind, names: &[&str]| SignedMember { at: at(names), kind };
        Ok(Self {
            keys,
            items: Pointer::of_each(ITEMS),
            signature: at(&["additionalData", "hmacSignature"]),
            members: vec![
                member(MemberKind::Key, &["pspReference"]),
                member(MemberKind::Other, &["originalReference"]),
                member(MemberKind::Key, &["merchantAccountCode"]),
                member(MemberKind::Reference, &["merchantReference"]),
                member(MemberKind::Other, &["amount", "value"]),
                member(MemberKind::Other, &["amount", "currency"]),
                member(MemberKind::Key, &["eventCode"]),
                member(MemberKind::Key, &["success"]),
            ],
        })
    }

    pub(super) fn verify(&self, received: &ReceivedRequest<'_>) -> Result<usize, SignatureError> {
        let location = Location::Member(self.signature.to_string());
        match json::find(received.body, &self.items) {
            Found::Values(items) if items.len() == 1 => {}
            // The items have to be an array. Other webhooks of Adyen have none, and another
            // signature.
            Found::Absent => return Err(SignatureError::Missing(location)),
            Found::NotJson => return Err(InvalidReason::Body("JSON in UTF-8").into()),
            Found::Values(_) | Found::InSomeItems | Found::Ambiguous | Found::TooMany => {
                return Err(InvalidReason::Body("a notification with exactly one item").into());
            }
        }
        // The member is looked up in the first item, which is the only one.
        let written = text(received.body, &self.signature)?;
        let written = written.ok_or_else(|| SignatureError::Missing(location.clone()))?;
        if written.is_empty() {
            return Err(SignatureError::Empty(location));
        }
        let decoded = Encoding::Base64.decode(written.as_bytes());
        let signatures = [decoded
            .ok_or_else(|| InvalidReason::Undecodable(location.clone(), Encoding::Base64))?];
        let values: Result<Vec<String>, InvalidReason> =
            self.members.iter().map(|member| member.value(received.body)).collect();
        let found = self.keys.find(&[values?.join(":").as_bytes()], &signatures);
        Ok(found.ok_or(InvalidReason::Mismatch(location))?)
    }
}

impl SignedMember {
    /// The value as it is signed. A missing member is signed as an empty text.
    fn value(&self, body: &[u8]) -> Result<String, InvalidReason> {
        let location = || Location::Member(self.at.to_string());
        let value = match scalar(body, &self.at)? {
            None | Some(Scalar::Null) => String::new(),
            Some(Scalar::Text(text)) => text.into_owned(),
            Some(Scalar::Literal(text)) if self.kind != MemberKind::Key => text.to_owned(),
            Some(Scalar::Literal(_) | Scalar::Composite | Scalar::NotText) => {
                return Err(InvalidReason::Unreadable(location()));
            }
        };
        if self.kind != MemberKind::Reference && value.contains(':') {
            return Err(InvalidReason::Ambiguous(location(), ':'));
        }
        Ok(value)
    }
}

/// The text at a pointer, even an empty one. None if it is absent or null.
fn text<'b>(body: &'b [u8], at: &Pointer) -> Result<Option<Cow<'b, str>>, InvalidReason> {
    match scalar(body, at)? {
        None | Some(Scalar::Null) => Ok(None),
        Some(Scalar::Text(text)) => Ok(Some(text)),
        Some(Scalar::Literal(_) | Scalar::Composite | Scalar::NotText) => {
            Err(InvalidReason::Unreadable(Location::Member(at.to_string())))
        }
    }
}

fn scalar<'b>(body: &'b [u8], at: &Pointer) -> Result<Option<Scalar<'b>>, InvalidReason> {
    match json::find(body, at) {
        Found::Values(values) => Ok(values.first().map(|raw| json::scalar(raw))),
        Found::Absent => Ok(None),
        Found::NotJson => Err(InvalidReason::Body("JSON in UTF-8")),
        Found::InSomeItems | Found::Ambiguous | Found::TooMany => {
            Err(InvalidReason::Repeated(Location::Member(at.to_string())))
        }
    }
}
