//! What the operator says of a route.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use http::{HeaderName, Method, StatusCode, Uri};

use super::identify::{EventRule, FingerprintOver, FingerprintRule, KeyRule};
use super::paths;
use super::problem;
use super::selector::Selector;
use super::verify::Sender;
use crate::budget::Share;
use crate::idempotency::{Policy, RouteHandler, StepsPolicy};
use crate::operation::Outcome;
use crate::provider::Provider;
use crate::secret::Secret;
use crate::telemetry::MayCount;
use crate::upstream::{self, outcome};

/// A route at work.
#[derive(Debug)]
pub(super) struct Route {
    pub(super) settings: RouteSettings,
    pub(super) handler: Arc<RouteHandler>,
    pub(super) sender: Option<Sender>,
}

/// A public entry and what is done with what arrives there.
#[derive(Debug, Clone, PartialEq)]
pub struct RouteSettings {
    /// Stable: it is part of every operation id.
    pub name: Arc<str>,
    /// Which host it serves, lower case, without port; none: every host.
    pub host: Option<String>,
    /// Which paths it serves.
    pub path: PathPattern,
    /// How senders see it: for `X-Forwarded-*`.
    pub public_url: Option<Uri>,
    /// Which methods are deduplicated. GET, HEAD and OPTIONS pass unless they are named here; any
    /// other one that is not named is refused.
    pub methods: Vec<Method>,
    /// Who must receive it. Where there are several, who gets what is not deduplicated.
    pub upstream: upstream::Settings,
    /// The receivers, where there are several.
    pub steps: Option<StepsPolicy>,
    /// Whether it deduplicates at all.
    pub mode: Mode,
    /// Who sends, if the route says so.
    pub provider: Option<Arc<Provider>>,
    /// What the provider's signature is checked with, any one of them; none: it is not checked.
    pub secrets: Vec<Secret>,
    /// False: it is meant that nothing is checked.
    pub verify: bool,
    /// How far a signature's timestamp may be from now; none: as far as the provider says.
    pub tolerance: Option<Duration>,
    /// What identifies an operation.
    pub key: KeyRule,
    /// What a key is bound to.
    pub fingerprint: FingerprintRule,
    /// What is done with its operations.
    pub policy: Policy,
    /// The status that tells a copy that an attempt is in flight.
    pub in_flight_status: StatusCode,
    /// The status that tells a copy that the outcome is unknown.
    pub uncertain_status: StatusCode,
    /// Sent in place of a 5xx that the sender takes for final, where the event is not done.
    pub retry_status: Option<StatusCode>,
    /// What a refusal says beside its status.
    pub refusal_body: RefusalBody,
    /// The longest body of a request.
    pub request_bytes_max: usize,
    /// What happens to a request without a key.
    pub when_key_missing: WhenKeyMissing,
}

impl RouteSettings {
    /// What the sender gets in place of this status while its event is not done: `retry_status`
    /// where it would take a 5xx for final. Which are is a fact about the sender; where nothing is
    /// known of it, all are but that status itself.
    pub fn in_place_of(&self, status: StatusCode) -> StatusCode {
        let Some(retry) = self.retry_status.filter(|_| self.mode != Mode::Pass) else {
            return status;
        };
        let known = self.provider.as_deref().and_then(|sender| sender.facts.is_final(status));
        let is_final = status.is_server_error() && known.unwrap_or(true);
        if is_final { retry } else { status }
    }

    /// Whether anybody may send events to it: no signature is checked.
    pub fn is_unverified(&self) -> bool {
        self.secrets.is_empty() && self.mode != Mode::Pass
    }

    /// What its metrics show before it has happened.
    pub(super) fn may_count(&self) -> MayCount {
        let mut steps = self.steps.iter().flat_map(|steps| &steps.steps);
        MayCount {
            refusals: problem::CODES_OF_ROUTES,
            observed: self.mode == Mode::Observe,
            lookups: self.policy.lookup.is_some() || steps.any(|step| step.lookup.is_some()),
        }
    }

    /// Whether an upstream's answer with this status means that the event is done.
    pub(super) fn is_done_after(&self, status: StatusCode) -> bool {
        let is_done = |rule| outcome(rule, status) == Outcome::Succeeded;
        match &self.steps {
            None => is_done(&self.policy.outcome),
            Some(steps) => steps.steps.iter().any(|step| is_done(&step.outcome)),
        }
    }
}

