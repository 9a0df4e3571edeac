//! An operation as the admin API tells it: what of it is shown here.

use serde::Deserialize;
use serde_json::Value;

use super::error::Error;

/// One operation.
#[derive(Debug, Deserialize)]
pub(super) struct Shown {
    pub(super) operation: String,
    pub(super) route: String,
    pub(super) method: String,
    pub(super) path: String,
    pub(super) key: Key,
    pub(super) state: String,
    pub(super) fingerprint: Option<String>,
    pub(super) created_at: String,
    pub(super) settled_at: Option<String>,
    pub(super) expires_at: String,
    pub(super) lease: Option<Lease>,
    pub(super) answer: Option<Answer>,
    pub(super) attempts: Vec<Attempt>,
    pub(super) attempts_total: u32,
    pub(super) decisions: Vec<Decision>,
    #[serde(default)]
    pub(super) steps: Vec<Step>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Key {
    pub(super) from: String,
    pub(super) parts: Vec<String>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Lease {
    pub(super) holder: String,
    pub(super) ends_at: String,
}

#[derive(Debug, Deserialize)]
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) body_bytes: u64,
    pub(super) body_omitted: bool,
}

#[derive(Debug, Deserialize)]
pub(super) struct Attempt {
    pub(super) number: u32,
    pub(super) holder: String,
    pub(super) started_at: String,
    pub(super) ended_at: Option<String>,
    /// None if it is not known.
    pub(super) sent: Option<bool>,
    pub(super) outcome: Option<String>,
    pub(super) reason: Option<String>,
    pub(super) status: Option<u16>,
    pub(super) step: Option<String>,
    pub(super) reference: Option<String>,
    pub(super) forward_key: Option<String>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Step {
    pub(super) name: String,
    /// What its receiver got as `Onceward-Operation`.
    pub(super) operation: String,
    pub(super) state: String,
}

#[derive(Debug, Clone, Deserialize)]
pub(super) struct Decision {
    pub(super) at: String,
    pub(super) by: String,
    #[serde(rename = "decision")]
    pub(super) kind: String,
    pub(super) reason: String,
    pub(super) reference: Option<String>,
}

/// A page of a list. Each operation stays as it was told, too.
#[derive(Debug, Deserialize)]
pub(super) struct Page {
    pub(super) operations: Vec<Value>,
    pub(super) next: Option<String>,
    /// Of an empty list of a route that is not configured: those that are.
    #[serde(default)]
    pub(super) routes: Option<Vec<String>>,
}

impl Attempt {
    /// Whether the receiver may have taken it, for all that is known.
    fn may_have_arrived(&self) -> bool {
        self.sent != Some(false) && self.outcome.as_deref() != Some("failed")
    }
}

impl Answer {
    /// Whether it is what copies get of an operation that is resolved as succeeded: complete, and a
    /// success.
    pub(super) fn would_be_replayed(&self) -> bool {
        (200..300).contains(&self.status) && !self.body_omitted
    }
}

impl Shown {
    /// Reads what the admin API told.
    pub(super) fn read(told: &Value) -> Result<Self, Error> {
        Self::deserialize(told).map_err(|_| Error::NotUnderstood)
    }

    /// The number of its latest attempt.
    pub(super) fn latest(&self) -> Option<u32> {
        self.attempts.iter().map(|attempt| attempt.number).max()
    }

    /// Its key, in one line.
    pub(super) fn key(&self) -> String {
        let Key { from, parts } = &self.key;
        format!("{} ({from})", parts.join(" "))
    }

    /// What may come of setting it free.
    pub(super) fn danger(&self) -> String {
        let may_be_done = match (&*self.state, self.attempts.iter().any(Attempt::may_have_arrived))
        {
            ("succeeded", _) => "the receiver has done it: the next copy does it again",
            (_, true) => {
                "the receiver may have done it, or may still be working on it: then the next copy \
                 does it again"
            }
            (_, false) => "none that is known: nothing was sent, or the receiver has refused it",
        };
        let ends_at =
            self.lease.as_ref().map(|lease| format!("; its attempt ends by {}", lease.ends_at));
        format!("danger: {may_be_done}{}", ends_at.unwrap_or_default())
    }

    /// What a person has to know before deciding about it, in one line.
    pub(super) fn standing(&self) -> String {
        let Self { operation, route, state, created_at, .. } = self;
        let attempt = self.attempts.iter().max_by_key(|attempt| attempt.number);
        let attempt = attempt.map_or_else(String::new, |attempt| {
            let sent = match attempt.sent {
                Some(true) => "sent",
                Some(false) => "nothing sent",
                None => "sent or not is unknown",
            };
            let reason = attempt.reason.as_deref().unwrap_or("no reason known");
            format!("; attempt {}: {sent}, {reason}", attempt.number)
        });
        format!("{operation} on route `{route}`, created {created_at}, is {state}{attempt}")
    }
}
