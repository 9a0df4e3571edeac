//! HubSpot: three versions, of which a table says which ones count.
//!
//! Version 1 covers neither the URL nor a time, version 2 no time. HubSpot sends them beside version
//! 3 ("Validating requests", developers.hubspot.com), so that somebody who has seen a genuine
//! request could send it again without its third signature, for ever. Only the third counts unless
//! the table says otherwise.
//!
//! Method, URL, body and timestamp are joined with nothing between them, so the URL may hold no
//! bracket, and the body begins and ends as JSON, as all does that HubSpot sends. Versions 1 and 2
//! are plain hashes of the secret and what follows: who knows one can make that of a longer text,
//! which is not UTF-8.

use std::time::Duration;

use http::HeaderName;
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use super::encoding::Encoding;
use super::header::{covered, signature};
use super::keys::{Hash, Keyring, Method, Numbered, SecretForm};
use super::timestamp::TimestampFormat;
use super::verdict::{Place, Reason, Refused};
use super::{SecretError, Signed, division};
use crate::secret::Secret;

/// Which of its signatures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Version {
    First,
    Second,
    Third,
}

/// Checks `X-HubSpot-Signature-v3`, or `X-HubSpot-Signature` of one of the older versions.
#[derive(Debug)]
pub(super) struct Check {
    version: Version,
    keys: Keyring,
    /// Before version 3 it was a plain hash, which takes the secret itself.
    secrets: Vec<(usize, Secret)>,
    tolerance: Option<Duration>,
}

const V3: HeaderName = HeaderName::from_static("x-hubspot-signature-v3");
const TIMESTAMP: HeaderName = HeaderName::from_static("x-hubspot-request-timestamp");
const OLD: HeaderName = HeaderName::from_static("x-hubspot-signature");
const VERSION: HeaderName = HeaderName::from_static("x-hubspot-signature-version");

/// What HubSpot decodes in a URL before it signs it, and nothing else.
const DECODED: [(&str, &str); 12] = [
    ("%3A", ":"),
    ("%2F", "/"),
    ("%3F", "?"),
    ("%40", "@"),
    ("%21", "!"),
    ("%24", "$"),
    ("%27", "'"),
    ("%28", "("),
    ("%29", ")"),
    ("%2A", "*"),
    ("%2C", ","),
    ("%3B", ";"),
];

impl Check {
    pub(super) fn new(
        version: Version,
        secrets: &[Numbered<'_>],
        tolerance: Option<Duration>,
    ) -> Result<Self, SecretError> {
        let keys = Keyring::new(Method::Hmac(Hash::Sha256), SecretForm::Text, secrets)?;
        let secrets = secrets.iter().map(|n| (n.index, n.secret.clone())).collect();
        Ok(Self { version, keys, secrets, tolerance })
    }

    pub(super) fn verify(&self, signed: &Signed<'_>) -> Result<usize, Refused> {
        match self.version {
            Version::Third => self.third(signed),
            Version::First | Version::Second => self.older(signed),
        }
    }

    fn third(&self, signed: &Signed<'_>) -> Result<usize, Refused> {
        let place = Place::Header(V3);
        let decoded = Encoding::Base64.decode(signature(signed.headers, &V3)?);
        let signatures =
            [decoded.ok_or_else(|| Reason::Undecodable(place.clone(), Encoding::Base64))?];
        let timestamp = covered(signed.headers, &TIMESTAMP)?;
        require_one_division(signed)?;
        let method = signed.method.as_str().as_bytes();
        let find = |url: &str| {
            self.keys.find(&[method, url.as_bytes(), signed.body, timestamp], &signatures)
        };
        let url = signed.url();
        let found = find(&with_decoded_query(&url)).or(find(&url));
        // Two spellings of one path would be two operations under one signature.
        if found.is_none() && find(&as_signed(&url)).is_some() {
            return Err(Reason::Ambiguous(Place::Path, '%').into());
        }
        let secret = found.ok_or(Reason::Mismatch(place))?;
        let place = Place::Header(TIMESTAMP);
        TimestampFormat::Milliseconds.check(timestamp, &place, signed, self.tolerance)?;
        Ok(secret)
    }

    fn older(&self, signed: &Signed<'_>) -> Result<usize, Refused> {
        let place = Place::Header(OLD);
        let written = signature(signed.headers, &OLD)?;
        let method = signed.method.as_str().as_bytes();
        require_one_division(signed)?;
        let url = signed.url();
        let second = [method, url.as_bytes(), signed.body];
        let covered: &[&[u8]] = match (covered(signed.headers, &VERSION)?, self.version) {
            (b"v1", Version::First) => &[signed.body],
            (b"v2", Version::Second) => &second,
            // Of the other older version there is none.
            (b"v1" | b"v2", _) => return Err(Refused::Missing(place)),
            _ => return Err(Reason::Unknown(Place::Header(VERSION), "`v1` and `v2`").into()),
        };
        let signature = Encoding::Hex.decode(written);
        let signature =
            signature.ok_or_else(|| Reason::Undecodable(place.clone(), Encoding::Hex))?;
        let mut found = None;
        for (index, secret) in &self.secrets {
            let mut hash = Sha256::new_with_prefix(secret.reveal());
            for part in covered {
                hash.update(part);
            }
            let equal: bool = hash.finalize().as_slice().ct_eq(&signature).into();
            if equal && found.is_none() {
                found = Some(*index);
            }
        }
        Ok(found.ok_or(Reason::Mismatch(place))?)
    }
}

fn require_one_division(signed: &Signed<'_>) -> Result<(), Reason> {
    division::require_plain(signed.target)?;
    division::require_enclosed(signed.body)
}

fn as_signed(text: &str) -> String {
    let upper = DECODED.iter().fold(text.to_owned(), |text, (from, to)| text.replace(from, to));
    DECODED.iter().fold(upper, |text, (from, to)| text.replace(&from.to_ascii_lowercase(), to))
}

/// The path as it came: it is part of the identity on a route that takes many.
fn with_decoded_query(url: &str) -> String {
    let path = url.find('?').unwrap_or(url.len());
    let (path, query) = url.split_at_checked(path).unwrap_or((url, ""));
    format!("{path}{}", as_signed(query))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_hubspot_names_is_decoded() {
        assert_eq!(as_signed("https://a/%2fb%3Fc=%20%40"), "https://a//b?c=%20@");
        let url = "https://a/%2f?b=%2f%3Fc=%20";
        assert_eq!(with_decoded_query(url), "https://a/%2f?b=/?c=%20");
        assert_eq!(with_decoded_query("https://a/%2f"), "https://a/%2f");
    }
}
