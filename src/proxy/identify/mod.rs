//! What a request is about: key, operation id, fingerprint.

mod fingerprint;
mod header_key;
mod reason;
mod view;

pub use reason::{IdentifyError, InvalidReason, MissingReason, Unread};
pub use view::{RequestView, Rules};

use std::sync::Arc;

use http::{HeaderName, Method};
use sha2::{Digest, Sha256};

use super::paths;
use super::route::{PASSING, WhenKeyMissing};
use super::selector::Selector;
use crate::json::Pointer;
use crate::operation::{Key, KeyKind, KeyPart, OperationId, OperationIdParts, OperationRequest};

/// Where the key of an operation is found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyRule {
    /// Headers that carry a key; looked at first.
    pub headers: Vec<HeaderName>,
    /// Else: the event's identity.
    pub event: EventRule,
    /// Further parts of the identity: those of the route's preset, then the route's own.
    pub scope: Vec<Selector>,
}

/// The identity of an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventRule {
    /// Who the event comes from: a fixed text, by default the route's name.
    pub source: String,
    /// The event's id.
    pub id: Selector,
    /// The event's type.
    pub kind: Selector,
}

/// What a key is bound to, so that it cannot stand for two requests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FingerprintRule {
    /// What is compared.
    pub over: FingerprintOver,
    /// JSON members that are left out.
    pub ignore: Vec<Pointer>,
}

/// What a fingerprint is over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FingerprintOver {
    /// The body where the key came from a header, nothing where it came from the event or body.
    Auto {
        /// Whether it is also over the body of an event without a type. Of a sender that nobody
        /// here knows, two events about one thing may have one id.
        untyped_events: bool,
    },
    /// The body.
    Body,
    /// These parts; none: nothing is compared.
    Parts(Vec<Selector>),
}

impl FingerprintRule {
    /// What is compared where the key was found in `from`: what `auto` comes to.
    pub fn compared(&self, from: KeySource) -> Compared<'_> {
        match (&self.over, from) {
            (FingerprintOver::Body, _)
            | (FingerprintOver::Auto { .. }, KeySource::Header)
            | (FingerprintOver::Auto { untyped_events: true }, KeySource::UntypedEvent) => {
                Compared::Body { without: &self.ignore }
            }
            (
                FingerprintOver::Auto { .. },
                KeySource::Event | KeySource::UntypedEvent | KeySource::Body,
            ) => Compared::Nothing,
            (FingerprintOver::Parts(parts), _) if parts.is_empty() => Compared::Nothing,
            (FingerprintOver::Parts(parts), _) => Compared::Parts(parts),
        }
    }
}

/// Where a key was found, as far as it decides what is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeySource {
    /// In a key header.
    Header,
    /// In an event that has a type.
    Event,
    /// In an event without a type.
    UntypedEvent,
    /// It is the digest of the body.
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

/// What a fingerprint comes to be over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compared<'r> {
    /// Two requests under one key are never told apart.
    Nothing,
    /// The body, without these members if it is JSON.
    Body {
        /// They are left out.
        without: &'r [Pointer],
    },
    /// These parts.
    Parts(&'r [Selector]),
}

/// What a request turned out to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Identity {
    /// One operation, to be done once.
    Keyed(Identified),
    /// Nothing that is deduplicated: it has no key and gets no record.
    Passed(Passing),
}

/// Why a request is forwarded without being deduplicated.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Passing {
    /// Nothing of this route is deduplicated.
    #[error("the route's `mode` is `pass`")]
    Mode,
    /// It is no event but a question about the URL.
    #[error("it is the handshake `{0}` of the route's provider")]
    Handshake(String),
    /// Requests of its method ask for nothing to be done.
    #[error("its method is not among the route's `methods`")]
    Method,
    /// The route forwards what has no key.
    #[error("{0}")]
    KeyMissing(IdentifyError),
    /// It would be refused, and the route only observes.
    #[error("it would be refused, and the route only observes")]
    Observed,
}

impl Identity {
    /// Where its key was found, if it has one.
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
    /// What it asks to have done, ready for a claim.
    pub asked: Arc<OperationRequest>,
    /// Where its key was found.
    pub from: KeySource,
    /// The key as one text, as its sender and the upstream know it; empty for the ids of a batch.
    pub key: String,
    /// What an upstream that deduplicates itself gets: a header's key without its quotes where that
    /// alone tells the operations of the route apart, else the operation id. It is always one word of
    /// visible ASCII.
    pub forward_key: String,
}

/// Finds out what a request is about. Looks at nothing but its arguments.
///
/// # Errors
///
/// [`Unread::Missing`] if there is no key and the route does without neither by forwarding nor by
/// the body's digest; [`Unread::Invalid`] if there is one that cannot be used, which no route does
/// without.
pub fn identify(rules: &Rules<'_>, request: &RequestView<'_>) -> Result<Identity, IdentifyError> {
    if is_passed(rules.methods, request.method) {
        return Ok(Identity::Passed(Passing::Method));
    }
    match (keyed(rules, request), rules.when_key_missing) {
        (Err(error @ IdentifyError { why: Unread::Missing(_), .. }), WhenKeyMissing::Forward) => {
            Ok(Identity::Passed(Passing::KeyMissing(error)))
        }
        (keyed, _) => keyed.map(Identity::Keyed),
    }
}

