//! The JWT of Plaid (RFC 7519, in the compact form of RFC 7515). It is read before its signature
//! can be checked, because it names the key.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::HeaderName;
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;

use crate::json::{self, Found, Pointer, Scalar};
use crate::provider::signature::certificates::Jwk;
use crate::provider::signature::encoding::Encoding;
use crate::provider::signature::verdict::{InvalidReason, Location};

pub(super) const HEADER: HeaderName = HeaderName::from_static("plaid-verification");

/// A header, three short claims and a signature have a tenth of these bytes.
const BYTES_MAX: usize = 4096;
/// Plaid's key ids are UUIDs.
const KEY_ID_BYTES_MAX: usize = 128;

/// The content of a token. Nothing of it can be relied on before its signature has been checked.
#[derive(Debug)]
pub(super) struct Token<'a> {
    key_id: String,
    issued_at: String,
    body_digest: Vec<u8>,
    /// The two parts that are signed, with the dot between them.
    signed: &'a [u8],
    signature: Vec<u8>,
}

/// The location of a claim, for messages.
pub(super) fn claim(name: &str) -> Location {
    Location::Entry(HEADER, name.to_owned())
}

impl<'a> Token<'a> {
    pub(super) fn read(text: &'a [u8]) -> Result<Self, InvalidReason> {
        let unreadable = || InvalidReason::Unreadable(Location::Header(HEADER));
        let parts: Vec<&[u8]> = text.split(|byte| *byte == b'.').collect();
        let &[header, claims, signature] = parts.as_slice() else { return Err(unreadable()) };
        if text.len() > BYTES_MAX {
            return Err(unreadable());
        }
        let signed = text.get(..header.len() + 1 + claims.len()).ok_or_else(unreadable)?;
        let header = decoded(header)?;
        let claims = decoded(claims)?;
        // The token names its own algorithm (RFC 8725, 3.1). An attacker would choose `none`.
        if member(&header, "alg")? != "ES256" {
            return Err(InvalidReason::Unknown(claim("alg"), "`ES256`"));
        }
        // An extension that has to be understood (RFC 7515, 4.1.11). None is known here.
        if !matches!(json::find(&header, &Pointer::along(&["crit"])), Found::Absent) {
            return Err(InvalidReason::Unreadable(claim("crit")));
        }
        let key_id = member(&header, "kid")?;
        let is_id = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
        if key_id.is_empty() || key_id.len() > KEY_ID_BYTES_MAX || !key_id.bytes().all(is_id) {
            return Err(InvalidReason::Unreadable(claim("kid")));
        }
        let digest = member(&claims, "request_body_sha256")?;
        let digest = Encoding::Hex.decode(digest.as_bytes());
        let undecodable =
            || InvalidReason::Undecodable(claim("request_body_sha256"), Encoding::Hex);
        Ok(Self {
            key_id,
            issued_at: number(&claims, "iat")?,
            body_digest: digest.ok_or_else(undecodable)?,
            signed,
            signature: decoded(signature)?,
        })
    }

    pub(super) fn require_body(&self, body: &[u8]) -> Result<(), InvalidReason> {
        let is_same: bool = Sha256::digest(body).as_slice().ct_eq(&self.body_digest).into();
        is_same.then_some(()).ok_or_else(|| InvalidReason::Digest(claim("request_body_sha256")))
    }

    pub(super) fn is_signed_with(&self, key: &Jwk) -> bool {
        key.made(self.signed, &self.signature)
    }

    pub(super) fn key_id(&self) -> &str {
        &self.key_id
    }

    /// When the token was issued: seconds since 1970, as they are written.
    pub(super) fn issued_at(&self) -> &[u8] {
        self.issued_at.as_bytes()
    }
}

/// The bytes of a part: base64url without padding (RFC 7515, section 2), so that one token has one
/// spelling.
fn decoded(part: &[u8]) -> Result<Vec<u8>, InvalidReason> {
    let undecodable = |_| InvalidReason::Undecodable(Location::Header(HEADER), Encoding::Base64Url);
    URL_SAFE_NO_PAD.decode(part).map_err(undecodable)
}

fn member(object: &[u8], name: &str) -> Result<String, InvalidReason> {
    match value(object, name)? {
        Scalar::Text(text) => Ok(text.into_owned()),
        Scalar::Literal(_) | Scalar::Null | Scalar::Composite | Scalar::NotText => {
            Err(InvalidReason::Unreadable(claim(name)))
        }
    }
}

fn number(object: &[u8], name: &str) -> Result<String, InvalidReason> {
    match value(object, name)? {
        Scalar::Literal(text) => Ok(text.to_owned()),
        Scalar::Text(_) | Scalar::Null | Scalar::Composite | Scalar::NotText => {
            Err(InvalidReason::Unreadable(claim(name)))
        }
    }
}

fn value<'o>(object: &'o [u8], name: &str) -> Result<Scalar<'o>, InvalidReason> {
    match json::find(object, &Pointer::along(&[name])) {
        Found::Values(values) => {
            let absent = || InvalidReason::Absent(claim(name));
            values.first().map(|raw| json::scalar(raw)).ok_or_else(absent)
        }
        Found::Absent => Err(InvalidReason::Absent(claim(name))),
        Found::NotJson => Err(InvalidReason::Unreadable(Location::Header(HEADER))),
        Found::Ambiguous | Found::InSomeItems | Found::TooMany => {
            Err(InvalidReason::Repeated(claim(name)))
        }
    }
}
