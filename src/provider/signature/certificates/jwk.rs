//! A public key as a JSON Web Key (RFC 7517), in the answer of the API that gives it out.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::signature::{ECDSA_P256_SHA256_FIXED, UnparsedPublicKey};

use super::error::CertificateError;
use crate::json::{self, Found, Pointer, Scalar};
use crate::operation::Timestamp;

const COORDINATE_BYTES: usize = 32;
/// The error code of Plaid's API for an id that it does not know (plaid/plaid-node, the tests of
/// its client).
const UNKNOWN: &str = "INVALID_WEBHOOK_VERIFICATION_KEY_ID";

/// A key on the curve P-256, for signatures of the kind ES256.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in super::super) struct Jwk {
    /// The point, not compressed (SEC 1, 2.3.3).
    point: Vec<u8>,
    /// When the sender stopped signing with the key, in seconds since 1970. None: it has not.
    expired_at: Option<u64>,
}

impl Jwk {
    /// Whether the owner of the key signed this.
    pub(in super::super) fn made(&self, message: &[u8], signature: &[u8]) -> bool {
        let key = UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, &self.point);
        key.verify(message, signature).is_ok()
    }

    /// The key, if the sender still signs with it.
    pub(super) fn in_force(self, now: Timestamp) -> Result<Self, CertificateError> {
        match self.expired_at {
            Some(at) if at <= now.0 / 1000 => Err(CertificateError::KeyExpired),
            Some(_) | None => Ok(self),
        }
    }
}

/// The key in the member `key` of an answer. The key has to name the id that was asked for.
pub(super) fn read(answer: &[u8], id: &str) -> Result<Jwk, CertificateError> {
    let not = CertificateError::NotAKey;
    let text = |name: &str| match of(answer, &["key", name]) {
        Some(Scalar::Text(text)) => Ok(text),
        _ => Err(not("without a member that a key has")),
    };
    if text("kid")? != id {
        // The API answers for the id that was asked for. An answer that an operator gave to
        // `explain` by hand may be for another one.
        return Err(CertificateError::KeyUnknown);
    }
    // A key of another kind would be read as a point of this curve.
    if text("kty")? != "EC" || text("crv")? != "P-256" || text("alg")? != "ES256" {
        return Err(not("of another kind than ES256"));
    }
    // 4 begins a point that is not compressed (SEC 1, 2.3.3).
    let mut point = vec![4];
    for name in ["x", "y"] {
        let coordinate = URL_SAFE_NO_PAD.decode(text(name)?.as_bytes()).ok();
        let coordinate = coordinate.filter(|bytes| bytes.len() == COORDINATE_BYTES);
        point.extend(coordinate.ok_or(not("without a point of P-256"))?);
    }
    let expired_at = match of(answer, &["key", "expired_at"]) {
        None | Some(Scalar::Null) => None,
        Some(Scalar::Literal(at)) => {
            Some(at.parse().map_err(|_| not("with an end that is no time"))?)
        }
        Some(Scalar::Text(_) | Scalar::Composite | Scalar::NotText) => {
            return Err(not("with an end that is no time"));
        }
    };
    Ok(Jwk { point, expired_at })
}

/// Whether the API says that it has no key of the id.
pub(super) fn says_unknown(answer: &[u8]) -> bool {
    matches!(of(answer, &["error_code"]), Some(Scalar::Text(code)) if code == UNKNOWN)
}

/// The member of an answer. None if it is absent, or there twice.
fn of<'a>(answer: &'a [u8], names: &[&str]) -> Option<Scalar<'a>> {
    match json::find(answer, &Pointer::along(names)) {
        Found::Values(values) => values.first().map(|raw| json::scalar(raw)),
        Found::Absent | Found::NotJson | Found::Ambiguous | Found::InSomeItems | Found::TooMany => {
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(change: impl FnOnce(&mut serde_json::Value)) -> Vec<u8> {
        let coordinate = URL_SAFE_NO_PAD.encode([7; 32]);
        let mut answer = serde_json::json!({ "key": {
            "alg": "ES256", "crv": "P-256", "kid": "k1", "kty": "EC", "use": "sig",
            "x": coordinate, "y": coordinate, "created_at": 1, "expired_at": null,
        }, "request_id": "r" });
        change(&mut answer);
        answer.to_string().into_bytes()
    }

    #[test]
    fn a_key_is_read_only_if_it_is_of_the_id_and_of_the_kind() {
        let read = |change: fn(&mut serde_json::Value)| read(&answer(change), "k1");
        assert_eq!(read(|_| {}).unwrap().point.len(), 65);
        assert_eq!(read(|a| a["key"]["kid"] = "k2".into()), Err(CertificateError::KeyUnknown));
        let others: [fn(&mut serde_json::Value); 8] = [
            |a| a["key"]["kty"] = "RSA".into(),
            |a| a["key"]["crv"] = "P-384".into(),
            |a| a["key"]["alg"] = "none".into(),
            |a| a["key"]["x"] = "AAAA".into(),
            |a| a["key"]["y"] = format!("{}=", URL_SAFE_NO_PAD.encode([7; 32])).into(),
            |a| a["key"]["x"] = 7.into(),
            |a| a["key"]["expired_at"] = "soon".into(),
            |a| *a = serde_json::json!([]),
        ];
        for change in others {
            assert!(matches!(read(change), Err(CertificateError::NotAKey(_))));
        }
        assert!(super::read(b"<html>", "k1").is_err());
    }

    #[test]
    fn a_key_that_has_expired_is_of_no_use() {
        let key = read(&answer(|a| a["key"]["expired_at"] = 1000.into()), "k1").unwrap();
        assert!(key.clone().in_force(Timestamp(999_999)).is_ok());
        assert_eq!(key.in_force(Timestamp(1_000_000)), Err(CertificateError::KeyExpired));
    }

    #[test]
    fn the_api_says_in_one_word_that_it_does_not_know_an_id() {
        assert!(says_unknown(br#"{"error_code":"INVALID_WEBHOOK_VERIFICATION_KEY_ID"}"#));
        assert!(!says_unknown(br#"{"error_code":"INVALID_API_KEYS"}"#));
    }
}
