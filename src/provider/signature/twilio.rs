//! Twilio: an HMAC over the public URL, followed by the sorted fields of a form ("Security",
//! twilio.com/docs/usage). Where the body is no form, the URL has its digest (`bodySHA256`).
//!
//! An account may have its requests signed with a shared key and SHA-256 in place of SHA-1. A
//! header then names the hash (twilio/twilio-node `examples/WebhookSignatureValidation.md`).

use std::collections::BTreeSet;

use http::{HeaderMap, HeaderName, header};
use memchr::memmem;
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use super::carried::Carried;
use super::encoding::Encoding;
use super::field::{self, Field};
use super::form;
use super::header::{is_media_type, signature, single};
use super::keys::{Algorithm, Hash, Keyring, NumberedSecret, SecretError, SecretForm};
use super::profile::{Profile, SignedValues};
use super::verdict::{InvalidReason, Location, SignatureError};
use crate::provider::ReceivedRequest;

/// Checks `X-Twilio-Signature`.
#[derive(Debug)]
pub(super) struct TwilioVerifier {
    sha1: Keyring,
    sha256: Keyring,
}

/// The name by which a key selects the digest of all that is signed.
pub(super) const SIGNED: &str = "signed";
/// The name of the same digest, in requests that are about a message.
pub(super) const MESSAGE: &str = "message";

pub(super) const PROFILE: Profile = Profile {
    secret: "the auth token",
    covers_url: true,
    signed_values: SignedValues::OfFormAndQuery,
    header_prefixes: &["x-twilio-"],
    carries: &[SIGNED, MESSAGE],
    carry: Some(carry),
    ..Profile::OF_BODY
};

const MESSAGE_FIELD: &[u8] = b"MessageSid";
const DIGEST: &str = "bodySHA256";
const SETTINGS: HeaderName = HeaderName::from_static("x-twilio-webhooks-signature-settings");

/// Adds the digest of what is signed: the path and the query, followed by the fields as Twilio
/// joins them.
///
/// Under one signature the fields may be reordered, repeated, encoded in another way or, because
/// nothing separates them, divided at other points. So neither the body nor a field of it can tell
/// one request from another, and only the signed text can. Whether a request is about a message is
/// looked up in the signed text for the same reason.
///
/// Scheme, host and port of the URL are left out: they are the same for all requests of a route,
/// and Twilio signs them sometimes with the port and sometimes without.
fn carry(received: &ReceivedRequest<'_>, carried: &mut Carried) {
    // A body that nothing covers is refused by the check.
    let Ok(covered) = covered(received) else {
        return;
    };
    let text = [received.target.as_bytes(), covered.fields.as_slice()].concat();
    let digest = hex::encode(Sha256::digest(&text));
    carried.insert(SIGNED, digest.as_bytes());
    let tells_of_message = |text: &[u8]| memmem::find(text, MESSAGE_FIELD).is_some();
    if tells_of_message(&text) || covered.by_digest && tells_of_message(received.body) {
        carried.insert(MESSAGE, digest.as_bytes());
    }
}

