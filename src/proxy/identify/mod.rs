//! What a request is about: key, operation id, fingerprint.

mod fingerprint;
mod header_key;
mod reason;
mod view;

pub use reason::{IdentifyError, InvalidReason, MissingReason};
pub use view::{RequestView, Rules};

use std::sync::Arc;

use http::{HeaderName, Method};
use sha2::{Digest, Sha256};

use super::route::{PASSING, WhenKeyMissing};
use super::selector::Selector;
use crate::json::Pointer;
use crate::operation::{Asked, Key, KeyKind, KeyPart, OperationId, OperationIdParts};

/// Where the key of an operation is found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyRule {
    /// Headers that carry a key; looked at first.
    pub headers: Vec<HeaderName>,
    /// Else: the event's identity.
    pub event: EventRule,
    /// Further parts of the identity.
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
    Auto,
    /// The body.
    Body,
    /// These parts; none: nothing is compared.
    Parts(Vec<Selector>),
}

impl FingerprintRule {
    /// What is compared where the key was found in `from`: what `auto` comes to.
    pub fn compared(&self, from: KeyKind) -> Compared<'_> {
        match (&self.over, from) {
            (FingerprintOver::Auto, KeyKind::Header) | (FingerprintOver::Body, _) => {
                Compared::Body { without: &self.ignore }
            }
            (FingerprintOver::Auto, KeyKind::Event | KeyKind::Body) => Compared::Nothing,
            (FingerprintOver::Parts(parts), _) if parts.is_empty() => Compared::Nothing,
            (FingerprintOver::Parts(parts), _) => Compared::Parts(parts),
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
    Passed,
}

/// A request whose operation is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identified {
    /// What it asks to have done, ready for a claim.
    pub asked: Arc<Asked>,
    /// The key as one text, as its sender and the upstream know it; empty for the ids of a batch.
    pub key: String,
    /// The key for an upstream that deduplicates itself: a header's key without its quotes, an
    /// event's id, a body's digest. Where that is not one word of visible ASCII, the operation id;
    /// so it is always the value of a header.
    pub forward_key: String,
}

/// Finds out what a request is about. Looks at nothing but its arguments.
///
/// # Errors
///
/// [`IdentifyError::Missing`] if there is no key and the route does without neither by forwarding
/// nor by the body's digest; [`IdentifyError::Invalid`] if there is one that cannot be used, which
/// no route does without.
pub fn identify(rules: &Rules<'_>, request: &RequestView<'_>) -> Result<Identity, IdentifyError> {
    if is_passed(rules.methods, request.method) {
        return Ok(Identity::Passed);
    }
    match (keyed(rules, request), rules.when_key_missing) {
        (Err(IdentifyError::Missing(_)), WhenKeyMissing::Forward) => Ok(Identity::Passed),
        (keyed, _) => keyed.map(Identity::Keyed),
    }
}

fn is_passed(methods: &[Method], method: &Method) -> bool {
    PASSING.contains(method) && !methods.contains(method)
}

fn keyed(rules: &Rules<'_>, request: &RequestView<'_>) -> Result<Identified, IdentifyError> {
    if let Some(key) = header_key::find(request.headers, &rules.key.headers)? {
        let found = FoundKey { from: KeyKind::Header, parts: &[&[key.as_ref().into()]] };
        return identified(rules, request, &found, &key);
    }
    match (event(&rules.key.event, request), rules.when_key_missing) {
        (Err(IdentifyError::Missing(_)), WhenKeyMissing::HashBody) => hashed(rules, request),
        (Err(error), _) => Err(error),
        (Ok((id, kind)), _) => {
            let source = [rules.key.event.source.as_str().into()];
            let found = FoundKey { from: KeyKind::Event, parts: &[&source, &id, &kind] };
            // The ids of a batch together are no word that an upstream would know.
            let forwarded = if let [id] = id.as_slice() { id.as_str() } else { "" };
            identified(rules, request, &found, forwarded)
        }
    }
}

/// The event's id and type. Without an id there is no event, whatever `?` says.
fn event<'a>(rule: &EventRule, request: &RequestView<'a>) -> Result<EventParts<'a>, IdentifyError> {
    let id = rule.id.read(request)?;
    if id.is_empty() {
        return Err(MissingReason::Absent.into());
    }
    Ok((id, rule.kind.read(request)?))
}

type EventParts<'a> = (Vec<KeyPart<'a>>, Vec<KeyPart<'a>>);

fn hashed(rules: &Rules<'_>, request: &RequestView<'_>) -> Result<Identified, IdentifyError> {
    if request.body.is_empty() {
        return Err(MissingReason::EmptyBody.into());
    }
    let digest = hex::encode(Sha256::digest(request.body));
    let found = FoundKey { from: KeyKind::Body, parts: &[&[digest.as_str().into()]] };
    identified(rules, request, &found, &digest)
}

/// The parts of a key, grouped by where each was read.
struct FoundKey<'a> {
    from: KeyKind,
    parts: &'a [&'a [KeyPart<'a>]],
}

fn identified(
    rules: &Rules<'_>,
    request: &RequestView<'_>,
    key: &FoundKey<'_>,
    forwarded: &str,
) -> Result<Identified, IdentifyError> {
    let scope = rules.key.scope.iter().map(|selector| selector.read(request));
    let scope = scope.collect::<Result<Vec<_>, _>>()?;
    // No route can have this name: names of routes hold no colon.
    let observed = rules.observes.then(|| format!("{}:observed", rules.route));
    let id = OperationId::derive(OperationIdParts {
        route: observed.as_deref().unwrap_or(rules.route),
        method: request.method.as_str(),
        path: rules.path_counts.then_some(request.path),
        scope: &scope,
        from: key.from,
        key: key.parts,
    });
    let asked = Asked {
        id,
        route: Arc::clone(rules.route),
        method: request.method.to_string(),
        path: request.path.to_owned(),
        key: Key::of(key.from, key.parts),
        fingerprint: fingerprint::fingerprint(rules.fingerprint, key.from, request)?,
    };
    let (key, forward_key) = (forwarded.to_owned(), forward_key(forwarded, id));
    Ok(Identified { asked: Arc::new(asked), key, forward_key })
}

/// The operation id stands in where the text could not arrive as it is: every operation has its
/// own, which is all that an upstream's deduplication needs.
fn forward_key(text: &str, id: OperationId) -> String {
    let is_word = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic());
    if is_word { text.to_owned() } else { id.to_string() }
}

#[cfg(test)]
mod tests;
