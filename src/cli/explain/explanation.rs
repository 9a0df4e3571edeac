//! What a request would be taken for, and how that is told.

use std::fmt::{self, Write as _};

use http::request::Parts;
use serde::Serialize;

use crate::operation::{Asked, Key};
use crate::provider::signature;
use crate::proxy::{Compared, Identity, Mode, Opened, RequestView, RouteSettings, Rules, identify};
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
    key: Option<Key>,
    operation: Option<String>,
    fingerprint: Option<String>,
    /// `executed` stands for a claim: what the store holds may make it anything else.
    disposition: &'static str,
    /// What it would be if the route did more than observe.
    #[serde(skip_serializing_if = "Option::is_none")]
    observed: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    refusal: Option<Refused>,
    /// What the fingerprint is over, and the members that it leaves out.
    #[serde(skip)]
    compared: (String, String),
}

/// What came of the check of the sender's signature.
#[derive(Debug, Serialize)]
pub(super) struct Signature {
    verdict: &'static str,
    reason: Option<String>,
}

/// What is known of who sent a request.
#[derive(Debug)]
pub(super) struct Sent {
    pub(super) signature: Signature,
    /// It is a handshake of its provider.
    pub(super) is_handshake: bool,
    /// What belongs to its signature.
    pub(super) carried: signature::Carried,
    /// Why it would be refused.
    pub(super) refused: Option<Refused>,
}

impl Sent {
    /// By what its sender's check has told.
    pub(super) fn of(opened: Result<Opened, signature::Refused>) -> Self {
        match opened {
            Ok(Opened { verified, is_handshake, carried }) => {
                let verdict = if verified.is_some() { "valid" } else { NOT_CHECKED };
                let signature = Signature { verdict, reason: None };
                Self { signature, is_handshake, carried, refused: None }
            }
            Err(why) => {
                let (detail, verdict) = (why.to_string(), why.name());
                let (verdict, code) = match why {
                    signature::Refused::Missing(_) => (verdict, "signature-missing"),
                    signature::Refused::Invalid(_) => (verdict, "signature-invalid"),
                    signature::Refused::Stale { .. } => (verdict, "signature-stale"),
                    signature::Refused::Undecided(_) => (NOT_CHECKED, "signature-undecided"),
                };
                let signature = Signature { verdict, reason: Some(detail.clone()) };
                let refused = Some(Refused { code, detail });
                let carried = signature::Carried::default();
                Self { signature, is_handshake: false, carried, refused }
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
        let Sent { signature, is_handshake, carried, refused } = sent;
        let too_long = too_long(route, body);
        let goes_on = route.mode == Mode::Observe && too_long.is_none();
        let found = match too_long {
            Some(refused) => Err(refused),
            None if is_handshake => Ok(Identity::Passed),
            None => taken(route, &RequestView::of(head, body, &carried)),
        };
        let explanation = match found {
            // Who may not enter is not told what it would have found; who asks here may know.
            Ok(Identity::Keyed(identified)) => Self::of_asked(route, &identified.asked),
            Ok(Identity::Passed) => Self::new(Disposition::Passed),
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

    fn of_asked(route: &RouteSettings, asked: &Asked) -> Self {
        Self {
            key: Some(asked.key.clone()),
            operation: Some(asked.id.to_string()),
            fingerprint: Some(asked.fingerprint.to_string()),
            compared: in_words(route.fingerprint.compared(asked.key.from)),
            ..Self::new(Disposition::Executed)
        }
    }

    fn new(disposition: Disposition) -> Self {
        Self {
            route: None,
            provider: None,
            signature: Signature { verdict: NOT_CHECKED, reason: None },
            key: None,
            operation: None,
            fingerprint: None,
            disposition: disposition.as_str(),
            observed: None,
            refusal: None,
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
        return Ok(Identity::Passed);
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
        if let Some(key) = &self.key {
            let mut parts = String::new();
            for part in &key.parts {
                write!(parts, " {part:?}")?;
            }
            writeln!(f, "key          {}:{parts}", key.from.as_str())?;
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
        match (&self.refusal, &self.operation) {
            (Some(refused), _) => writeln!(f, ": {}, {}", refused.code, refused.detail),
            (None, Some(_)) => writeln!(f, ", unless the store knows it"),
            (None, None) => writeln!(f, ": forwarded, not deduplicated"),
        }
    }
}
