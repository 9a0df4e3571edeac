//! What a request would be taken for, and how that is told.

use std::fmt::{self, Write as _};

use http::request::Parts;
use serde::Serialize;

use crate::operation::KeyKind;
use crate::provider::signature;
use crate::proxy::{Compared, Identified, Identity, KeySource, Mode, Opened, Passing};
use crate::proxy::{RequestView, RouteSettings, Rules, identify, scope};
use crate::telemetry::Disposition;

/// Why a request would be refused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(in crate::cli) struct Refused {
    /// The code of the problem that the sender would get.
    pub(in crate::cli) code: &'static str,
    /// The same in a sentence.
    pub(in crate::cli) detail: String,
}

/// What a request would be taken for, as far as that does not depend on the store.
#[derive(Debug, Serialize)]
pub(super) struct Explanation {
    /// Name of the route.
    route: Option<String>,
    /// Who sends, if the route says so.
    provider: Option<String>,
    signature: Signature,
    key: Option<ShownKey>,
    operation: Option<String>,
    fingerprint: Option<String>,
    /// `executed` stands for a claim: what the store holds may make it anything else.
    disposition: &'static str,
    /// What it would be if the route did more than observe.
    #[serde(skip_serializing_if = "Option::is_none")]
    observed: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    refusal: Option<Refused>,
    /// Why it is forwarded without being deduplicated.
    #[serde(skip_serializing_if = "Option::is_none")]
    passed_because: Option<String>,
    /// What the fingerprint is over, and the members that it leaves out.
    #[serde(skip)]
    compared: (String, String),
}

/// The parts of an operation's identity.
#[derive(Debug, Serialize)]
struct ShownKey {
    from: KeyKind,
    parts: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    scope: Vec<ScopePart>,
    /// Selectors of parts that may be absent, and are.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    absent: Vec<String>,
}

/// What one of the selectors in `key.scope` has found.
#[derive(Debug, Serialize)]
struct ScopePart {
    selector: String,
    parts: Vec<String>,
}

/// What came of the check of the sender's signature.
#[derive(Debug, Serialize)]
pub(super) struct Signature {
    verdict: &'static str,
    reason: Option<String>,
    /// What may be wrong with the captured file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) hint: Option<&'static str>,
}

impl Signature {
    const fn told(verdict: &'static str, reason: Option<String>) -> Self {
        Self { verdict, reason, hint: None }
    }

    /// Whether there is one, and it is not right.
    pub(super) fn is_invalid(&self) -> bool {
        self.verdict == "invalid"
    }
}

/// What is known of who sent a request.
#[derive(Debug)]
pub(super) struct Sent {
    pub(super) signature: Signature,
    /// The handshake of its provider that it is.
    pub(super) handshake: Option<String>,
    /// What belongs to its signature.
    pub(super) carried: signature::Carried,
    /// Why it would be refused.
    pub(super) refused: Option<Refused>,
}

impl Sent {
    /// By what its sender's check has told.
    pub(super) fn of(opened: Result<Opened, signature::Refused>) -> Self {
        match opened {
            Ok(Opened { verified, handshake, carried }) => {
                let verdict = if verified.is_some() { "valid" } else { NOT_CHECKED };
                let signature = Signature::told(verdict, None);
                Self { signature, handshake, carried, refused: None }
            }
            Err(why) => {
                let (detail, verdict) = (why.to_string(), why.name());
                let (verdict, code) = match why {
                    signature::Refused::Missing(_)
                    | signature::Refused::Empty(_)
                    | signature::Refused::NoEvent => (verdict, "signature-missing"),
                    signature::Refused::Invalid(_) => (verdict, "signature-invalid"),
                    signature::Refused::Stale { .. } => (verdict, "signature-stale"),
                    signature::Refused::Undecided(_) => (NOT_CHECKED, "signature-undecided"),
                };
                let signature = Signature::told(verdict, Some(detail.clone()));
                let refused = Some(Refused { code, detail });
                let carried = signature::Carried::default();
                Self { signature, handshake: None, carried, refused }
            }
        }
    }
}

const NOT_CHECKED: &str = "not-checked";

impl Explanation {
    /// A request that no route takes.
    pub(super) fn of_refused(refused: Refused) -> Self {
        Self { refusal: Some(refused), ..Self::new(Disposition::Refused) }
    }

    /// A request that this route takes, and what is known of who sent it.
    pub(super) fn of(route: &RouteSettings, sent: Sent, head: &Parts, body: &[u8]) -> Self {
        let Sent { signature, handshake, carried, refused } = sent;
        let request = RequestView::of(head, body, &carried);
        let too_long = too_long(route, body);
        let goes_on = route.mode == Mode::Observe && too_long.is_none();
        let found = match (too_long, handshake) {
            (Some(refused), _) => Err(refused),
            (None, Some(name)) => Ok(Identity::Passed(Passing::Handshake(name))),
            (None, None) => taken(route, &request),
        };
        let explanation = match found {
            // Who may not enter is not told what it would have found; who asks here may know.
            Ok(Identity::Keyed(found)) => Self::of_keyed(route, &found, &request),
            Ok(Identity::Passed(why)) => {
                Self { passed_because: Some(why.to_string()), ..Self::new(Disposition::Passed) }
            }
            Err(refused) => Self::of_refused(refused),
        };
        let explanation = match refused {
            Some(refused) => Self {
                disposition: Disposition::Refused.as_str(),
                refusal: Some(refused),
                ..explanation
            },
            None => explanation,
        };
        let explanation = if goes_on {
            let (observed, disposition) = (Some(explanation.disposition), Disposition::Passed);
            Self { disposition: disposition.as_str(), observed, ..explanation }
        } else {
            explanation
        };
        let provider = route.provider.as_ref().map(|provider| provider.name.clone());
        Self { route: Some(route.name.to_string()), provider, signature, ..explanation }
    }

