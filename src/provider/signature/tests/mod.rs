//! Signatures of all senders, through [`Verifier::verify`].

mod division;
mod families;
mod lists;
mod methods;
mod plaid;
mod properties;
mod schemes;
mod settings;
mod sns;
mod times;
mod vectors;
mod words;

use std::collections::BTreeMap;
use std::sync::LazyLock;
use std::time::Duration;

use futures_util::FutureExt;
use hmac::{KeyInit, Mac};
use http::{HeaderMap, HeaderName, HeaderValue, Method};

use super::{Certificates, Settings, SignatureError, SignatureTable, Verified, Verifier};
use crate::clock::Clock;
use crate::operation::Timestamp;
use crate::provider::ReceivedRequest;
use crate::secret::Secret;

/// Every sender that signs, by name.
static SENDERS: LazyLock<BTreeMap<String, Settings>> = LazyLock::new(|| {
    #[derive(serde::Deserialize)]
    struct Sender {
        signature: SignatureTable,
    }
    let senders: BTreeMap<String, Sender> = toml::from_str(include_str!("senders.toml")).unwrap();
    let settings = |(name, sender): (String, Sender)| (name, sender.signature.settings().unwrap());
    senders.into_iter().map(settings).collect()
});

static CERTIFICATES: LazyLock<Certificates> =
    LazyLock::new(|| Certificates::new(Clock::system()).unwrap());

/// A request in the making.
#[derive(Debug, Clone)]
struct Request {
    method: Method,
    url: String,
    headers: HeaderMap,
    body: Vec<u8>,
    now: Timestamp,
}

impl Request {
    fn new(body: impl Into<Vec<u8>>) -> Self {
        Self {
            method: Method::POST,
            url: "https://hooks.example.test/in/hook?a=1".to_owned(),
            headers: HeaderMap::new(),
            body: body.into(),
            now: Timestamp(1_700_000_000_000),
        }
    }

    /// Adds a line, also where there is one of this name.
    fn header(mut self, name: &str, value: impl AsRef<[u8]>) -> Self {
        let name: HeaderName = name.parse().unwrap();
        self.headers.append(name, HeaderValue::from_bytes(value.as_ref()).unwrap());
        self
    }

    fn received(&self) -> ReceivedRequest<'_> {
        let Self { method, url, headers, body, now } = self;
        let public = url.split_once("://").and_then(|(scheme, rest)| {
            let authority = rest.find(['/', '?']).unwrap_or(rest.len());
            Some(url.split_at(scheme.len() + 3 + authority)).filter(|_| !url.starts_with('/'))
        });
        let (public_url, target) =
            public.map_or((None, url.as_str()), |(public, target)| (Some(public), target));
        ReceivedRequest { method, public_url, target, headers, body, now: *now }
    }

    /// The verdict on the request, with the tolerance of the sender itself.
    fn from(&self, sender: &str, secrets: &[&str]) -> Result<usize, SignatureError> {
        self.verify(&verifier(sender, secrets, None))
    }

    /// The verdict on the request. A check without certificates never waits.
    fn verify(&self, verifier: &Verifier) -> Result<usize, SignatureError> {
        self.verified(verifier).map(|verified| verified.secret)
    }

    fn verified(&self, verifier: &Verifier) -> Result<Verified, SignatureError> {
        verifier.verify(&self.received()).now_or_never().unwrap()
    }
}

fn verifier(sender: &str, secrets: &[&str], tolerance: Option<Duration>) -> Verifier {
    let secrets: Vec<_> = secrets.iter().map(|text| Secret::new((*text).to_owned())).collect();
    Verifier::new(&SENDERS[sender], &secrets, tolerance, &CERTIFICATES).unwrap()
}

#[expect(clippy::unnecessary_wraps, reason = "results are compared with it")]
fn valid(secret: usize) -> Result<usize, SignatureError> {
    Ok(secret)
}

/// Made with another library than the one that is checked.
fn hmac_sha256(key: &[u8], message: &[u8]) -> Vec<u8> {
    let mut mac = hmac::Hmac::<sha2::Sha256>::new_from_slice(key).unwrap();
    mac.update(message);
    mac.finalize().into_bytes().to_vec()
}

fn hmac_sha512(key: &[u8], message: &[u8]) -> Vec<u8> {
    let mut mac = hmac::Hmac::<sha2::Sha512>::new_from_slice(key).unwrap();
    mac.update(message);
    mac.finalize().into_bytes().to_vec()
}

fn base64(bytes: &[u8]) -> String {
    use base64::Engine;
    base64::engine::general_purpose::STANDARD.encode(bytes)
}
