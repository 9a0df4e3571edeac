//! What would happen to a request, for people and for programs.

use std::fmt::{self, Write as _};

use serde::Serialize;

use super::Request;
use crate::operation::KeyKind;
use crate::provider::signature::{Carried, SignatureError};
use crate::proxy::{
    Compared, Examined, ExplainedRefusal, Identified, Identity, KeySource, Mode, RequestView,
    Verified, scope,
};
use crate::telemetry::DispositionWord;

/// What would happen to a request, as far as that does not depend on the store.
#[derive(Debug, Serialize)]
pub(super) struct Explanation {
    /// Name of the route.
    route: Option<String>,
    /// Who sends, if the route says so.
    provider: Option<String>,
    pub(super) signature: Signature,
    key: Option<ShownKey>,
    operation: Option<String>,
    fingerprint: Option<String>,
    /// `executed` stands for a claim: what the store holds may make it anything else.
    disposition: &'static str,
    /// What it would be if the route did more than observe.
    #[serde(skip_serializing_if = "Option::is_none")]
    observed: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    refusal: Option<ExplainedRefusal>,
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

const NOT_CHECKED: &str = "not-checked";

impl From<&Result<Verified, SignatureError>> for Signature {
    fn from(signature: &Result<Verified, SignatureError>) -> Self {
        match signature {
            Ok(verified) if verified.provider().is_some() => Self::told("valid", None),
            Ok(_) => Self::told(NOT_CHECKED, None),
            Err(error @ SignatureError::Undecided(_)) => {
                Self::told(NOT_CHECKED, Some(error.to_string()))
            }
            Err(error) => Self::told(error.name(), Some(error.to_string())),
        }
    }
}

impl Explanation {
    /// A request that no route takes.
    pub(super) fn of_refusal(refusal: ExplainedRefusal) -> Self {
        Self { refusal: Some(refusal), ..Self::new(DispositionWord::Refused) }
    }

    /// A request that a route takes, with what its proxy would find out about it.
    pub(super) fn of(request: Request<'_>, examined: &Examined) -> Self {
        let route = request.route;
        let explanation = match &examined.identity {
            Some(Identity::Keyed(identified)) => {
                Self::of_keyed(request, identified, examined.signature.as_ref().ok())
            }
            Some(Identity::Passed(why)) => {
                Self { passed_because: Some(why.to_string()), ..Self::new(DispositionWord::Passed) }
            }
            None => Self::new(DispositionWord::Refused),
        };
        let explanation = match &examined.refusal {
            Some(refusal) => Self {
                disposition: DispositionWord::Refused.as_str(),
                refusal: Some(refusal.clone()),
                ..explanation
            },
            None => explanation,
        };
        // A route that only observes refuses nothing, except a body that it cannot hold in memory.
        let is_received = request.body.len() <= route.request_bytes_max;
        let explanation = if route.mode == Mode::Observe && is_received {
            let observed = Some(explanation.disposition);
            Self { disposition: DispositionWord::Passed.as_str(), observed, ..explanation }
        } else {
            explanation
        };
        Self {
            route: Some(route.name.to_string()),
            provider: route.provider.as_ref().map(|provider| provider.name.clone()),
            signature: Signature::from(&examined.signature),
            ..explanation
        }
    }

    fn of_keyed(request: Request<'_>, found: &Identified, verified: Option<&Verified>) -> Self {
        let Request { route, head, body } = request;
        let subject = &found.subject;
        let none = Carried::default();
        let view = RequestView::of(head, body, verified.map_or(&none, Verified::carried));
        // These parts were read before, when the request was identified: they cannot fail now.
        let scope = scope(&route.rules(), &view).unwrap_or_default();
        let kind = (found.from == KeySource::UntypedEvent).then_some(&route.key.event.kind);
        let of_scope = scope.iter().filter(|(_, parts)| parts.is_empty()).map(|(at, _)| *at);
        let absent = kind.into_iter().chain(of_scope).map(ToString::to_string).collect();
        let there = scope.iter().filter(|(_, parts)| !parts.is_empty());
        let shown =
            there.map(|(at, parts)| ScopePart { selector: at.to_string(), parts: parts.clone() });
        Self {
            key: Some(ShownKey {
                from: subject.key.from,
                parts: subject.key.parts.clone(),
                scope: shown.collect(),
                absent,
            }),
            operation: Some(subject.id.to_string()),
            fingerprint: Some(subject.fingerprint.to_string()),
            compared: in_words(route.fingerprint.compared(found.from)),
            ..Self::new(DispositionWord::Executed)
        }
    }

    fn new(disposition: DispositionWord) -> Self {
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
