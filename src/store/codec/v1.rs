//! Reads records of version 1, which had no steps, look-ups or references.
//!
//! The types with `remote` describe the shape in which version 1 wrote a type that has grown since:
//! serde reads the present type from them, and each field that is skipped has its default. The
//! format, postcard, holds only the values of the fields in their order, without names. So nothing
//! here may change, except that a further field of the present type is added as a skipped one.

use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;

use super::v2::{Attempts, Request};
use crate::operation::state::{self, Failure, Lease, LookupLease, Success};
use crate::operation::{
    self, ClaimId, Decision, Outcome, Reason, StoredAnswer, Subject, Timestamp,
};

#[derive(Deserialize)]
pub(super) struct Operation {
    #[serde(with = "Request")]
    subject: Subject,
    created_at: Timestamp,
    #[serde(with = "State")]
    state: operation::State,
    attempts: Attempts<WrittenAttempt>,
    decisions: Vec<Decision>,
}

#[derive(Deserialize)]
#[serde(remote = "operation::State")]
enum State {
    InFlight(Lease),
    #[serde(with = "Uncertain")]
    Uncertain(state::Hold),
    Succeeded(Success),
    Failed(Failure),
    Forgotten {
        expires_at: Timestamp,
    },
}

#[derive(Deserialize)]
#[serde(remote = "state::Hold")]
struct Uncertain {
    claim_id: ClaimId,
    reason: Reason,
    since: Timestamp,
    ends_at: Timestamp,
    hold_for: Duration,
    hold_until: Timestamp,
    copy_refused: bool,
    answer: Option<Arc<StoredAnswer>>,
    #[serde(skip)]
    lookup: Option<LookupLease>,
}

#[derive(Deserialize)]
#[serde(remote = "operation::Attempt")]
struct Attempt {
    number: u32,
    claim_id: ClaimId,
    holder: Arc<str>,
    #[serde(skip)]
    step: Option<Arc<str>>,
    #[serde(skip)]
    forward_key: Option<Arc<str>>,
    started_at: Timestamp,
    ended_at: Option<Timestamp>,
    sent: bool,
    outcome: Option<Outcome>,
    reason: Option<Reason>,
    status: Option<u16>,
    #[serde(skip)]
    reference: Option<String>,
}

/// An attempt in a list, where the shape cannot be given beside the field.
#[derive(Deserialize)]
struct WrittenAttempt(#[serde(with = "Attempt")] operation::Attempt);

impl From<WrittenAttempt> for operation::Attempt {
    fn from(WrittenAttempt(attempt): WrittenAttempt) -> Self {
        attempt
    }
}

impl From<Operation> for operation::Operation {
    fn from(old: Operation) -> Self {
        let Operation { subject, created_at, state, attempts, decisions } = old;
        let attempts = attempts.into();
        let subject = Arc::new(subject);
        Self { subject, created_at, state, attempts, decisions, steps: Vec::new() }
    }
}
