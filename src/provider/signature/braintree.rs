//! Braintree: a form with the payload in the field `bt_payload` and its signatures in
//! `bt_signature`.
//!
//! The signature covers the payload alone. The fields could be reordered and others added under the
//! same signature, so the key of an event is the digest of the payload and not that of the body.

use sha1::{Digest, Sha1};
use sha2::Sha256;

use super::carried::Carried;
use super::encoding::Encoding;
use super::field;
use super::form;
use super::header::entries;
use super::keys::{Hash, Key, Keyring, NumberedSecret, SecretError};
use super::profile::{Profile, SignedValues};
use super::verdict::{InvalidReason, Location, SIGNATURES_MAX, SignatureError};
use crate::provider::ReceivedRequest;

/// Checks `bt_signature`: `PUBLIC|HEX` for each API key of the account, with `&` between them.
/// Which public key an entry names does not matter, because only the private key can make its
/// signature.
#[derive(Debug)]
pub(super) struct BraintreeVerifier(Keyring);

/// The name by which a key selects the digest of the payload.
pub(super) const PAYLOAD: &str = "payload";

pub(super) const PROFILE: Profile = Profile {
    secret: "the private key",
    covers_body: false,
    signed_values: SignedValues::None,
    carries: &[PAYLOAD],
    carry: Some(carry),
    ..Profile::OF_BODY
};

/// Adds the digest of the payload: of the XML that is encoded there in base64, so that line ends
/// within and after the base64 make no difference. (Braintree's own libraries check it with and
/// without a line end: `braintree/braintree_python`, `braintree/webhook_notification_gateway.py`.)
fn carry(received: &ReceivedRequest<'_>, carried: &mut Carried) {
    let Ok(fields) = form::of(received) else { return };
    match field::single(&fields, "bt_payload") {
        Ok(None) => {}
        Ok(Some(payload)) => {
            let text: Vec<u8> =
                payload.iter().copied().filter(|byte| !byte.is_ascii_whitespace()).collect();
            let payload = Encoding::Base64.decode(&text).unwrap_or(text);
            carried.insert(PAYLOAD, hex::encode(Sha256::digest(payload)).as_bytes());
        }
        Err(_) => carried.insert_differing(PAYLOAD, Vec::new()),
    }
}

impl BraintreeVerifier {
    pub(super) fn new(secrets: &[NumberedSecret<'_>]) -> Result<Self, SecretError> {
        let keys = Keyring::from_secrets(secrets, "a private key", |private| {
            let key = (!private.is_empty()).then(|| Sha1::digest(private.as_bytes()));
            key.map(|key| Key::hmac(Hash::Sha1, &key)).into_iter().collect()
        });
        keys.map(Self)
    }

    pub(super) fn verify(&self, received: &ReceivedRequest<'_>) -> Result<usize, SignatureError> {
        let location = Location::Field("bt_signature".to_owned());
        let fields = form::of(received)?;
        let list = field::single(&fields, "bt_signature")?;
        let list = list.ok_or_else(|| {
            SignatureError::without(location.clone(), field::has(&fields, "bt_signature"))
        })?;
        let payload = field::single(&fields, "bt_payload")?;
        let payload = payload
            .ok_or_else(|| InvalidReason::Absent(Location::Field("bt_payload".to_owned())))?;
        let written: Vec<&[u8]> = entries(list, b"&")
            .filter_map(|pair| pair.iter().position(|byte| *byte == b'|').map(|at| (pair, at + 1)))
            .filter_map(|(pair, start)| pair.get(start..))
            .collect();
        if written.len() > SIGNATURES_MAX {
            return Err(InvalidReason::TooMany(location).into());
        }
        let signatures: Vec<_> =
            written.into_iter().filter_map(|text| Encoding::Hex.decode(text)).collect();
        if signatures.is_empty() {
            return Err(InvalidReason::Undecodable(location, Encoding::Hex).into());
        }
        let found = self.0.find(&[payload], &signatures);
        // Braintree signs the payload with its last line end, which some form parsers drop. Its own
        // libraries try both too.
        let found = found.or(self.0.find(&[payload, b"\n"], &signatures));
        Ok(found.ok_or(InvalidReason::Mismatch(location))?)
    }
}
