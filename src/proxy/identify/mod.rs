//! Identify: what a request is about. Finds its key, operation id and fingerprint.

mod error;
mod fingerprint;
mod header_key;
mod rules;

pub use error::IdentifyError;
pub use rules::{
    Compared, EventRule, FingerprintOver, FingerprintRule, KeyRule, Rules, WhenKeyMissing,
};
pub(super) use rules::{SAFE_METHODS, passes_as_safe};

use std::sync::Arc;

use http::Method;

use super::paths;
use super::selector::{InvalidReason, MissingReason, RequestView, Selector, Unread, body_digest};
use crate::operation::{Key, KeyKind, KeyPart, OperationId, OperationIdParts, Subject};

/// Where a key was found. The place decides what the fingerprint is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeySource {
    /// In a key header.
    Header,
    /// In an event that has a type.
    Event,
    /// In an event without a type.
    UntypedEvent,
    /// The key is the digest of the body.
    Body,
}

impl From<KeySource> for KeyKind {
    fn from(source: KeySource) -> Self {
        match source {
            KeySource::Header => Self::Header,
            KeySource::Event | KeySource::UntypedEvent => Self::Event,
            KeySource::Body => Self::Body,
        }
    }
}

/// What a request is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Identity {
    /// One operation that is to be done once.
    Keyed(Identified),
    /// Nothing that is deduplicated. The request has no key and gets no record.
    Passed(Passing),
}

/// Why a request is forwarded without being deduplicated.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Passing {
    /// The route deduplicates nothing.
    #[error("the route's `mode` is `pass`")]
    Mode,
    /// The request is a handshake: the sender asks whether the URL is ours, and tells no event.
    #[error("it is the handshake `{0}` of the route's provider")]
    Handshake(String),
    /// The method of the request asks the upstream for no change.
    #[error("its method is not among the route's `methods`")]
    Method,
    /// The request has no key, and the route forwards such requests.
    #[error("{0}")]
    KeyMissing(IdentifyError),
    /// The route would refuse the request, but it only observes.
    #[error("it would be refused, and the route only observes")]
    Observed,
}

impl Identity {
    /// Where the key was found, if there is one.
    pub const fn key_source(&self) -> Option<KeySource> {
        match self {
            Self::Keyed(identified) => Some(identified.from),
            Self::Passed(_) => None,
        }
    }
}

/// A request whose operation is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identified {
    /// What the request is about.
    pub subject: Arc<Subject>,
    /// Where the key was found.
    pub from: KeySource,
    /// The key as one text, as the sender and the upstream know it. Empty for a batch: the upstream
    /// would know no single text for its ids.
    pub key: String,
    /// The key for an upstream that deduplicates, too. It is the value of the key header without
    /// its quotes, if that value alone tells the operations of the route apart. Otherwise it is the
    /// operation id. It is always one word of visible ASCII.
    pub forward_key: String,
}

/// Finds out what a request is about. A pure function of the request and the rules.
///
/// # Errors
///
/// [`Unread::Missing`] if there is no key and the route refuses such requests. [`Unread::Invalid`]
/// if there is a key that cannot be used. Every route that enforces refuses such a request, because
/// a copy of it would not be recognised.
pub fn identify(rules: &Rules<'_>, request: &RequestView<'_>) -> Result<Identity, IdentifyError> {
    if passes_as_safe(rules.methods, request.method) {
        return Ok(Identity::Passed(Passing::Method));
    }
    match (keyed(rules, request), rules.when_key_missing) {
        (Err(error @ IdentifyError { why: Unread::Missing(_), .. }), WhenKeyMissing::Forward) => {
            Ok(Identity::Passed(Passing::KeyMissing(error)))
        }
        (keyed, _) => keyed.map(Identity::Keyed),
    }
}

/// The scope parts of a request's identity, each with its selector. They are shown to people.
///
/// # Errors
///
/// Those of [`identify`].
pub fn scope<'r>(
    rules: &Rules<'r>,
    request: &RequestView<'_>,
) -> Result<Vec<(&'r Selector, Vec<String>)>, IdentifyError> {
    let shown = |selector: &'r Selector| {
        let parts = read_or_digest(selector, rules, request)?;
        Ok((selector, parts.iter().map(ToString::to_string).collect()))
    };
    rules.key.scope.iter().map(shown).collect()
}

fn keyed(rules: &Rules<'_>, request: &RequestView<'_>) -> Result<Identified, IdentifyError> {
    // A key that the sender chose itself says more than what we derive from the event.
    let header = header_key::find(request.headers, &rules.key.headers);
    if let Some(key) = header.map_err(|reason| of_headers(rules, reason))? {
        let found = FoundKey { from: KeySource::Header, parts: &[&[key.as_ref().into()]] };
        return identified(rules, request, &found, &key);
    }
    let EventRule { source, id: id_at, kind: kind_at } = &rules.key.event;
    // The id of an event may never be absent, even if its selector ends in `?`.
    let id = id_at
        .read(request)
        .and_then(|id| if id.is_empty() { Err(MissingReason::Absent.into()) } else { Ok(id) });
    let id = match id {
        Err(Unread::Missing(_)) if rules.when_key_missing == WhenKeyMissing::HashBody => {
            return hashed(rules, request);
        }
        id => id.map_err(|why| IdentifyError::at(id_at, why, request.carried))?,
    };
    let kind = read_or_digest(kind_at, rules, request)?;
    let from = if kind.is_empty() { KeySource::UntypedEvent } else { KeySource::Event };
    let found = FoundKey { from, parts: &[&[source.as_str().into()], &id, &kind] };
    // An upstream knows no single text for the ids of a batch.
    let forwarded = if let [id] = id.as_slice() { id.as_str() } else { "" };
    identified(rules, request, &found, forwarded)
}

