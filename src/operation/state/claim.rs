//! The rule of a claim: it grants the next attempt, or reports the state of the operation.

use std::sync::Arc;

use super::decisions::{add, by_setting};
use super::grant::grant;
use super::lapse::lapse;
use super::next::next;
use super::steps::Next;
use super::{
    Change, ClaimReply, ClaimRequest, Grant, Hold, IfInFlight, LookupGrant, OwnAttempt, Remember,
    ReportedState, Rule, RuleName, State, Success, Transition,
};
use crate::operation::{
    ClaimId, DecisionKind, KeyKind, Operation, OperationId, RequestMode, Step, Subject, Timestamp,
};

/// A request with another fingerprint is mismatched where the record binds the fingerprint. The
/// request then learns nothing of the operation and makes no attempt at it.
impl Rule for ClaimRequest {
    type Reply = ClaimReply;
    const NAME: RuleName = RuleName::Claim;

    fn operation(&self) -> OperationId {
        self.subject.id
    }

    fn apply(&self, found: Option<Operation>, now: Timestamp) -> Transition<ClaimReply> {
        let mut lapsed = lapse(found, now);
        let found = lapsed.operation.take();
        let lost = self.own_attempt.as_ref().filter(|own| own.is_lost(found.as_ref()));
        let done = match lost {
            None => claim_found(found, self, now),
            Some(own) => claim_beside_own_attempt(own, found, self, now),
        };
        done.after(&lapsed)
    }

    fn is_valid_unwritten(reply: &ClaimReply) -> bool {
        match reply {
            ClaimReply::NotGranted(
                ReportedState::InFlight { .. }
                | ReportedState::Uncertain { .. }
                | ReportedState::Mismatched { .. },
            ) => true,
            ClaimReply::Granted(_)
            | ClaimReply::Lookup(_)
            | ClaimReply::NotGranted(ReportedState::Free | ReportedState::Succeeded { .. }) => {
                false
            }
        }
    }

    fn waits(&self) -> bool {
        self.if_in_flight == IfInFlight::Wait
    }
}

/// Claims an operation. The changes of time alone have been made before.
fn claim_found(
    found: Option<Operation>,
    request: &ClaimRequest,
    now: Timestamp,
) -> Transition<ClaimReply> {
    match found {
        None => grant(None, request, now),
        Some(mut operation) if !is_binding(&operation, &request.subject) => {
            if request.may_grant {
                operation.state = State::Forgotten { expires_at: now };
                operation.steps.clear();
            }
            grant(Some(operation), request, now)
        }
        Some(operation) => claim(operation, request, now),
    }
}

/// Claims an operation beside an attempt that the caller's own process is making, and whose record
/// the store has lost. A request that would be granted the next attempt is told of that attempt.
fn claim_beside_own_attempt(
    own: &OwnAttempt,
    found: Option<Operation>,
    request: &ClaimRequest,
    now: Timestamp,
) -> Transition<ClaimReply> {
    let looks = ClaimRequest { may_grant: false, ..request.clone() };
    let done = claim_found(found, &looks, now);
    if done.reply == ClaimReply::NotGranted(ReportedState::Free) {
        return Transition { reply: own.state_for(&request.subject).into(), ..done };
    }
    done
}

/// Claims an operation whose record binds the request.
fn claim(
    mut operation: Operation,
    request: &ClaimRequest,
    now: Timestamp,
) -> Transition<ClaimReply> {
    let attempt = operation.attempts.latest_number();
    let matches = operation.subject.fingerprint.matches(&request.subject.fingerprint);
    let is_used_up = operation.attempts.knows(request.claim_id);
    let (change, reply) = match &mut operation.state {
        // The store repeats a call whose reply was lost. The first call granted the attempt, but
        // its change may not be durable yet. So the record is written again.
        State::InFlight(lease) if lease.claim_id == request.claim_id => {
            (Change::Durable, granted_before(&operation.steps, attempt, request.claim_id))
        }
        // An event with another fingerprint is refused like a copy, and its sender may not send it
        // again, so the refusal is noted. Another request under the same header key is the sender's
        // own mistake.
        state @ (State::InFlight(_) | State::Uncertain(_)) if !matches => {
            let is_event = request.subject.key.from == KeyKind::Event;
            let change = if is_event { state.mark_refused() } else { Change::None };
            (change, ReportedState::Mismatched { attempt }.into())
        }
        State::InFlight(lease) => {
            let lease_left = now.until(lease.expires_at);
            let change = if request.waits() { Change::None } else { lease.mark_refused() };
            (change, ReportedState::InFlight { attempt, lease_left }.into())
        }
        State::Uncertain(hold) => {
            let hold = hold.clone();
            return claim_uncertain(operation, hold, request, now);
        }
        State::Succeeded(success) if gets_answer(request, attempt) => {
            (Change::None, state_of_success(success, attempt, matches).into())
        }
        // The call arrives late: its claim was granted before, and was settled or withdrawn since.
        // Nobody waits for another attempt under that claim.
        State::Succeeded(_) | State::Failed(_) | State::Forgotten { .. } if is_used_up => {
            (Change::None, ReportedState::Free.into())
        }
        State::Succeeded(_) | State::Failed(_) | State::Forgotten { .. } => {
            return grant(Some(operation), request, now);
        }
    };
    Transition::to(operation, change, reply)
}

