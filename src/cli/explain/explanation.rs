//! What a request would be taken for, and how that is told.

use std::fmt::{self, Write as _};

use http::request::Parts;
use serde::Serialize;

use crate::operation::{Asked, Key};
use crate::proxy::{Compared, Identity, RequestView, RouteSettings, Rules, identify};
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
    #[serde(skip_serializing_if = "Option::is_none")]
    refusal: Option<Refused>,
    /// What the fingerprint is over, and the members that it leaves out.
    #[serde(skip)]
    compared: (String, String),
}

#[derive(Debug, Serialize)]
struct Signature {
    verdict: &'static str,
    reason: Option<&'static str>,
}

impl Explanation {
    /// A request that no route takes.
    pub(super) fn of_refused(refused: Refused) -> Self {
        Self { refusal: Some(refused), ..Self::new(Disposition::Refused) }
    }

    /// A request that this route takes.
    pub(super) fn of(route: &RouteSettings, head: &Parts, body: &[u8]) -> Self {
        let explanation = match taken(route, head, body) {
            Ok(Identity::Keyed(identified)) => Self::of_asked(route, &identified.asked),
            Ok(Identity::Passed) => Self::new(Disposition::Passed),
            Err(refused) => Self::of_refused(refused),
        };
        Self { route: Some(route.name.to_string()), ..explanation }
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
            signature: Signature { verdict: "not-checked", reason: None },
            key: None,
            operation: None,
            fingerprint: None,
            disposition: disposition.as_str(),
            refusal: None,
            compared: Default::default(),
        }
    }

    /// The explanation for programs.
    pub(super) fn to_json(&self) -> Result<String, serde_json::Error> {
        Ok(serde_json::to_string(self)? + "\n")
    }
}

/// What the steps before the claim make of it.
fn taken(route: &RouteSettings, head: &Parts, body: &[u8]) -> Result<Identity, Refused> {
    if body.len() > route.request_bytes_max {
        let detail = format!("the body is longer than {} bytes", route.request_bytes_max);
        return Err(Refused { code: "body-too-large", detail });
    }
    let identity = identify(&Rules::from(route), &RequestView::of(head, body));
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
        writeln!(f, "signature    {}", self.signature.verdict)?;
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
        write!(f, "disposition  {}", self.disposition)?;
        match (&self.refusal, &self.operation) {
            (Some(refused), _) => writeln!(f, ": {}, {}", refused.code, refused.detail),
            (None, Some(_)) => writeln!(f, ", unless the store knows it"),
            (None, None) => writeln!(f, ": forwarded, not deduplicated"),
        }
    }
}
