//! The settings of a route that decide what a request is about.

use std::sync::Arc;

use http::{HeaderName, Method};

use super::KeySource;
use crate::json::Pointer;
use crate::operation::RequestMode;
use crate::proxy::selector::Selector;

/// All settings of a route that identification reads.
#[derive(Debug, Clone, Copy)]
pub struct Rules<'a> {
    /// Name of the route.
    pub route: &'a Arc<str>,
    /// Whether the route enforces or only observes.
    pub mode: RequestMode,
    /// The prefix of a prefix route. On such a route the path of a request is a part of its
    /// identity.
    pub prefix: Option<&'a str>,
    /// The methods that are deduplicated.
    pub methods: &'a [Method],
    /// What identifies an operation.
    pub key: &'a KeyRule,
    /// What a key is bound to.
    pub fingerprint: &'a FingerprintRule,
    /// What happens to a request without a key.
    pub when_key_missing: WhenKeyMissing,
}

/// Where the key of an operation is found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyRule {
    /// Headers that carry a key. They are read first.
    pub headers: Vec<HeaderName>,
    /// The identity of the event, read where no key header is present.
    pub event: EventRule,
    /// Further parts of the identity: first those of the route's preset, then the route's own.
    pub scope: Vec<Selector>,
}

/// The identity of an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventRule {
    /// The source of the event: a fixed text, by default the route's name.
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
    /// The body if the key came from a header. Nothing if the key came from the event or the body.
    Auto {
        /// Whether the body of an event without a type is compared too. If nothing is known about a
        /// sender, two of its events about one thing may have the same id.
        untyped_events: bool,
    },
    /// The body.
    Body,
    /// These parts. An empty list compares nothing.
    Parts(Vec<Selector>),
}

/// What a fingerprint is over for one request: [`FingerprintOver`] with `auto` decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compared<'r> {
    /// Two requests under one key are never told apart.
    Nothing,
    /// The body.
    Body {
        /// JSON members that are left out.
        without: &'r [Pointer],
    },
    /// These parts.
    Parts(&'r [Selector]),
}

impl FingerprintRule {
    /// What is compared for a key that was found in `from`.
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

/// What happens to a request in which no key is found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WhenKeyMissing {
    /// 400 `key-missing`.
    Refuse,
    /// It is forwarded and not deduplicated.
    Forward,
    /// The SHA-256 of its body is the key. An empty body is no key.
    HashBody,
}

/// Methods whose requests are forwarded without a key, unless the route names them in `methods`:
/// senders use them to probe a URL, and they ask the upstream for no change (RFC 9110, 9.2.1).
pub(in crate::proxy) const SAFE_METHODS: [Method; 3] = [Method::GET, Method::HEAD, Method::OPTIONS];

/// Whether a request of this method is forwarded without a key, because the method is safe and not
/// among the route's `methods`.
pub(in crate::proxy) fn passes_as_safe(methods: &[Method], method: &Method) -> bool {
    SAFE_METHODS.contains(method) && !methods.contains(method)
}
