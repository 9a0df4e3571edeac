//! Braintree: both the payload and its signatures are fields of a form.

use sha1::{Digest, Sha1};

use super::encoding::Encoding;
use super::header::{ENTRIES_MAX, entries};
use super::keys::{Hash, Key, Keyring, Numbered};
use super::verdict::{Place, Reason, Refused, Verified};
use super::{SecretError, Signed, form};

/// Checks `bt_signature`: `PUBLIC|HEX` for each pair of keys, with `&` between them. Whose public
/// key it names does not matter, the private key decides.
#[derive(Debug)]
pub(super) struct Check(Keyring);

impl Check {
    pub(super) fn new(secrets: &[Numbered<'_>]) -> Result<Self, SecretError> {
        let keys = Keyring::from_secrets(secrets, "a private key", |private| {
            let key = (!private.is_empty()).then(|| Sha1::digest(private.as_bytes()));
            key.map(|key| Key::hmac(Hash::Sha1, &key)).into_iter().collect()
        });
        keys.map(Self)
    }

    pub(super) fn verify(&self, signed: &Signed<'_>) -> Result<Verified, Refused> {
        let place = Place::Field("bt_signature");
        let fields = form::fields(signed.body);
        let list = form::single(&fields, "bt_signature")?;
        let list = list.ok_or_else(|| Refused::Missing(place.clone()))?;
        let payload = form::single(&fields, "bt_payload")?;
        let payload = payload.ok_or(Reason::Absent(Place::Field("bt_payload")))?;
        let written: Vec<&[u8]> = entries(list, b'&')
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
