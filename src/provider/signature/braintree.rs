//! Braintree: both the payload and its signatures are fields of a form.

use sha1::{Digest, Sha1};
use sha2::Sha256;

use super::carried::Carried;
use super::encoding::Encoding;
use super::header::{ENTRIES_MAX, entries};
use super::keys::{Hash, Key, Keyring, Numbered};
use super::verdict::{Place, Reason, Refused};
use super::{SecretError, Signed, form};

/// Checks `bt_signature`: `PUBLIC|HEX` for each pair of keys, with `&` between them. Whose public
/// key it names does not matter, the private key decides.
#[derive(Debug)]
pub(super) struct Check(Keyring);

/// By which a key selects the digest of the payload.
pub(super) const PAYLOAD: &str = "payload";

/// Adds the digest of the payload, the one field that is signed: of the XML that its base64 stands
/// for, so that line ends in and behind it do not matter. (The SDKs try it with and without one:
/// `braintree/braintree_python`, `braintree/webhook_notification_gateway.py`.)
pub(super) fn carry(signed: &Signed<'_>, carried: &mut Carried) {
    let Ok(fields) = form::of(signed) else { return };
    match form::single(&fields, "bt_payload") {
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

impl Check {
    pub(super) fn new(secrets: &[Numbered<'_>]) -> Result<Self, SecretError> {
        let keys = Keyring::from_secrets(secrets, "a private key", |private| {
            let key = (!private.is_empty()).then(|| Sha1::digest(private.as_bytes()));
            key.map(|key| Key::hmac(Hash::Sha1, &key)).into_iter().collect()
        });
        keys.map(Self)
    }

    pub(super) fn verify(&self, signed: &Signed<'_>) -> Result<usize, Refused> {
        let place = Place::Field("bt_signature".to_owned());
        let fields = form::of(signed)?;
        let list = form::single(&fields, "bt_signature")?;
        let list = list
            .ok_or_else(|| Refused::without(place.clone(), form::has(&fields, "bt_signature")))?;
        let payload = form::single(&fields, "bt_payload")?;
        let payload =
            payload.ok_or_else(|| Reason::Absent(Place::Field("bt_payload".to_owned())))?;
        let written: Vec<&[u8]> = entries(list, b"&")
            .filter_map(|pair| pair.iter().position(|byte| *byte == b'|').map(|at| (pair, at + 1)))
            .filter_map(|(pair, start)| pair.get(start..))
            .collect();
        if written.len() > ENTRIES_MAX {
            return Err(Reason::TooMany(place).into());
        }
        let signatures: Vec<_> =
            written.into_iter().filter_map(|text| Encoding::Hex.decode(text)).collect();
        if signatures.is_empty() {
            return Err(Reason::Undecodable(place, Encoding::Hex).into());
        }
        let found = self.0.find(&[payload], &signatures);
        // Braintree's own libraries also try it with a line end, which forms tend to lose.
        let found = found.or(self.0.find(&[payload, b"\n"], &signatures));
        Ok(found.ok_or(Reason::Mismatch(place))?)
    }
}
