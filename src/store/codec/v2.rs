//! Reads records of version 2. They did not count dropped attempts by outcome, and did not say
//! whether the route enforced or only observed.
//!
//! These types describe the shapes that version 2 wrote, as those in `v1.rs` describe the shapes of
//! version 1. The same holds for their changes.

use std::collections::VecDeque;
use std::sync::Arc;

use serde::Deserialize;

use crate::operation::{
    self, Attempt, AttemptLog, Decision, Fingerprint, Key, OperationId, RequestMode, State, Step,
    Subject, Timestamp,
};

#[derive(Deserialize)]
pub(super) struct Operation {
    #[serde(with = "Request")]
    subject: Subject,
    created_at: Timestamp,
    state: State,
    attempts: Attempts<Attempt>,
    decisions: Vec<Decision>,
    steps: Vec<Step>,
}

#[derive(Deserialize)]
#[serde(remote = "Subject")]
pub(super) struct Request {
    id: OperationId,
    route: Arc<str>,
    method: String,
    path: String,
    key: Key,
    fingerprint: Fingerprint,
    #[serde(skip)]
    mode: RequestMode,
}

/// An attempt log, with its attempts as `T`.
#[derive(Deserialize)]
pub(super) struct Attempts<T> {
    first: Vec<T>,
    last: VecDeque<T>,
    total: u32,
    latest: u32,
}

impl<T: Into<Attempt>> From<Attempts<T>> for AttemptLog {
    fn from(old: Attempts<T>) -> Self {
        let Attempts { first, last, total, latest } = old;
        let first = first.into_iter().map(Into::into).collect();
        Self::restored(first, last.into_iter().map(Into::into).collect(), total, latest)
    }
}

impl From<Operation> for operation::Operation {
    fn from(old: Operation) -> Self {
        let Operation { subject, created_at, state, attempts, decisions, steps } = old;
        let attempts = attempts.into();
        let subject = Arc::new(subject);
        Self { subject, created_at, state, attempts, decisions, steps }
    }
}
