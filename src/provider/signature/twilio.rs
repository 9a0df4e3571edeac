//! Twilio: the public URL and behind it the sorted fields of a form, or a digest of the body within
//! the URL.

use std::collections::BTreeSet;

use http::{HeaderName, HeaderValue, header};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use super::encoding::Encoding;
use super::header::signature;
use super::keys::{Hash, Keyring, Method, Numbered, SecretForm};
use super::verdict::{Place, Reason, Refused, Verified};
use super::{SecretError, Signed, form};

/// Checks `X-Twilio-Signature`.
#[derive(Debug)]
pub(super) struct Check(Keyring);

const DIGEST: &str = "bodySHA256";

impl Check {
    pub(super) fn new(secrets: &[Numbered<'_>]) -> Result<Self, SecretError> {
        Keyring::new(Method::Hmac(Hash::Sha1), SecretForm::Text, secrets).map(Self)
    }

    pub(super) fn verify(&self, signed: &Signed<'_>) -> Result<Verified, Refused> {
        let name = HeaderName::from_static("x-twilio-signature");
        let written = signature(signed.headers, &name)?;
        let place = Place::Header(name);
        let decoded = Encoding::Base64.decode(written);
        let signatures =
            [decoded.ok_or_else(|| Reason::Undecodable(place.clone(), Encoding::Base64))?];
        let fields = covered_fields(signed)?;
        let found = urls(signed.url).iter().fold(None, |found, url| {
            found.or(self.0.find(&[url.as_bytes(), &fields], &signatures))
        });
        Ok(found.ok_or(Reason::Mismatch(place))?)
    }
}

/// What stands behind the URL. Refuses a body that neither it nor the URL would cover.
fn covered_fields(signed: &Signed<'_>) -> Result<Vec<u8>, Reason> {
    let query = signed.url.split_once('?').map_or("", |(_, query)| query);
    if let Some(digest) = form::single(&form::fields(query.as_bytes()), DIGEST)? {
        let place = Place::Parameter(DIGEST);
        let digest = Encoding::Hex.decode(digest);
        let digest = digest.ok_or_else(|| Reason::Undecodable(place.clone(), Encoding::Hex))?;
        let is_body: bool = Sha256::digest(signed.body).as_slice().ct_eq(&digest).into();
        return if is_body { Ok(Vec::new()) } else { Err(Reason::Digest(place)) };
    }
    if !signed.body.is_empty() && !is_form(signed) {
        return Err(Reason::Body("a form, and its digest is not in the URL"));
    }
    // Sorted by name, then by value, each pair once: as Twilio's own libraries do.
    let fields: BTreeSet<form::Field> = form::fields(signed.body).into_iter().collect();
    Ok(fields.into_iter().flat_map(|(name, value)| [name, value]).flatten().collect())
}

fn is_form(signed: &Signed<'_>) -> bool {
    let value = signed.headers.get(header::CONTENT_TYPE).map(HeaderValue::as_bytes);
    let essence = value.and_then(|value| value.split(|byte| *byte == b';').next());
    essence.is_some_and(|essence| {
        essence.trim_ascii().eq_ignore_ascii_case(b"application/x-www-form-urlencoded")
    })
}

/// The URL as it is, without its port, and with that of its scheme: Twilio signs one of them, and
/// says that it is not always the same.
fn urls(url: &str) -> Vec<String> {
    let as_is = || vec![url.to_owned()];
    let Some((scheme, rest)) = url.split_once("://") else {
        return as_is();
    };
    let (authority, target) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
    let digits = |port: &str| !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
    if let Some((host, _)) = authority.rsplit_once(':').filter(|(_, port)| digits(port)) {
        return vec![url.to_owned(), format!("{scheme}://{host}{target}")];
    }
    let port = if scheme == "https" { 443 } else { 80 };
    vec![url.to_owned(), format!("{scheme}://{authority}:{port}{target}")]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// C45
    #[test]
    fn the_port_of_a_url_comes_and_goes() {
        assert_eq!(urls("https://a/b?c"), ["https://a/b?c", "https://a:443/b?c"]);
        assert_eq!(urls("http://a"), ["http://a", "http://a:80"]);
        assert_eq!(urls("https://a:1/b"), ["https://a:1/b", "https://a/b"]);
        assert_eq!(urls("https://[::1]:8/b"), ["https://[::1]:8/b", "https://[::1]/b"]);
        assert_eq!(urls("https://[::1]/b"), ["https://[::1]/b", "https://[::1]:443/b"]);
        assert_eq!(urls("/b?x=http://a"), ["/b?x=http://a", "/b?x=http://a:80"]);
    }
}
