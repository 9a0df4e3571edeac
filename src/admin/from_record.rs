//! Turns the record of an operation into what the admin API shows of it.

use super::api;
use crate::operation::{
    AnswerBody, Attempt, Decision, Operation, OperationId, Outcome, Reason, RequestMode, State,
    Step, StoredAnswer, Timestamp,
};

impl From<&Operation> for api::Operation {
    fn from(operation: &Operation) -> Self {
        let subject = &operation.subject;
        let (settled_at, answer) = match &operation.state {
            State::Succeeded(success) => (Some(success.settled_at), Some(&success.answer)),
            State::Failed(failure) => (Some(failure.settled_at), None),
            State::Uncertain(hold) => (None, hold.answer.as_ref()),
            State::InFlight(_) | State::Forgotten { .. } => (None, None),
        };
        let lease = match &operation.state {
            State::InFlight(lease) => Some(api::Lease {
                holder: lease.holder.to_string(),
                expires_at: rfc3339(lease.expires_at),
                ends_at: rfc3339(lease.ends_at),
            }),
            State::Uncertain(_)
            | State::Succeeded(_)
            | State::Failed(_)
            | State::Forgotten { .. } => None,
        };
        // The next attempt of a forgotten operation brings a fingerprint of its own, so the old one
        // says nothing any more.
        let is_forgotten = matches!(operation.state, State::Forgotten { .. });
        Self {
            operation: subject.id.to_string(),
            route: subject.route.to_string(),
            method: subject.method.clone(),
            path: subject.path.clone(),
            key: subject.key.clone(),
            state: operation.state.as_str().to_owned(),
            fingerprint: (!is_forgotten).then(|| subject.fingerprint.to_string()),
            created_at: rfc3339(operation.created_at),
            settled_at: settled_at.map(rfc3339),
            expires_at: rfc3339(operation.state.changes_at()),
            lease,
            answer: answer.map(|answer| (&**answer).into()),
            attempts: operation.attempts.kept().map(Into::into).collect(),
            attempts_total: operation.attempts.total(),
            decisions: operation.decisions.iter().map(Into::into).collect(),
            steps: operation.steps.iter().map(|step| api_step(subject.id, step)).collect(),
            observed: subject.mode != RequestMode::Enforce,
        }
    }
}

impl From<&StoredAnswer> for api::Answer {
    fn from(answer: &StoredAnswer) -> Self {
        let (body_bytes, body_omitted) = match &answer.body {
            AnswerBody::Kept(body) => (body.len(), false),
            AnswerBody::Omitted => (0, true),
        };
        // A header's value may have bytes that are not UTF-8 (RFC 9110, section 5.5), and JSON has
        // only text.
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let headers = answer.headers.iter();
        Self {
            status: answer.status.as_u16(),
            headers: headers
                .map(|(name, value)| (name.to_string(), text(value.as_bytes())))
                .collect(),
            body_bytes,
            body_omitted,
        }
    }
}

impl From<&Attempt> for api::Attempt {
    fn from(attempt: &Attempt) -> Self {
        Self {
            number: attempt.number,
            step: attempt.step.as_deref().map(str::to_owned),
            holder: attempt.holder.to_string(),
            started_at: rfc3339(attempt.started_at),
            ended_at: attempt.ended_at.map(rfc3339),
            sent: attempt.was_sent(),
            outcome: attempt.outcome.map(Outcome::as_str).map(str::to_owned),
            reason: attempt.reason.map(Reason::as_str).map(str::to_owned),
            status: attempt.status,
            reference: attempt.reference.clone(),
            forward_key: attempt.forward_key.as_deref().map(str::to_owned),
        }
    }
}

/// A step of the event with this operation id.
fn api_step(event: OperationId, step: &Step) -> api::Step {
    api::Step {
        name: step.name.to_string(),
        operation: OperationId::of_step(event, &step.name).to_string(),
        state: step.state.as_str().to_owned(),
    }
}

impl From<&Decision> for api::Decision {
    fn from(decision: &Decision) -> Self {
        Self {
            at: rfc3339(decision.at),
            by: decision.by.clone(),
            decision: decision.kind.as_str().to_owned(),
            reason: decision.reason.clone(),
            reference: decision.reference.clone(),
        }
    }
}

/// Writes a time as RFC 3339. A time beyond the calendar's last moment is written as that moment.
pub(super) fn rfc3339(at: Timestamp) -> String {
    let millis = i64::try_from(at.0).unwrap_or(i64::MAX);
    jiff::Timestamp::from_millisecond(millis).unwrap_or(jiff::Timestamp::MAX).to_string()
}
