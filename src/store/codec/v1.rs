//! Reads records of version 1, which had no steps, look-ups or references.
//!
//! These types are copies of those that version 1 wrote. The format, postcard, holds only the
//! values of the fields in their order, without names. So nothing here may change.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;

use super::v2::Request;
use crate::operation::state::{self, Failure, Lease, Success};
use crate::operation::{AttemptLog, ClaimId, Decision, Outcome, Reason, StoredAnswer, Timestamp};

#[derive(Deserialize)]
pub(super) struct Operation {
    asked: Request,
    created_at: Timestamp,
    state: State,
    attempts: Attempts,
    decisions: Vec<Decision>,
}

#[derive(Deserialize)]
enum State {
    InFlight(Lease),
    Uncertain(Held),
    Succeeded(Success),
    Failed(Failure),
    Forgotten { expires_at: Timestamp },
}

#[derive(Deserialize)]
struct Held {
    claim_id: ClaimId,
    reason: Reason,
    since: Timestamp,
    ends_at: Timestamp,
    hold_for: Duration,
    hold_until: Timestamp,
    copy_refused: bool,
    answer: Option<Arc<StoredAnswer>>,
}

#[derive(Deserialize)]
struct Attempts {
    first: Vec<Attempt>,
    last: VecDeque<Attempt>,
    total: u32,
    latest: u32,
}

#[derive(Deserialize)]
struct Attempt {
    number: u32,
    claim_id: ClaimId,
    holder: Arc<str>,
    started_at: Timestamp,
    ended_at: Option<Timestamp>,
    sent: bool,
    outcome: Option<Outcome>,
    reason: Option<Reason>,
    status: Option<u16>,
}

impl From<Operation> for crate::operation::Operation {
    fn from(old: Operation) -> Self {
        let Operation { asked, created_at, state, attempts, decisions } = old;
        let state = state.into();
        let attempts = attempts.into();
        let steps = Vec::new();
        let asked = Arc::new(asked.into());
        Self { asked, created_at, state, attempts, decisions, steps }
    }
}

impl From<State> for state::State {
    fn from(old: State) -> Self {
        match old {
            State::InFlight(lease) => Self::InFlight(lease),
            State::Uncertain(held) => Self::Uncertain(held.into()),
            State::Succeeded(success) => Self::Succeeded(success),
            State::Failed(failure) => Self::Failed(failure),
            State::Forgotten { expires_at } => Self::Forgotten { expires_at },
        }
    }
}

impl From<Held> for state::Held {
    fn from(old: Held) -> Self {
        let Held { claim_id, reason, since, ends_at, .. } = old;
        let Held { hold_for, hold_until, copy_refused, answer, .. } = old;
        Self {
            claim_id,
            reason,
            since,
            ends_at,
            hold_for,
            hold_until,
            copy_refused,
            answer,
            lookup: None,
        }
    }
}

impl From<Attempts> for AttemptLog {
    fn from(old: Attempts) -> Self {
        let Attempts { first, last, total, latest } = old;
        let first = first.into_iter().map(Into::into).collect();
        Self::restored(first, last.into_iter().map(Into::into).collect(), total, latest)
    }
}

impl From<Attempt> for crate::operation::Attempt {
    fn from(old: Attempt) -> Self {
        let Attempt { number, claim_id, holder, started_at, ended_at, .. } = old;
        let Attempt { sent, outcome, reason, status, .. } = old;
        Self {
            number,
            claim_id,
            holder,
            step: None,
            forward_key: None,
            started_at,
            ended_at,
            sent,
            outcome,
            reason,
            status,
            reference: None,
        }
    }
}
