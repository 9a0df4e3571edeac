//! An operation as JSON. Times are RFC 3339 in UTC.

use serde::Serialize;

use crate::operation::{
    AnswerBody, Attempt, Decision, Key, Operation, OperationId, Outcome, Reason, RequestMode,
    State, Step, StoredAnswer, Timestamp,
};

#[derive(Debug, Serialize)]
pub(super) struct OperationJson {
    operation: String,
    route: String,
    method: String,
    path: String,
    key: Key,
    state: &'static str,
    fingerprint: Option<String>,
    created_at: String,
    settled_at: Option<String>,
    expires_at: String,
    lease: Option<LeaseJson>,
    answer: Option<AnswerJson>,
    attempts: Vec<AttemptJson>,
    attempts_total: u32,
    decisions: Vec<DecisionJson>,
    steps: Vec<StepJson>,
    /// Its route only observed, the last time that it was attempted.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    observed: bool,
}

#[derive(Debug, Serialize)]
struct LeaseJson {
    holder: String,
    expires_at: String,
    ends_at: String,
}

#[derive(Debug, Serialize)]
struct AnswerJson {
    status: u16,
    headers: Vec<(String, String)>,
    body_bytes: usize,
    body_omitted: bool,
}

#[derive(Debug, Serialize)]
struct AttemptJson {
    number: u32,
    step: Option<String>,
    holder: String,
    started_at: String,
    ended_at: Option<String>,
    sent: Option<bool>,
    outcome: Option<&'static str>,
    reason: Option<&'static str>,
    status: Option<u16>,
    reference: Option<String>,
    forward_key: Option<String>,
}

#[derive(Debug, Serialize)]
struct StepJson {
    name: String,
    /// What its receiver gets as `Onceward-Operation`.
    operation: String,
    state: &'static str,
}

#[derive(Debug, Serialize)]
struct DecisionJson {
    at: String,
    by: String,
    decision: &'static str,
    reason: String,
    reference: Option<String>,
}

impl From<&Operation> for OperationJson {
    fn from(operation: &Operation) -> Self {
        let asked = &operation.asked;
        let (settled_at, answer) = match &operation.state {
            State::Succeeded(success) => (Some(success.settled_at), Some(&success.answer)),
            State::Failed(failure) => (Some(failure.settled_at), None),
            State::Uncertain(held) => (None, held.answer.as_ref()),
            State::InFlight(_) | State::Forgotten { .. } => (None, None),
        };
        let lease = match &operation.state {
            State::InFlight(lease) => Some(LeaseJson {
                holder: lease.holder.to_string(),
                expires_at: rfc3339(lease.expires_at),
                ends_at: rfc3339(lease.ends_at),
            }),
            State::Uncertain(_)
            | State::Succeeded(_)
            | State::Failed(_)
            | State::Forgotten { .. } => None,
        };
        let forgotten = matches!(operation.state, State::Forgotten { .. });
        Self {
            operation: asked.id.to_string(),
            route: asked.route.to_string(),
            method: asked.method.clone(),
            path: asked.path.clone(),
            key: asked.key.clone(),
            state: operation.state.as_str(),
            fingerprint: (!forgotten).then(|| asked.fingerprint.to_string()),
            created_at: rfc3339(operation.created_at),
            settled_at: settled_at.map(rfc3339),
            expires_at: rfc3339(operation.state.changes_at()),
            lease,
            answer: answer.map(|answer| (&**answer).into()),
            attempts: operation.attempts.kept().map(Into::into).collect(),
            attempts_total: operation.attempts.total(),
            decisions: operation.decisions.iter().map(Into::into).collect(),
            steps: operation.steps.iter().map(|step| StepJson::of(asked.id, step)).collect(),
            observed: asked.mode != RequestMode::Enforce,
        }
    }
}

impl From<&StoredAnswer> for AnswerJson {
    fn from(answer: &StoredAnswer) -> Self {
        let (body_bytes, body_omitted) = match &answer.body {
            AnswerBody::Kept(body) => (body.len(), false),
            AnswerBody::Omitted => (0, true),
        };
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let headers = answer.headers.iter();
        Self {
            status: answer.status.as_u16(),
            headers: headers.map(|(n, v)| (n.to_string(), text(v.as_bytes()))).collect(),
            body_bytes,
            body_omitted,
        }
    }
}

impl From<&Attempt> for AttemptJson {
    fn from(attempt: &Attempt) -> Self {
        Self {
            number: attempt.number,
            step: attempt.step.as_deref().map(str::to_owned),
            holder: attempt.holder.to_string(),
            started_at: rfc3339(attempt.started_at),
            ended_at: attempt.ended_at.map(rfc3339),
            sent: attempt.was_sent(),
            outcome: attempt.outcome.map(Outcome::as_str),
            reason: attempt.reason.map(Reason::as_str),
            status: attempt.status,
            reference: attempt.reference.clone(),
            forward_key: attempt.forward_key.as_deref().map(str::to_owned),
        }
    }
}

impl StepJson {
    fn of(event: OperationId, step: &Step) -> Self {
        let operation = OperationId::of_step(event, &step.name).to_string();
        Self { name: step.name.to_string(), operation, state: step.state.as_str() }
    }
}

impl From<&Decision> for DecisionJson {
    fn from(decision: &Decision) -> Self {
        Self {
            at: rfc3339(decision.at),
            by: decision.by.clone(),
            decision: decision.kind.as_str(),
            reason: decision.reason.clone(),
            reference: decision.reference.clone(),
        }
    }
}

/// A time beyond what the calendar holds is shown as its last moment.
pub(super) fn rfc3339(at: Timestamp) -> String {
    let millis = i64::try_from(at.0).unwrap_or(i64::MAX);
    jiff::Timestamp::from_millisecond(millis).unwrap_or(jiff::Timestamp::MAX).to_string()
}
