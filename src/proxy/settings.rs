//! What an operator configures: a route, and the limits of all routes together.

use std::sync::Arc;
use std::time::Duration;

use http::{HeaderName, Method, StatusCode, Uri};

use super::identify::{
    EventRule, FingerprintOver, FingerprintRule, KeyRule, Rules, WhenKeyMissing,
};
use super::path_pattern::PathPattern;
use super::selector::Selector;
use crate::budget::Share;
use crate::idempotency::{Policy, StepsPolicy};
use crate::operation::RequestMode;
use crate::provider::Provider;
use crate::secret::Secret;
use crate::upstream;

/// A route: a public entry, and what is done with the requests that arrive there.
#[derive(Debug, Clone, PartialEq)]
pub struct RouteSettings {
    /// Its name. It is a part of every operation id: under another name every event is new.
    pub name: Arc<str>,
    /// The host that it serves, in lower case and without port. None serves every host.
    pub host: Option<String>,
    /// The paths that it serves.
    pub path: PathPattern,
    /// The URL that senders use, for `X-Forwarded-*` and for signatures that cover the URL.
    pub public_url: Option<Uri>,
    /// The methods that are deduplicated. GET, HEAD and OPTIONS are forwarded without a key unless
    /// they are named here. Any other method that is not named is refused.
    pub methods: Vec<Method>,
    /// The upstream. On a route with steps it gets only the requests that are not deduplicated.
    pub upstream: upstream::Settings,
    /// The steps, on a route that has several upstreams.
    pub steps: Option<StepsPolicy>,
    /// Whether it enforces, only observes, or forwards everything.
    pub mode: Mode,
    /// The kind of sender, if the route names one.
    pub provider: Option<Arc<Provider>>,
    /// The secrets of the provider's signature. Any one of them may have signed, so that secrets
    /// can be rotated. Without a secret the signature is not checked.
    pub secrets: Vec<Secret>,
    /// False if the operator has said that the signature is not to be checked.
    pub verify: bool,
    /// How far the timestamp of a signature may be from now. None takes the provider's tolerance.
    pub tolerance: Option<Duration>,
    /// What identifies an operation.
    pub key: KeyRule,
    /// What a key is bound to.
    pub fingerprint: FingerprintRule,
    /// How its operations are claimed, forwarded and remembered.
    pub policy: Policy,
    /// The status that tells a copy that an attempt is in flight.
    pub in_flight_status: StatusCode,
    /// The status that tells a copy that the outcome is unknown.
    pub uncertain_status: StatusCode,
    /// The status that replaces a 5xx which the sender takes for final, if the event is not done.
    pub retry_status: Option<StatusCode>,
    /// The body of its refusals.
    pub refusal_body: RefusalBody,
    /// The greatest length of a request's body, in bytes.
    pub request_bytes_max: usize,
    /// What happens to a request without a key.
    pub when_key_missing: WhenKeyMissing,
}

impl RouteSettings {
    /// The settings that decide what a request is about.
    pub fn rules(&self) -> Rules<'_> {
        Rules {
            route: &self.name,
            mode: match self.mode {
                // This is set to true once the signature of the request is known to be valid.
                Mode::Observe => RequestMode::Observe { genuine: false },
                Mode::Enforce | Mode::Pass => RequestMode::Enforce,
            },
            prefix: match &self.path {
                PathPattern::Exact(_) => None,
                PathPattern::Prefix(prefix) => Some(prefix),
            },
            methods: &self.methods,
            key: &self.key,
            fingerprint: &self.fingerprint,
            when_key_missing: self.when_key_missing,
        }
    }

    /// The status that the sender gets in place of this one while its event is not done.
    ///
    /// `retry_status` replaces a 5xx that the sender takes for final. Which statuses are final is a
    /// fact about the sender. If nothing is known about the sender, every 5xx counts as final.
    pub fn in_place_of(&self, status: StatusCode) -> StatusCode {
        let Some(retry) = self.retry_status.filter(|_| self.mode != Mode::Pass) else {
            return status;
        };
        // Zendesk, for example, takes a 502 and a 504 for final (its page says which it retries).
        let known = self.provider.as_deref().and_then(|sender| sender.facts.is_final(status));
        let is_final = status.is_server_error() && known.unwrap_or(true);
        if is_final { retry } else { status }
    }

    /// Whether anybody may send events to it, because no signature is checked.
    pub fn is_unverified(&self) -> bool {
        self.secrets.is_empty() && self.mode != Mode::Pass
    }

    /// The methods whose requests are forwarded without a key.
    pub fn passing_methods(&self) -> Vec<&'static str> {
        const NAMES: [&str; 3] = ["GET", "HEAD", "OPTIONS"];
        NAMES.into_iter().filter(|name| self.methods.iter().all(|it| it != name)).collect()
    }

    /// Whether the route reads this header: to find the key, to check the signature, or to
    /// recognise a handshake. The upstream reads such headers too, if it checks the signature
    /// again.
    pub(super) fn reads_header(&self, name: &HeaderName) -> bool {
        let EventRule { id, kind, .. } = &self.key.event;
        let compared: &[Selector] = match &self.fingerprint.over {
            FingerprintOver::Parts(parts) => parts,
            FingerprintOver::Auto { .. } | FingerprintOver::Body => &[],
        };
        let mut selectors = [id, kind].into_iter().chain(&self.key.scope).chain(compared);
        self.key.headers.contains(name)
            || selectors.any(|selector| selector.reads_header(name))
            || self.provider.as_ref().is_some_and(|provider| provider.reads_header(name))
    }
}

/// The body of a refusal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RefusalBody {
    /// A problem document (RFC 9457).
    Problem,
    /// An empty body: some senders accept a 401 only without one (Xero's "intent to receive").
    None,
}

/// How much of its work Onceward does on a route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Each operation is forwarded once.
    Enforce,
    /// Every request that the route takes is forwarded, within the limits. Requests that would have
    /// been refused or replayed are logged.
    Observe,
    /// Every request that the route takes is forwarded, within the limits. Neither signature nor
    /// key is read.
    Pass,
}

/// The limits of all routes together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The most requests at a time. Further requests get 503 `overloaded`.
    pub requests_in_flight_max: usize,
    /// The most requests at a time whose body has not arrived yet. Further requests get 503
    /// `overloaded`.
    pub bodies_pending_max: usize,
    /// The share of the places of these two limits that one peer may have.
    pub per_peer_max: Share,
    /// The most bytes of all requests and answers in memory. Further requests get 503 `overloaded`.
    pub buffered_bytes_max: usize,
    /// How long the whole body of a request may take. A slower request gets 408 `body-timeout`.
    pub body_timeout: Duration,
    /// The least rate of a body in bytes per second, on average since it began. A slower request
    /// gets 408 `body-timeout`.
    pub body_rate_min: usize,
    /// The greatest head of an upstream's answer.
    pub answer_head: upstream::AnswerHeadLimits,
}
