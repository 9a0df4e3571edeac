//! Standard Webhooks, which Svix and many others send: `v1` (HMAC) and `v1a` (Ed25519), each for
//! the secrets that are of its kind.
//!
//! The specification names its headers `webhook-*`; Svix and who delivers through it (Clerk, Resend)
//! name them `svix-*` ("Verifying webhooks manually", docs.svix.com). Signature, time and id of one
//! request are those of one family, and the key is the id of that family.

use std::time::Duration;

use http::HeaderName;

use super::carried::Carried;
use super::encoding::{Encoding, base64_key};
use super::header::{ENTRIES_MAX, covered, entries, signature};
use super::keys::{Hash, Key, Keyring, Numbered};
use super::part::Source;
use super::timestamp::TimestampFormat;
use super::verdict::{Place, Reason, Refused};
use super::{SecretError, Signed};

/// Checks `webhook-signature`, or `svix-signature` where that does not occur.
#[derive(Debug)]
pub(super) struct Check {
    shared: Keyring,
    public: Keyring,
    tolerance: Option<Duration>,
}

/// The names of one family of headers. They are never mixed.
struct Names {
    id: HeaderName,
    timestamp: HeaderName,
    signature: HeaderName,
}

/// By which a key selects the id that was signed.
pub(super) const ID: &str = "id";

const PUBLIC_PREFIX: &str = "whpk_";
const SHARED_PREFIX: &str = "whsec_";

impl Check {
    pub(super) fn new(
        secrets: &[Numbered<'_>],
        tolerance: Option<Duration>,
        prefixed: bool,
    ) -> Result<Self, SecretError> {
        let is_public =
            |numbered: &Numbered<'_>| numbered.secret.reveal().starts_with(PUBLIC_PREFIX);
        let (public, shared): (Vec<_>, Vec<_>) = secrets.iter().partition(|&n| is_public(n));
        let shared =
            Keyring::from_secrets(&shared, "base64, with or without `whsec_`", |secret| {
                let prefix = secret.strip_prefix(SHARED_PREFIX);
                let text = if prefixed { prefix } else { prefix.or(Some(secret)) };
                let bytes = text.and_then(base64_key).filter(|bytes| !bytes.is_empty());
                bytes.map(|bytes| Key::hmac(Hash::Sha256, &bytes)).into_iter().collect()
            })?;
        let public = Keyring::from_secrets(&public, "an Ed25519 key after `whpk_`", |secret| {
            let bytes = secret.strip_prefix(PUBLIC_PREFIX).and_then(base64_key);
            bytes.and_then(Key::ed25519).into_iter().collect()
        })?;
        Ok(Self { shared, public, tolerance })
    }

    pub(super) fn verify(&self, signed: &Signed<'_>) -> Result<usize, Refused> {
        let names = Names::of(signed);
        let list = signature(signed.headers, &names.signature)?;
        let id = covered(signed.headers, &names.id)?;
        let timestamp = covered(signed.headers, &names.timestamp)?;
        if id.contains(&b'.') {
            return Err(Reason::Ambiguous(Place::Header(names.id), '.').into());
        }
        let place = Place::Header(names.signature);
        let shared = signatures(list, b"v1,");
        let public = signatures(list, b"v1a,");
        if shared.len() + public.len() > ENTRIES_MAX {
            return Err(Reason::TooMany(place).into());
        }
        if shared.is_empty() && public.is_empty() {
            return Err(Reason::Prefix(place, "v1,".to_owned()).into());
        }
        let message = [id, b".", timestamp, b".", signed.body];
        let found = self.shared.find(&message, &shared);
        let found = found.or(self.public.find(&message, &public));
        let secret = found.ok_or(Reason::Mismatch(place))?;
        let place = Place::Header(names.timestamp);
        TimestampFormat::Seconds.check(timestamp, &place, signed, self.tolerance)?;
        Ok(secret)
    }
}

impl Names {
    const STANDARD: Self = Self {
        id: HeaderName::from_static("webhook-id"),
        timestamp: HeaderName::from_static("webhook-timestamp"),
        signature: HeaderName::from_static("webhook-signature"),
    };
    const SVIX: Self = Self {
        id: HeaderName::from_static("svix-id"),
        timestamp: HeaderName::from_static("svix-timestamp"),
        signature: HeaderName::from_static("svix-signature"),
    };

    /// The family whose signature is there; without any signature, the one whose id is.
    fn of(signed: &Signed<'_>) -> Self {
        let has = |name: &HeaderName| signed.headers.contains_key(name);
        let standard = Self::STANDARD;
        let svix = Self::SVIX;
        let is_svix = if has(&standard.signature) || has(&svix.signature) {
            !has(&standard.signature)
        } else {
            !has(&standard.id) && has(&svix.id)
        };
        if is_svix { svix } else { standard }
    }
}

/// Adds the id that is signed. Where the other family says another one, it is of no use: whoever
/// reads the request behind us may take either.
pub(super) fn carry(signed: &Signed<'_>, carried: &mut Carried) {
    let own = Names::of(signed).id;
    let lines = [Names::STANDARD.id, Names::SVIX.id].map(|name| signed.headers.get_all(name));
    let ids = lines.iter().flat_map(|lines| lines.iter().map(|id| id.as_bytes().trim_ascii()));
    let mut ids = ids.filter(|id| !id.is_empty());
    let Some(first) = ids.next().filter(|_| signed.headers.contains_key(own)) else {
        return;
    };
    if ids.all(|id| id == first) {
        carried.insert(ID, first);
    } else {
        let both = [Names::STANDARD.id, Names::SVIX.id].map(Source::Header);
        carried.insert_differing(ID, both.to_vec());
    }
}

/// The signatures of one version. Other versions are for other readers.
fn signatures(list: &[u8], version: &[u8]) -> Vec<Vec<u8>> {
    let written = entries(list, b" ").filter_map(|entry| entry.strip_prefix(version));
    written.filter_map(|text| Encoding::Base64.decode(text)).collect()
}
