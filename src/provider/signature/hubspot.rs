//! HubSpot: three versions of its signature ("Validating requests", developers.hubspot.com).
//!
//! Version 1 covers neither the URL nor a time, version 2 covers no time. HubSpot sends them beside
//! version 3, so whoever has seen a genuine request could send it again without its third
//! signature, for ever. Only version 3 counts unless `accept` names others.
//!
//! Method, URL, body and timestamp are joined with nothing between them. So that they can be
//! divided in one way only, the URL may hold no bracket, and the body has to begin and end as JSON,
//! as every body of HubSpot does.
//!
//! Versions 1 and 2 are plain SHA-256 hashes of the secret and what follows it. Whoever knows one
//! such hash can compute that of a longer text (length extension), but the bytes that have to be
//! added are not UTF-8, and a body that is not UTF-8 is refused.

use std::time::Duration;

use http::HeaderName;
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use super::division;
use super::encoding::Encoding;
use super::header::{covered, signature};
use super::keys::{Algorithm, Hash, Keyring, NumberedSecret, SecretError, SecretForm};
use super::profile::Profile;
use super::timestamp_format::TimestampFormat;
use super::verdict::{InvalidReason, Location, SignatureError};
use crate::provider::ReceivedRequest;
use crate::secret::Secret;

/// The version of a signature.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Version {
    First,
    Second,
    Third,
}

/// Checks `X-HubSpot-Signature-v3`, or `X-HubSpot-Signature` of one of the older versions.
#[derive(Debug)]
pub(super) struct HubSpotVerifier {
    version: Version,
    keys: Keyring,
    /// The versions before 3 are plain hashes, which take the secret itself. Each secret has its
    /// index in the configuration.
    secrets: Vec<(usize, Secret)>,
    tolerance: Option<Duration>,
}

const V3: HeaderName = HeaderName::from_static("x-hubspot-signature-v3");
const TIMESTAMP: HeaderName = HeaderName::from_static("x-hubspot-request-timestamp");
const OLD: HeaderName = HeaderName::from_static("x-hubspot-signature");
const VERSION: HeaderName = HeaderName::from_static("x-hubspot-signature-version");

/// The escapes that HubSpot decodes in a URL before it signs the URL. It decodes no others.
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

pub(super) const FIRST_VERSION: Profile = Profile {
    secret: "the app's client secret",
    header_prefixes: &["x-hubspot-"],
    ..Profile::OF_BODY
};
pub(super) const SECOND_VERSION: Profile = Profile { covers_url: true, ..FIRST_VERSION };
pub(super) const THIRD_VERSION: Profile = Profile { has_timestamp: true, ..SECOND_VERSION };

impl HubSpotVerifier {
    pub(super) fn new(
        version: Version,
        secrets: &[NumberedSecret<'_>],
        tolerance: Option<Duration>,
    ) -> Result<Self, SecretError> {
        let keys = Keyring::new(Algorithm::Hmac(Hash::Sha256), SecretForm::Text, secrets)?;
        let secrets = secrets.iter().map(|n| (n.index, n.secret.clone())).collect();
        Ok(Self { version, keys, secrets, tolerance })
    }

    pub(super) fn verify(&self, received: &ReceivedRequest<'_>) -> Result<usize, SignatureError> {
        match self.version {
            Version::Third => self.third(received),
            Version::First | Version::Second => self.older(received),
        }
    }

    fn third(&self, received: &ReceivedRequest<'_>) -> Result<usize, SignatureError> {
        let location = Location::Header(V3);
        let decoded = Encoding::Base64.decode(signature(received.headers, &V3)?);
        let signatures = [decoded
            .ok_or_else(|| InvalidReason::Undecodable(location.clone(), Encoding::Base64))?];
        let timestamp = covered(received.headers, &TIMESTAMP)?;
        require_one_division(received)?;
        let method = received.method.as_str().as_bytes();
        let find = |url: &str| {
            self.keys.find(&[method, url.as_bytes(), received.body, timestamp], &signatures)
        };
        let url = received.url();
        let found = find(&with_decoded_query(&url)).or(find(&url));
        // HubSpot signed a decoded path. Every spelling of that path has the same signature, so one
        // captured request could run once for each of them.
        if found.is_none() && find(&as_signed(&url)).is_some() {
            return Err(InvalidReason::Ambiguous(Location::Path, '%').into());
        }
        let secret = found.ok_or(InvalidReason::Mismatch(location))?;
        let location = Location::Header(TIMESTAMP);
        TimestampFormat::Milliseconds.check(timestamp, &location, received, self.tolerance)?;
        Ok(secret)
    }

    fn older(&self, received: &ReceivedRequest<'_>) -> Result<usize, SignatureError> {
        let location = Location::Header(OLD);
        let written = signature(received.headers, &OLD)?;
        let method = received.method.as_str().as_bytes();
        require_one_division(received)?;
        let url = received.url();
        let second = [method, url.as_bytes(), received.body];
        let covered: &[&[u8]] = match (covered(received.headers, &VERSION)?, self.version) {
            (b"v1", Version::First) => &[received.body],
            (b"v2", Version::Second) => &second,
            // The header holds one signature, which is of the other older version.
            (b"v1" | b"v2", _) => return Err(SignatureError::Missing(location)),
            _ => {
                return Err(
                    InvalidReason::Unknown(Location::Header(VERSION), "`v1` and `v2`").into()
                );
            }
        };
        let signature = Encoding::Hex.decode(written);
        let signature =
            signature.ok_or_else(|| InvalidReason::Undecodable(location.clone(), Encoding::Hex))?;
        // Every secret is compared, so that the time does not tell which one it was.
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
        Ok(found.ok_or(InvalidReason::Mismatch(location))?)
    }
}

fn require_one_division(received: &ReceivedRequest<'_>) -> Result<(), InvalidReason> {
    division::require_plain(received.target)?;
    division::require_enclosed(received.body)
}

/// The text as HubSpot signs it, with its escapes decoded.
fn as_signed(text: &str) -> String {
    let upper = DECODED.iter().fold(text.to_owned(), |text, (from, to)| text.replace(from, to));
    DECODED.iter().fold(upper, |text, (from, to)| text.replace(&from.to_ascii_lowercase(), to))
}

/// The URL with its query decoded. The path stays as it is, because it is a part of the identity on
/// a route that takes several paths.
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
