//! Reads records of version 2. They did not count dropped attempts by outcome, and did not say
//! whether the route enforced or only observed.
//!
//! These types are copies of those that version 2 wrote. The format, postcard, holds only the
//! values of the fields in their order, without names. So nothing here may change.

use std::collections::VecDeque;
use std::sync::Arc;

use serde::Deserialize;

use crate::operation::state::State;
use crate::operation::{
    Attempt, AttemptLog, Decision, Fingerprint, Key, OperationId, RequestMode, Step, Timestamp,
};

#[derive(Deserialize)]
pub(super) struct Operation {
    asked: Request,
    created_at: Timestamp,
    state: State,
    attempts: Attempts,
    decisions: Vec<Decision>,
    steps: Vec<Step>,
}

#[derive(Deserialize)]
pub(super) struct Request {
    id: OperationId,
    route: Arc<str>,
    method: String,
    path: String,
    key: Key,
    fingerprint: Fingerprint,
}

impl From<Request> for crate::operation::OperationRequest {
    fn from(old: Request) -> Self {
        let Request { id, route, method, path, key, fingerprint } = old;
        Self { id, route, method, path, key, fingerprint, mode: RequestMode::Enforce }
    }
}

#[derive(Deserialize)]
struct Attempts {
    first: Vec<Attempt>,
    last: VecDeque<Attempt>,
    total: u32,
    latest: u32,
}

impl From<Operation> for crate::operation::Operation {
    fn from(old: Operation) -> Self {
        let Operation { asked, created_at, state, attempts, decisions, steps } = old;
        let Attempts { first, last, total, latest } = attempts;
        let attempts = AttemptLog::restored(first, last, total, latest);
        let asked = Arc::new(asked.into());
        Self { asked, created_at, state, attempts, decisions, steps }
    }
}