impl TwilioVerifier {
    pub(super) fn new(secrets: &[NumberedSecret<'_>]) -> Result<Self, SecretError> {
        let keys = |hash| Keyring::new(Algorithm::Hmac(hash), SecretForm::Text, secrets);
        Ok(Self { sha1: keys(Hash::Sha1)?, sha256: keys(Hash::Sha256)? })
    }

    pub(super) fn verify(&self, received: &ReceivedRequest<'_>) -> Result<usize, SignatureError> {
        let name = HeaderName::from_static("x-twilio-signature");
        let written = signature(received.headers, &name)?;
        let location = Location::Header(name);
        let decoded = Encoding::Base64.decode(written);
        let signatures = [decoded
            .ok_or_else(|| InvalidReason::Undecodable(location.clone(), Encoding::Base64))?];
        let keys = match hash(received.headers)? {
            Hash::Sha256 => &self.sha256,
            Hash::Sha1 | Hash::Sha512 => &self.sha1,
        };
        let fields = covered(received)?.fields;
        // Nothing tells which of the two URLs Twilio has signed.
        let found = urls(received)
            .iter()
            .fold(None, |found, url| found.or(keys.find(&[url.as_bytes(), &fields], &signatures)));
        Ok(found.ok_or(InvalidReason::Mismatch(location))?)
    }
}

/// The hash that the header names. The header is not signed, but somebody who changes it would have
/// to make a signature with the other hash.
fn hash(headers: &HeaderMap) -> Result<Hash, InvalidReason> {
    let Some(settings) = single(headers, &SETTINGS)? else {
        return Ok(Hash::Sha1);
    };
    let mut parameters = settings.split(|byte| *byte == b',').map(<[u8]>::trim_ascii);
    match parameters.find_map(|parameter| parameter.strip_prefix(b"algorithm=")) {
        None | Some(b"HMAC_SHA1") => Ok(Hash::Sha1),
        Some(b"HMAC_SHA256") => Ok(Hash::Sha256),
        Some(_) => {
            Err(InvalidReason::Unknown(Location::Header(SETTINGS), "`HMAC_SHA1` and `HMAC_SHA256`"))
        }
    }
}

/// How a body is covered.
struct CoveredBody {
    /// What is signed after the URL.
    fields: Vec<u8>,
    /// Whether the URL has the digest of the body, byte for byte.
    by_digest: bool,
}

/// Refuses a body that neither its fields nor a digest in the URL would cover.
fn covered(received: &ReceivedRequest<'_>) -> Result<CoveredBody, InvalidReason> {
    let location = Location::Parameter(DIGEST.to_owned());
    let parameters = form::fields(received.query().as_bytes())?;
    if let Some(digest) = field::single_at(&parameters, DIGEST, location.clone())? {
        let digest = Encoding::Hex.decode(digest);
        let digest =
            digest.ok_or_else(|| InvalidReason::Undecodable(location.clone(), Encoding::Hex))?;
        let is_body: bool = Sha256::digest(received.body).as_slice().ct_eq(&digest).into();
        let covered = CoveredBody { fields: Vec::new(), by_digest: true };
        return if is_body { Ok(covered) } else { Err(InvalidReason::Digest(location)) };
    }
    if !received.body.is_empty() && !is_form(received)? {
        return Err(InvalidReason::Body("a form, and its digest is not in the URL"));
    }
    // Sorted by name, then by value, each pair once, as Twilio's own libraries do
    // (twilio/twilio-python `twilio/request_validator.py`).
    let fields: BTreeSet<Field> = form::fields(received.body)?.into_iter().collect();
    let fields = fields.into_iter().flat_map(|field| [field.name, field.value]).flatten().collect();
    Ok(CoveredBody { fields, by_digest: false })
}

fn is_form(received: &ReceivedRequest<'_>) -> Result<bool, InvalidReason> {
    let value = single(received.headers, &header::CONTENT_TYPE)?;
    Ok(value.is_some_and(|value| is_media_type(value, "application/x-www-form-urlencoded")))
}

/// The URL as it is configured, and with the port added or removed: Twilio signs one of the two,
/// and says that it is not always the same. Only the configured part of the URL is changed.
fn urls(received: &ReceivedRequest<'_>) -> Vec<String> {
    let bases = received.public_url.map_or_else(|| vec![String::new()], bases);
    bases.into_iter().map(|base| base + received.target).collect()
}

fn bases(public_url: &str) -> Vec<String> {
    let mut bases = vec![public_url.to_owned()];
    let Some((scheme, authority)) = public_url.split_once("://") else {
        return bases;
    };
    let digits = |port: &str| !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
    bases.push(match authority.rsplit_once(':').filter(|(_, port)| digits(port)) {
        Some((host, _)) => format!("{scheme}://{host}"),
        None => format!("{public_url}:{}", if scheme == "https" { 443 } else { 80 }),
    });
    bases
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_port_of_a_url_comes_and_goes() {
        assert_eq!(bases("https://a"), ["https://a", "https://a:443"]);
        assert_eq!(bases("http://a"), ["http://a", "http://a:80"]);
        assert_eq!(bases("https://a:1"), ["https://a:1", "https://a"]);
        assert_eq!(bases("https://[::1]:8"), ["https://[::1]:8", "https://[::1]"]);
        assert_eq!(bases("https://[::1]"), ["https://[::1]", "https://[::1]:443"]);
    }
}
