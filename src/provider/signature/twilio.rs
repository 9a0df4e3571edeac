//! Twilio: the public URL and behind it the sorted fields of a form, or a digest of the body within
//! the URL.
//!
//! Where a rule of the account says so, it is made with a shared key and another hash, which a header
//! then names (twilio/twilio-node `examples/WebhookSignatureValidation.md`).

use std::collections::BTreeSet;

use http::{HeaderMap, HeaderName, header};
use memchr::memmem;
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use super::carried::Carried;
use super::encoding::Encoding;
use super::header::{signature, single};
use super::keys::{Hash, Keyring, Method, Numbered, SecretForm};
use super::verdict::{Place, Reason, Refused};
use super::{SecretError, Signed, form};

/// Checks `X-Twilio-Signature`.
#[derive(Debug)]
pub(super) struct Check {
    sha1: Keyring,
    sha256: Keyring,
}

/// By which a key selects the digest of all that is signed.
pub(super) const SIGNED: &str = "signed";
/// The same digest, in requests that tell of a message.
pub(super) const MESSAGE: &str = "message";

const MESSAGE_FIELD: &[u8] = b"MessageSid";
const DIGEST: &str = "bodySHA256";
const SETTINGS: HeaderName = HeaderName::from_static("x-twilio-webhooks-signature-settings");

/// Adds the digest of what is signed: of the path, the query and behind them the fields as Twilio
/// joins them. Fields may be reordered, repeated, encoded otherwise or, since nothing separates
/// them, divided at other places under one signature, so that neither the body nor any field of it
/// tells one request from another. Whether there is a message is looked up in the signed text too.
///
/// The start of the URL is the operator's and the same for all requests of a route, so it is left
/// out: Twilio signs it with a port and without.
pub(super) fn carry(signed: &Signed<'_>, carried: &mut Carried) {
    // A body that nothing covers is never verified.
    let Ok(covered) = covered(signed) else {
        return;
    };
    let text = [signed.target.as_bytes(), covered.fields.as_slice()].concat();
    let digest = hex::encode(Sha256::digest(&text));
    carried.insert(SIGNED, digest.as_bytes());
    let tells_of_message = |text: &[u8]| memmem::find(text, MESSAGE_FIELD).is_some();
    if tells_of_message(&text) || covered.by_digest && tells_of_message(signed.body) {
        carried.insert(MESSAGE, digest.as_bytes());
    }
}

impl Check {
    pub(super) fn new(secrets: &[Numbered<'_>]) -> Result<Self, SecretError> {
        let keys = |hash| Keyring::new(Method::Hmac(hash), SecretForm::Text, secrets);
        Ok(Self { sha1: keys(Hash::Sha1)?, sha256: keys(Hash::Sha256)? })
    }

    pub(super) fn verify(&self, signed: &Signed<'_>) -> Result<usize, Refused> {
        let name = HeaderName::from_static("x-twilio-signature");
        let written = signature(signed.headers, &name)?;
        let place = Place::Header(name);
        let decoded = Encoding::Base64.decode(written);
        let signatures =
            [decoded.ok_or_else(|| Reason::Undecodable(place.clone(), Encoding::Base64))?];
        let keys = match hash(signed.headers)? {
            Hash::Sha256 => &self.sha256,
            Hash::Sha1 | Hash::Sha512 => &self.sha1,
        };
        let fields = covered(signed)?.fields;
        let found = urls(signed)
            .iter()
            .fold(None, |found, url| found.or(keys.find(&[url.as_bytes(), &fields], &signatures)));
        Ok(found.ok_or(Reason::Mismatch(place))?)
    }
}

/// The hash that the header names. It is not signed, but who changes it has to make a signature.
fn hash(headers: &HeaderMap) -> Result<Hash, Reason> {
    let Some(settings) = single(headers, &SETTINGS)? else {
        return Ok(Hash::Sha1);
    };
    let mut parameters = settings.split(|byte| *byte == b',').map(<[u8]>::trim_ascii);
    match parameters.find_map(|parameter| parameter.strip_prefix(b"algorithm=")) {
        None | Some(b"HMAC_SHA1") => Ok(Hash::Sha1),
        Some(b"HMAC_SHA256") => Ok(Hash::Sha256),
        Some(_) => Err(Reason::Unknown(Place::Header(SETTINGS), "`HMAC_SHA1` and `HMAC_SHA256`")),
    }
}

/// How a body is covered.
struct Covered {
    /// What stands behind the URL.
    fields: Vec<u8>,
    /// Whether the URL has the digest of the body, byte for byte.
    by_digest: bool,
}

/// Refuses a body that neither its fields nor a digest in the URL would cover.
fn covered(signed: &Signed<'_>) -> Result<Covered, Reason> {
    let place = Place::Parameter(DIGEST.to_owned());
    let parameters = form::fields(signed.query().as_bytes())?;
    if let Some(digest) = form::only(&parameters, DIGEST, place.clone())? {
        let digest = Encoding::Hex.decode(digest);
        let digest = digest.ok_or_else(|| Reason::Undecodable(place.clone(), Encoding::Hex))?;
        let is_body: bool = Sha256::digest(signed.body).as_slice().ct_eq(&digest).into();
        let covered = Covered { fields: Vec::new(), by_digest: true };
        return if is_body { Ok(covered) } else { Err(Reason::Digest(place)) };
    }
    if !signed.body.is_empty() && !is_form(signed)? {
        return Err(Reason::Body("a form, and its digest is not in the URL"));
    }
    // Sorted by name, then by value, each pair once: as Twilio's own libraries do.
    let fields: BTreeSet<form::Field> = form::fields(signed.body)?.into_iter().collect();
    let fields = fields.into_iter().flat_map(|(name, value)| [name, value]).flatten().collect();
    Ok(Covered { fields, by_digest: false })
}

fn is_form(signed: &Signed<'_>) -> Result<bool, Reason> {
    let value = single(signed.headers, &header::CONTENT_TYPE)?;
    Ok(value.is_some_and(|value| form::is(value, "application/x-www-form-urlencoded")))
}

/// The URL as it is, without its port, and with that of its scheme: Twilio signs one of them, and
/// says that it is not always the same. Only our own part of it is looked at.
fn urls(signed: &Signed<'_>) -> Vec<String> {
    let bases = signed.public_url.map_or_else(|| vec![String::new()], bases);
    bases.into_iter().map(|base| base + signed.target).collect()
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
