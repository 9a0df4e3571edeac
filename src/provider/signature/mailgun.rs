//! Mailgun: the signature stands in the body, and covers only a timestamp and a token beside it.

use std::time::Duration;

use serde::Deserialize;

use super::encoding::Encoding;
use super::keys::{Hash, Keyring, Method, Numbered, SecretForm};
use super::timestamp::TimestampFormat;
use super::verdict::{Place, Reason, Refused, Verified};
use super::{SecretError, Signed};

/// Checks the member `signature` of the body.
#[derive(Debug)]
pub(super) struct Check {
    keys: Keyring,
    tolerance: Option<Duration>,
}

#[derive(Deserialize)]
struct Body {
    signature: Option<Signature>,
}

#[derive(Deserialize)]
struct Signature {
    timestamp: String,
    token: String,
    #[serde(rename = "signature")]
    written: String,
}

impl Check {
    pub(super) fn new(
        secrets: &[Numbered<'_>],
        tolerance: Option<Duration>,
    ) -> Result<Self, SecretError> {
        let keys = Keyring::new(Method::Hmac(Hash::Sha256), SecretForm::Text, secrets)?;
        Ok(Self { keys, tolerance })
    }

    pub(super) fn verify(&self, signed: &Signed<'_>) -> Result<Verified, Refused> {
        let member = |pointer: &str| Place::Member(pointer.to_owned());
        let body: Body = serde_json::from_slice(signed.body)
            .map_err(|_| Reason::Body("JSON with a signature as Mailgun writes it"))?;
        let Some(Signature { timestamp, token, written }) =
            body.signature.filter(|found| !found.written.is_empty())
        else {
            return Err(Refused::Missing(member("/signature")));
        };
        let place = member("/signature/signature");
        let decoded = Encoding::Hex.decode(written.as_bytes());
        let signatures =
            [decoded.ok_or_else(|| Reason::Undecodable(place.clone(), Encoding::Hex))?];
        let message = [timestamp.as_bytes(), token.as_bytes()];
        let verified = self.keys.find(&message, &signatures).ok_or(Reason::Mismatch(place))?;
        let place = member("/signature/timestamp");
        let format = TimestampFormat::Seconds;
        format.check(timestamp.as_bytes(), &place, signed, self.tolerance)?;
        Ok(verified)
    }
}