    fn of_keyed(route: &RouteSettings, found: &Identified, request: &RequestView<'_>) -> Self {
        let asked = &found.asked;
        // It was read once already, without fault.
        let scope = scope(&Rules::from(route), request).unwrap_or_default();
        let kind = (found.from == KeySource::UntypedEvent).then_some(&route.key.event.kind);
        let of_scope = scope.iter().filter(|(_, parts)| parts.is_empty()).map(|(at, _)| *at);
        let absent = kind.into_iter().chain(of_scope).map(ToString::to_string).collect();
        let there = scope.iter().filter(|(_, parts)| !parts.is_empty());
        let shown =
            there.map(|(at, parts)| ScopePart { selector: at.to_string(), parts: parts.clone() });
        Self {
            key: Some(ShownKey {
                from: asked.key.from,
                parts: asked.key.parts.clone(),
                scope: shown.collect(),
                absent,
            }),
            operation: Some(asked.id.to_string()),
            fingerprint: Some(asked.fingerprint.to_string()),
            compared: in_words(route.fingerprint.compared(found.from)),
            ..Self::new(Disposition::Executed)
        }
    }

    fn new(disposition: Disposition) -> Self {
        Self {
            route: None,
            provider: None,
            signature: Signature::told(NOT_CHECKED, None),
            key: None,
            operation: None,
            fingerprint: None,
            disposition: disposition.as_str(),
            observed: None,
            refusal: None,
            passed_because: None,
            compared: Default::default(),
        }
    }

    /// The explanation for programs.
    pub(super) fn to_json(&self) -> Result<String, serde_json::Error> {
        Ok(serde_json::to_string(self)? + "\n")
    }
}

fn too_long(route: &RouteSettings, body: &[u8]) -> Option<Refused> {
    (body.len() > route.request_bytes_max).then(|| {
        let detail = format!("the body is longer than {} bytes", route.request_bytes_max);
        Refused { code: "body-too-large", detail }
    })
}

/// What the steps before the claim make of it.
fn taken(route: &RouteSettings, request: &RequestView<'_>) -> Result<Identity, Refused> {
    if route.mode == Mode::Pass {
        return Ok(Identity::Passed(Passing::Mode));
    }
    let identity = identify(&Rules::from(route), request);
    identity.map_err(|error| Refused { code: error.code(), detail: error.to_string() })
}

fn in_words(compared: Compared<'_>) -> (String, String) {
    let (over, ignored) = match compared {
        Compared::Nothing => ("nothing".to_owned(), String::new()),
        Compared::Body { without } => {
            let members: Vec<String> = without.iter().map(|it| format!("json:{it}")).collect();
            ("the body".to_owned(), members.join(", "))
        }
        Compared::Parts(parts) => {
            let parts: Vec<String> = parts.iter().map(ToString::to_string).collect();
            (parts.join(", "), String::new())
        }
    };
    (over, if ignored.is_empty() { "nothing".to_owned() } else { ignored })
}

fn quoted(parts: &[String]) -> String {
    let mut quoted = String::new();
    for part in parts {
        // Writing to a `String` cannot fail.
        let _ = write!(quoted, " {part:?}");
    }
    quoted
}

/// The explanation for people. What came from the request is quoted, so that it cannot move the
/// cursor of the terminal it is read on.
impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "route        {}", self.route.as_deref().unwrap_or("none"))?;
        if let Some(provider) = &self.provider {
            writeln!(f, "provider     {provider}")?;
        }
        write!(f, "signature    {}", self.signature.verdict)?;
        match &self.signature.reason {
            // It may quote what the request holds.
            Some(reason) => writeln!(f, ": {}", reason.escape_debug())?,
            None => writeln!(f)?,
        }
        if let Some(hint) = self.signature.hint {
            writeln!(f, "hint         {hint}")?;
        }
        if let Some(key) = &self.key {
            writeln!(f, "key          {}:{}", key.from.as_str(), quoted(&key.parts))?;
            for ScopePart { selector, parts } in &key.scope {
                writeln!(f, "scope        {selector}:{}", quoted(parts))?;
            }
            for selector in &key.absent {
                writeln!(f, "absent       {selector}")?;
            }
        }
        if let Some(operation) = &self.operation {
            writeln!(f, "operation    {operation}")?;
        }
        if let (Some(fingerprint), (over, ignored)) = (&self.fingerprint, &self.compared) {
            writeln!(f, "fingerprint  {fingerprint} over {over}")?;
            writeln!(f, "ignored      {ignored}")?;
        }
        if let Some(observed) = self.observed {
            writeln!(f, "disposition  {}: the route only observes", self.disposition)?;
            write!(f, "observed     {observed}")?;
        } else {
            write!(f, "disposition  {}", self.disposition)?;
        }
        match (&self.refusal, &self.passed_because, &self.operation) {
            (Some(refused), _, _) => writeln!(f, ": {}, {}", refused.code, refused.detail),
            (None, Some(why), _) => writeln!(f, ": not deduplicated, as {why}"),
            (None, None, Some(_)) => writeln!(f, ", unless the store knows it"),
            (None, None, None) => writeln!(f, ": forwarded, not deduplicated"),
        }
    }
}