/// What a refusal says beside its status.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RefusalBody {
    /// A problem document (RFC 9457).
    Problem,
    /// Nothing: some senders take a 401 for one only if its body is empty.
    None,
}

/// Methods that ask for nothing to be done: their requests pass unless the route names them.
pub(super) const PASSING: [Method; 3] = [Method::GET, Method::HEAD, Method::OPTIONS];

/// The paths of a route. Each is written in the one form that every receiver reads alike.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum PathPattern {
    /// This path alone.
    Exact(String),
    /// Written `/webhooks/*`, kept as `/webhooks`: this path and every one below it.
    Prefix(String),
}

impl PathPattern {
    /// What a text comes to, as the paths of a route, where every receiver decodes, resolves and
    /// cuts off what it can; none if it is no path. Only a text that comes to itself is one that
    /// all receivers read alike.
    pub fn plainest(text: &str) -> Option<Self> {
        let no_path = |c: char| c.is_control() || matches!(c, '*' | '?' | '#');
        let (path, is_prefix) = match text.strip_suffix("/*") {
            Some(path) => (path, true),
            None => (text, false),
        };
        let begins = path.starts_with('/') || (is_prefix && path.is_empty());
        if !begins || path.contains(no_path) {
            return None;
        }
        let path = paths::plainest(path)?;
        Some(if is_prefix {
            Self::Prefix(path.trim_end_matches('/').to_owned())
        } else {
            Self::Exact(path)
        })
    }

    /// What two patterns have in common that differ only in case or a slash at the end.
    #[must_use]
    pub fn folded(&self) -> Self {
        let fold = |path: &String| path.trim_end_matches('/').to_ascii_lowercase();
        match self {
            Self::Exact(path) => Self::Exact(fold(path)),
            Self::Prefix(path) => Self::Prefix(fold(path)),
        }
    }

    /// The path, without the mark of a prefix.
    pub(super) fn as_str(&self) -> &str {
        match self {
            Self::Exact(path) | Self::Prefix(path) => path,
        }
    }

    pub(super) fn to_lower_case(&self) -> Self {
        match self {
            Self::Exact(path) => Self::Exact(path.to_ascii_lowercase()),
            Self::Prefix(path) => Self::Prefix(path.to_ascii_lowercase()),
        }
    }
}

/// As it is written.
impl fmt::Display for PathPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exact(path) => f.write_str(path),
            Self::Prefix(path) => write!(f, "{path}/*"),
        }
    }
}

impl RouteSettings {
    /// The methods whose requests pass.
    pub fn passing_methods(&self) -> Vec<&'static str> {
        const NAMES: [&str; 3] = ["GET", "HEAD", "OPTIONS"];
        NAMES.into_iter().filter(|name| self.methods.iter().all(|it| it != name)).collect()
    }

    /// Whether the route, or the receiver in its place, reads this header: to find the key, to
    /// check the signature, to know a handshake.
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

/// What is done with the requests of a route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Each operation is done once.
    Enforce,
    /// Everything is forwarded; what would have been refused or replayed is reported.
    Observe,
    /// Everything is forwarded, and nothing is looked at.
    Pass,
}

/// What happens to a request in which no key is found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WhenKeyMissing {
    /// 400 `key-missing`.
    Refuse,
    /// It is forwarded and not deduplicated.
    Forward,
    /// Its body's SHA-256 is the key; an empty body has none.
    HashBody,
}

/// What the data plane allows all requests together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Requests at a time; above it: 503 `overloaded`.
    pub requests_in_flight_max: usize,
    /// Requests at a time whose body has not arrived yet; above it: 503 `overloaded`.
    pub bodies_pending_max: usize,
    /// The share of either that one peer may have.
    pub per_peer_max: Share,
    /// Bytes of all requests and answers in memory.
    pub buffered_bytes_max: usize,
    /// How long a request's whole body may take.
    pub body_timeout: Duration,
    /// Bytes per second of a body, on average since it began; below it: 408 `body-timeout`.
    pub body_rate_min: usize,
    /// How long the head of an upstream's answer may be.
    pub answer_head: upstream::AnswerHead,
}