/// The further parts of a request's identity, each with its selector, for people.
///
/// # Errors
///
/// As [`identify`].
pub fn scope<'r>(
    rules: &Rules<'r>,
    request: &RequestView<'_>,
) -> Result<Vec<(&'r Selector, Vec<String>)>, IdentifyError> {
    let shown = |selector: &'r Selector| {
        let parts = needed(selector, rules, request)?;
        Ok((selector, parts.iter().map(ToString::to_string).collect()))
    };
    rules.key.scope.iter().map(shown).collect()
}

pub(super) fn is_passed(methods: &[Method], method: &Method) -> bool {
    PASSING.contains(method) && !methods.contains(method)
}

fn keyed(rules: &Rules<'_>, request: &RequestView<'_>) -> Result<Identified, IdentifyError> {
    let header = header_key::find(request.headers, &rules.key.headers);
    if let Some(key) = header.map_err(|reason| of_headers(rules, reason))? {
        let found = FoundKey { from: KeySource::Header, parts: &[&[key.as_ref().into()]] };
        return identified(rules, request, &found, &key);
    }
    let EventRule { source, id: id_at, kind: kind_at } = &rules.key.event;
    // Without an id there is no event, whatever `?` says.
    let id = id_at
        .read(request)
        .and_then(|id| if id.is_empty() { Err(MissingReason::Absent.into()) } else { Ok(id) });
    let id = match id {
        Err(Unread::Missing(_)) if rules.when_key_missing == WhenKeyMissing::HashBody => {
            return hashed(rules, request);
        }
        id => id.map_err(|why| IdentifyError::at(id_at, why, request.carried))?,
    };
    let kind = needed(kind_at, rules, request)?;
    let from = if kind.is_empty() { KeySource::UntypedEvent } else { KeySource::Event };
    let found = FoundKey { from, parts: &[&[source.as_str().into()], &id, &kind] };
    // The ids of a batch together are no word that an upstream would know.
    let forwarded = if let [id] = id.as_slice() { id.as_str() } else { "" };
    identified(rules, request, &found, forwarded)
}

/// What is wrong with the key headers.
fn of_headers(rules: &Rules<'_>, reason: InvalidReason) -> IdentifyError {
    let names: Vec<_> = rules.key.headers.iter().map(|name| format!("header:{name}")).collect();
    IdentifyError { at: Some(names.join("|")), places: Vec::new(), why: reason.into() }
}

/// The parts that a selector names. Under `hash-body` the body's digest takes the place of those
/// that are absent and may not be.
fn needed<'a>(
    selector: &Selector,
    rules: &Rules<'_>,
    request: &RequestView<'a>,
) -> Result<Vec<KeyPart<'a>>, IdentifyError> {
    let read = match (selector.read(request), rules.when_key_missing) {
        (Err(Unread::Missing(_)), WhenKeyMissing::HashBody) => {
            digest(request.body).map(|digest| vec![KeyPart::Digest(digest)])
        }
        (read, _) => read,
    };
    read.map_err(|why| IdentifyError::at(selector, why, request.carried))
}

fn hashed(rules: &Rules<'_>, request: &RequestView<'_>) -> Result<Identified, IdentifyError> {
    let digest = digest(request.body);
    let id_at = &rules.key.event.id;
    let digest = digest.map_err(|why| IdentifyError::at(id_at, why, request.carried))?;
    let found = FoundKey { from: KeySource::Body, parts: &[&[digest.as_str().into()]] };
    identified(rules, request, &found, &digest)
}

/// All empty bodies have the same digest, whatever they are about.
fn digest(body: &[u8]) -> Result<String, Unread> {
    if body.is_empty() {
        return Err(MissingReason::EmptyBody.into());
    }
    Ok(hex::encode(Sha256::digest(body)))
}

/// The parts of a key, grouped by where each was read.
struct FoundKey<'a> {
    from: KeySource,
    parts: &'a [&'a [KeyPart<'a>]],
}

/// What all parts of an identity may have together. Those of a batch are not counted: they are
/// bounded by the body, and nothing of them is kept but a digest.
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
    let scope = rules.key.scope.iter().map(|selector| needed(selector, rules, request));
    let scope = scope.collect::<Result<Vec<_>, _>>()?;
    check_length(&scope, key)?;
    let path = rules.prefix.map(|_| paths::normal(request.path));
    let id = OperationId::derive(OperationIdParts {
        route: rules.route,
        method: request.method.as_str(),
        path: path.as_deref(),
        scope: &scope,
        from: key.from.into(),
        key: key.parts,
    });
    let asked = OperationRequest {
        id,
        route: Arc::clone(rules.route),
        method: request.method.to_string(),
        path: request.path.to_owned(),
        key: Key::of(key.from.into(), key.parts),
        fingerprint: fingerprint::fingerprint(rules.fingerprint, key.from, request)?,
        mode: rules.mode,
    };
    let is_alone = key.from == KeySource::Header && is_plain(rules, request, path.as_deref());
    Ok(Identified {
        asked: Arc::new(asked),
        from: key.from,
        key: forwarded.to_owned(),
        forward_key: if is_alone { forwarded.to_owned() } else { id.to_string() },
    })
}

/// Whether a key header alone is the identity. An upstream drops the second of two operations that
/// come with one value, so that the key as it is stands for no more than one of them: the `POST` to
/// the path that the route itself has.
fn is_plain(rules: &Rules<'_>, request: &RequestView<'_>, path: Option<&str>) -> bool {
    let own = rules.prefix.map(|prefix| if prefix.is_empty() { "/" } else { prefix });
    rules.key.scope.is_empty() && request.method == Method::POST && own == path
}

#[cfg(test)]
mod tests;