/// The error of all key headers together. It names each of them.
fn of_headers(rules: &Rules<'_>, reason: InvalidReason) -> IdentifyError {
    let names: Vec<_> = rules.key.headers.iter().map(|name| format!("header:{name}")).collect();
    IdentifyError { at: Some(names.join("|")), places: Vec::new(), why: reason.into() }
}

/// The parts that a selector reads. Under `hash-body` the digest of the body takes the place of a
/// part that is absent and not optional.
fn read_or_digest<'a>(
    selector: &Selector,
    rules: &Rules<'_>,
    request: &RequestView<'a>,
) -> Result<Vec<KeyPart<'a>>, IdentifyError> {
    let read = match (selector.read(request), rules.when_key_missing) {
        (Err(Unread::Missing(_)), WhenKeyMissing::HashBody) => {
            body_digest(request.body.bytes()).map(|digest| vec![KeyPart::Digest(digest)])
        }
        (read, _) => read,
    };
    read.map_err(|why| IdentifyError::at(selector, why, request.carried))
}

fn hashed(rules: &Rules<'_>, request: &RequestView<'_>) -> Result<Identified, IdentifyError> {
    let digest = body_digest(request.body.bytes());
    let id_at = &rules.key.event.id;
    let digest = digest.map_err(|why| IdentifyError::at(id_at, why, request.carried))?;
    let found = FoundKey { from: KeySource::Body, parts: &[&[digest.as_str().into()]] };
    identified(rules, request, &found, &digest)
}

/// The parts of a key, grouped by the place that each was read from.
struct FoundKey<'a> {
    from: KeySource,
    parts: &'a [&'a [KeyPart<'a>]],
}

/// The greatest length of all parts of an identity together, in bytes. The parts of a batch are not
/// counted: the length of the body bounds them, and only their digest is stored.
const PARTS_BYTES_MAX: usize = 64 * 1024;

fn check_length(scope: &[Vec<KeyPart<'_>>], key: &FoundKey<'_>) -> Result<(), IdentifyError> {
    let of_one = |parts: &[KeyPart<'_>]| match parts {
        [part] => part.as_str().len(),
        [] | [_, ..] => 0,
    };
    let scope: usize = scope.iter().map(|parts| of_one(parts)).sum();
    let key: usize = key.parts.iter().map(|parts| of_one(parts)).sum();
    if scope + key > PARTS_BYTES_MAX {
        let why = InvalidReason::AllTooLong.into();
        return Err(IdentifyError { at: None, places: Vec::new(), why });
    }
    Ok(())
}

fn identified(
    rules: &Rules<'_>,
    request: &RequestView<'_>,
    key: &FoundKey<'_>,
    forwarded: &str,
) -> Result<Identified, IdentifyError> {
    let scope = rules.key.scope.iter().map(|selector| read_or_digest(selector, rules, request));
    let scope = scope.collect::<Result<Vec<_>, _>>()?;
    check_length(&scope, key)?;
    // Below one prefix the path tells accounts or tenants apart. On an exact route it is always the
    // same.
    let path = rules.prefix.map(|_| paths::normal(request.path));
    let id = OperationId::derive(OperationIdParts {
        route: rules.route,
        method: request.method.as_str(),
        path: path.as_deref(),
        scope: &scope,
        from: key.from.into(),
        key: key.parts,
    });
    let subject = Subject {
        id,
        route: Arc::clone(rules.route),
        method: request.method.to_string(),
        path: request.path.to_owned(),
        key: Key::of(key.from.into(), key.parts),
        fingerprint: fingerprint::fingerprint(rules.fingerprint, key.from, request)?,
        mode: rules.mode,
    };
    let is_alone =
        key.from == KeySource::Header && is_header_alone(rules, request, path.as_deref());
    Ok(Identified {
        subject: Arc::new(subject),
        from: key.from,
        key: forwarded.to_owned(),
        forward_key: if is_alone { forwarded.to_owned() } else { id.to_string() },
    })
}

/// Whether a key header alone is the identity of an operation.
///
/// An upstream that deduplicates drops the second of two operations that come with one value. The
/// value of the header is therefore passed on for one kind of request only: a `POST` to the route's
/// own path, on a route without scope.
fn is_header_alone(rules: &Rules<'_>, request: &RequestView<'_>, path: Option<&str>) -> bool {
    let own = rules.prefix.map(|prefix| if prefix.is_empty() { "/" } else { prefix });
    rules.key.scope.is_empty() && request.method == Method::POST && own == path
}

#[cfg(test)]
mod tests;
