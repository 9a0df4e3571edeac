//! The JWT of Plaid (RFC 7519 in the compact form of RFC 7515), read without being believed.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;

use super::HEADER;
use crate::json::{self, Found, Pointer, Scalar};
use crate::provider::signature::certificates::Jwk;
use crate::provider::signature::encoding::Encoding;
use crate::provider::signature::verdict::{Place, Reason};

/// A header, three short claims and a signature are a tenth of it.
const BYTES_MAX: usize = 4096;
/// Plaid's are UUIDs.
const KEY_ID_BYTES_MAX: usize = 128;

/// What a token says. Nothing of it is true before its signature was checked.
#[derive(Debug)]
pub(super) struct Token<'a> {
    key_id: String,
    issued_at: String,
    body_digest: Vec<u8>,
    /// The two parts that are signed, with the dot between them.
    signed: &'a [u8],
    signature: Vec<u8>,
}

/// A part of the token as a place.
pub(super) fn claim(name: &str) -> Place {
    Place::Entry(HEADER, name.to_owned())
}

impl<'a> Token<'a> {
    pub(super) fn read(text: &'a [u8]) -> Result<Self, Reason> {
        let unreadable = || Reason::Unreadable(Place::Header(HEADER));
        let parts: Vec<&[u8]> = text.split(|byte| *byte == b'.').collect();
        let &[header, claims, signature] = parts.as_slice() else { return Err(unreadable()) };
        if text.len() > BYTES_MAX {
            return Err(unreadable());
        }
        let signed = text.get(..header.len() + 1 + claims.len()).ok_or_else(unreadable)?;
        let header = decoded(header)?;
        let claims = decoded(claims)?;
        // The key is for one algorithm. Whoever could choose another would choose `none`.
        if member(&header, "alg")? != "ES256" {
            return Err(Reason::Unknown(claim("alg"), "`ES256`"));
        }
        // RFC 7515, 4.1.11: what has to be understood, and is not.
        if !matches!(json::find(&header, &Pointer::along(&["crit"])), Found::Absent) {
            return Err(Reason::Unreadable(claim("crit")));
        }
        let key_id = member(&header, "kid")?;
        let is_id = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
        if key_id.is_empty() || key_id.len() > KEY_ID_BYTES_MAX || !key_id.bytes().all(is_id) {
            return Err(Reason::Unreadable(claim("kid")));
        }
        let digest = member(&claims, "request_body_sha256")?;
        let digest = Encoding::Hex.decode(digest.as_bytes());
        let undecodable = || Reason::Undecodable(claim("request_body_sha256"), Encoding::Hex);
        Ok(Self {
            key_id,
            issued_at: number(&claims, "iat")?,
            body_digest: digest.ok_or_else(undecodable)?,
            signed,
            signature: decoded(signature)?,
        })
    }

    pub(super) fn require_body(&self, body: &[u8]) -> Result<(), Reason> {
        let is_same: bool = Sha256::digest(body).as_slice().ct_eq(&self.body_digest).into();
        is_same.then_some(()).ok_or_else(|| Reason::Digest(claim("request_body_sha256")))
    }

    pub(super) fn is_signed_with(&self, key: &Jwk) -> bool {
        key.made(self.signed, &self.signature)
    }

    pub(super) fn key_id(&self) -> &str {
        &self.key_id
    }

    /// In seconds since 1970, as it was written.
    pub(super) fn issued_at(&self) -> &[u8] {
        self.issued_at.as_bytes()
    }
}

/// Without padding, as RFC 7515 has it: one spelling for the same bytes.
fn decoded(part: &[u8]) -> Result<Vec<u8>, Reason> {
    let undecodable = |_| Reason::Undecodable(Place::Header(HEADER), Encoding::Base64Url);
    URL_SAFE_NO_PAD.decode(part).map_err(undecodable)
}

fn member(object: &[u8], name: &str) -> Result<String, Reason> {
    match value(object, name)? {
        Scalar::Text(text) => Ok(text.into_owned()),
        Scalar::Literal(_) | Scalar::Null | Scalar::Composite | Scalar::NotText => {
            Err(Reason::Unreadable(claim(name)))
        }
    }
}

fn number(object: &[u8], name: &str) -> Result<String, Reason> {
    match value(object, name)? {
        Scalar::Literal(text) => Ok(text.to_owned()),
        Scalar::Text(_) | Scalar::Null | Scalar::Composite | Scalar::NotText => {
            Err(Reason::Unreadable(claim(name)))
        }
    }
}

fn value<'o>(object: &'o [u8], name: &str) -> Result<Scalar<'o>, Reason> {
    match json::find(object, &Pointer::along(&[name])) {
        Found::Values(values) => {
            let absent = || Reason::Absent(claim(name));
            values.first().map(|raw| json::scalar(raw)).ok_or_else(absent)
        }
        Found::Absent => Err(Reason::Absent(claim(name))),
        Found::NotJson => Err(Reason::Unreadable(Place::Header(HEADER))),
        Found::Ambiguous | Found::InSomeItems | Found::TooMany => {
            Err(Reason::Repeated(claim(name)))
        }
    }
}