/// Claims an uncertain operation, as the policy of the route says. `hold` is its state.
fn claim_uncertain(
    mut operation: Operation,
    mut hold: Hold,
    request: &ClaimRequest,
    now: Timestamp,
) -> Transition<ClaimReply> {
    let attempt = operation.attempts.latest_number();
    // Only one look-up runs at a time, so that many copies do not overrun a receiver in trouble. A
    // look-up is like an attempt in flight: a copy can wait for its end. The request that has the
    // look-up may claim again, because its own call may be repeated.
    let other = hold.lookup.as_ref().filter(|it| now < it.until && it.id != request.claim_id);
    if let Some(lease_left) = other.map(|lookup| now.until(lookup.until)) {
        let change = if request.waits() { Change::None } else { hold.mark_refused() };
        operation.state = State::Uncertain(hold);
        let reply = ReportedState::InFlight { attempt, lease_left };
        return Transition::to(operation, change, reply.into());
    }
    let (change, reply) = match next(&operation, &hold, request, now) {
        Next::Attempt(_) | Next::Done => {
            // Each step has its own decision, which is added when the step begins again.
            if request.plan.is_none() {
                let decision = by_setting(DecisionKind::Retried, None, hold.reason, now);
                add(&mut operation.decisions, decision);
            }
            return grant(Some(operation), request, now);
        }
        Next::Hold => (Change::Lazy, hold.refuse(attempt, now)),
        Next::Lookup { step, lease } => {
            let granted = LookupGrant { attempt, step };
            (Change::Lazy, hold.grant_look_up(request, granted, lease, now))
        }
    };
    operation.state = State::Uncertain(hold);
    Transition::to(operation, change, reply)
}

/// Whether a record binds this request. A route that only observes forwards every copy, and anybody
/// can send one. If the route enforces later, such a record binds a request only if it is a success
/// and its sender was verified.
fn is_binding(found: &Operation, subject: &Subject) -> bool {
    match (found.subject.mode, subject.mode) {
        (RequestMode::Observe { genuine }, RequestMode::Enforce) => {
            genuine && matches!(found.state, State::Succeeded(_))
        }
        (RequestMode::Enforce, _) | (_, RequestMode::Observe { .. }) => true,
    }
}

/// The grant that a claim in flight has, with the steps that run now.
fn granted_before(steps: &[Step], attempt: u32, claim_id: ClaimId) -> ClaimReply {
    let running = steps.iter().filter(|step| step.state.is_in_flight(claim_id));
    let steps = running.map(|step| Arc::clone(&step.name)).collect();
    ClaimReply::Granted(Grant { attempt, steps })
}

/// Whether a request gets the answer of a success whose latest attempt is `attempt`.
fn gets_answer(request: &ClaimRequest, attempt: u32) -> bool {
    match request.remember {
        Remember::Retention => true,
        Remember::InFlight => request.waited_for == Some(attempt),
    }
}

/// The state that a claim would report to a copy, if the operation has succeeded. None if no
/// success is remembered or its retention has passed. The copy must claim then.
pub fn recall(found: &Operation, subject: &Subject, now: Timestamp) -> Option<ReportedState> {
    let State::Succeeded(success) = &found.state else { return None };
    if !is_binding(found, subject) || success.expires_at <= now {
        return None;
    }
    let matches = found.subject.fingerprint.matches(&subject.fingerprint);
    Some(state_of_success(success, found.attempts.latest_number(), matches))
}

fn state_of_success(success: &Success, attempt: u32, matches: bool) -> ReportedState {
    if matches {
        ReportedState::Succeeded { attempt, answer: Arc::clone(&success.answer) }
    } else {
        ReportedState::Mismatched { attempt }
    }
}
