//! Standard Webhooks, which Svix and many others send: `v1` signatures (HMAC) for `whsec_` secrets
//! and `v1a` signatures (Ed25519) for `whpk_` keys.
//!
//! The specification (standard-webhooks/standard-webhooks `spec/standard-webhooks.md`) names its
//! headers `webhook-*`. Svix, and senders that deliver through it (Clerk, Resend), name them
//! `svix-*` ("Verifying webhooks manually", docs.svix.com). Signature, timestamp and id of one
//! request are read from one family, and so is the key. If they were mixed, one captured signature
//! of one family would pass with any id in the other family's header, and run again.

use std::time::Duration;

use http::HeaderName;

use super::carried::Carried;
use super::encoding::{Encoding, base64_key};
use super::header::{covered, entries, signature};
use super::keys::{Hash, Key, Keyring, NumberedSecret, SecretError};
use super::part::Selector;
use super::profile::Profile;
use super::timestamp_format::TimestampFormat;
use super::verdict::{InvalidReason, Location, SIGNATURES_MAX, SignatureError};
use crate::provider::ReceivedRequest;

/// Checks `webhook-signature`, or `svix-signature` where that does not occur.
#[derive(Debug)]
pub(super) struct StandardVerifier {
    shared: Keyring,
    public: Keyring,
    tolerance: Option<Duration>,
}

/// The headers of one family.
struct HeaderFamily {
    id: HeaderName,
    timestamp: HeaderName,
    signature: HeaderName,
}

/// The name by which a key selects the id that was signed.
pub(super) const ID: &str = "id";

pub(super) const PROFILE: Profile = Profile {
    signed_headers: &["webhook-id", "webhook-timestamp", "svix-id", "svix-timestamp"],
    header_prefixes: &["webhook-", "svix-"],
    has_timestamp: true,
    carries: &[ID],
    carry: Some(carry),
    ..Profile::OF_BODY
};

const PUBLIC_PREFIX: &str = "whpk_";
const SHARED_PREFIX: &str = "whsec_";

impl StandardVerifier {
    pub(super) fn new(
        secrets: &[NumberedSecret<'_>],
        tolerance: Option<Duration>,
        prefixed: bool,
    ) -> Result<Self, SecretError> {
        let is_public =
            |numbered: &NumberedSecret<'_>| numbered.secret.reveal().starts_with(PUBLIC_PREFIX);
        let (public, shared): (Vec<_>, Vec<_>) = secrets.iter().partition(|&n| is_public(n));
        let shared =
            Keyring::from_secrets(&shared, "base64, with or without `whsec_`", |secret| {
                let prefix = secret.strip_prefix(SHARED_PREFIX);
                // GitLab takes any text as a token, which is no signing secret, and `whsec_` with
                // base64 as a signing secret.
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

    pub(super) fn verify(&self, received: &ReceivedRequest<'_>) -> Result<usize, SignatureError> {
        let names = HeaderFamily::of(received);
        let list = signature(received.headers, &names.signature)?;
        let id = covered(received.headers, &names.id)?;
        let timestamp = covered(received.headers, &names.timestamp)?;
        // The signed text is `id.timestamp.body`. With a `.` in the id, one captured signature
        // would fit another id and timestamp.
        if id.contains(&b'.') {
            return Err(InvalidReason::Ambiguous(Location::Header(names.id), '.').into());
        }
        let location = Location::Header(names.signature);
        let shared = signatures(list, b"v1,");
        let public = signatures(list, b"v1a,");
        if shared.len() + public.len() > SIGNATURES_MAX {
            return Err(InvalidReason::TooMany(location).into());
        }
        if shared.is_empty() && public.is_empty() {
            return Err(InvalidReason::Prefix(location, "v1,".to_owned()).into());
        }
        let message = [id, b".", timestamp, b".", received.body];
        let found = self.shared.find(&message, &shared);
        // A sender that moves from HMAC to Ed25519 sends both for a while.
        let found = found.or(self.public.find(&message, &public));
        let secret = found.ok_or(InvalidReason::Mismatch(location))?;
        let location = Location::Header(names.timestamp);
        TimestampFormat::Seconds.check(timestamp, &location, received, self.tolerance)?;
        Ok(secret)
    }
}

impl HeaderFamily {
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

    /// The family of which the signature is present. Without any signature, as in observe mode, the
    /// family of which the id is present.
    fn of(received: &ReceivedRequest<'_>) -> Self {
        let has = |name: &HeaderName| received.headers.contains_key(name);
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

/// Adds the id that is signed. Where the other family of headers has another id, the value is of no
/// use, because the upstream may read either.
fn carry(received: &ReceivedRequest<'_>, carried: &mut Carried) {
    let own = HeaderFamily::of(received).id;
    let lines = [HeaderFamily::STANDARD.id, HeaderFamily::SVIX.id]
        .map(|name| received.headers.get_all(name));
    let ids = lines.iter().flat_map(|lines| lines.iter().map(|id| id.as_bytes().trim_ascii()));
    let mut ids = ids.filter(|id| !id.is_empty());
    let Some(first) = ids.next().filter(|_| received.headers.contains_key(own)) else {
        return;
    };
    if ids.all(|id| id == first) {
        carried.insert(ID, first);
    } else {
        let both = [HeaderFamily::STANDARD.id, HeaderFamily::SVIX.id].map(Selector::Header);
        carried.insert_differing(ID, both.to_vec());
    }
}

/// The signatures of one version. A sender may add versions that this check does not know.
fn signatures(list: &[u8], version: &[u8]) -> Vec<Vec<u8>> {
    let written = entries(list, b" ").filter_map(|entry| entry.strip_prefix(version));
    written.filter_map(|text| Encoding::Base64.decode(text)).collect()
}
