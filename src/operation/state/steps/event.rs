//! Begins and ends the steps of an event, and sets the state of the event by the states of its
//! steps.

use std::sync::Arc;

use super::next_steps::{Lookups, Next, next_steps};
use crate::operation::state::decisions::{add, by_setting};
use crate::operation::state::holder::Holder;
use crate::operation::state::{
    Change, ClaimReply, ClaimRequest, Grant, Hold, Lease, ReportedState, State, Success, Transition,
};
use crate::operation::{
    Attempt, ClaimId, DecisionKind, Durations, Operation, Outcome, Plan, PlannedStep, Reason, Step,
    StepHold, StepState, StoredAnswer, Timestamp,
};

/// (none), failed, forgotten, uncertain -> in flight, with the steps that begin now.
pub(in crate::operation::state) fn grant(
    mut operation: Operation,
    request: &ClaimRequest,
    plan: &Plan,
    now: Timestamp,
) -> Transition<ClaimReply> {
    // A grant after a success is a new event under the same key (`remember = "in-flight"`). After a
    // failure the steps that were done stay done.
    if matches!(operation.state, State::Succeeded(_) | State::Forgotten { .. }) {
        free_all(&mut operation.steps);
    }
    add_missing(&mut operation.steps, plan);
    let holder = request.holder();
    let attempt = operation.attempts.latest_number();
    let reply = match next_steps(&operation, plan, Lookups::None, now) {
        Next::Attempt(steps) => {
            let attempt = attempt.saturating_add(1);
            begin(&mut operation, plan.named(&steps), &holder, attempt, now);
            ClaimReply::Granted(Grant { attempt, steps })
        }
        // The route has lost a step since the last attempt. The steps that are left were done or
        // are uncertain, so none of them can begin.
        Next::Done | Next::Hold | Next::Lookup { .. } => {
            update_state(&mut operation, Some(plan), &holder, now);
            match &mut operation.state {
                State::Succeeded(Success { answer, .. }) => {
                    ReportedState::Succeeded { attempt, answer: Arc::clone(answer) }.into()
                }
                State::Uncertain(hold) => hold.refuse(attempt, now),
                State::InFlight(_) | State::Failed(_) | State::Forgotten { .. } => {
                    ReportedState::Free.into()
                }
            }
        }
    };
    Transition::to(operation, Change::Durable, reply)
}

/// Makes all steps wait, so that each of them runs again.
pub(in crate::operation::state) fn free_all(steps: &mut [Step]) {
    for step in steps {
        step.state = StepState::Waiting;
    }
}

/// Adds the steps that the route has got since the record was written.
pub(super) fn add_missing(steps: &mut Vec<Step>, plan: &Plan) {
    for PlannedStep { name, .. } in &plan.steps {
        if !steps.iter().any(|step| step.name == *name) {
            steps.push(Step { name: Arc::clone(name), state: StepState::Waiting });
        }
    }
}

/// Begins these steps. From now on each of them may have been sent.
pub(super) fn begin<'a>(
    operation: &mut Operation,
    steps: impl Iterator<Item = &'a PlannedStep>,
    holder: &Holder<'_>,
    attempt: u32,
    now: Timestamp,
) {
    let mut latest = now;
    for planned in steps {
        let ends_at = now.plus(planned.attempt_timeout);
        latest = latest.max(ends_at);
        let line = Attempt::begun(attempt, holder.claim_id, holder.name, now);
        let step = Some(Arc::clone(&planned.name));
        let forward_key = planned.forward_key.clone();
        operation.attempts.push(Attempt { step, forward_key, ..line });
        if let Some(step) = operation.steps.iter_mut().find(|step| step.name == planned.name) {
            if let StepState::Uncertain(hold) = &step.state {
                let retried = by_setting(DecisionKind::Retried, Some(&step.name), hold.reason, now);
                add(&mut operation.decisions, retried);
            }
            step.state = StepState::InFlight { claim_id: holder.claim_id, ends_at };
        }
    }
    operation.state = holder.in_flight(latest, now);
}

/// Sets the state of the event by the states of its steps. Only the steps of the plan count. If
/// there is no plan, all steps count.
pub(super) fn update_state(
    operation: &mut Operation,
    plan: Option<&Plan>,
    holder: &Holder<'_>,
    now: Timestamp,
) {
    let steps = steps_of(&operation.steps, plan);
    let latest_end = steps.iter().filter_map(|step| {
        let StepState::InFlight { ends_at, .. } = &step.state else { return None };
        Some(*ends_at)
    });
    // While one step runs, the event is in flight, whatever has become of the others.
    if let (Some(latest), State::InFlight(lease)) = (latest_end.max(), &operation.state) {
        operation.state = State::InFlight(Lease { ends_at: latest, ..lease.clone() });
        return;
    }
    let claim_id = Some(holder.claim_id);
    let retention = holder.durations.retention;
    operation.state = if let Some(first) = steps.iter().find_map(|step| uncertain(step)) {
        State::Uncertain(hold(first, &steps, holder, now))
    } else if let Some(answer) = answer(&steps, plan) {
        State::succeeded(claim_id, answer, retention, now)
    } else {
        State::failed(claim_id, retention, now)
    };
}

/// The event is held because of its first uncertain step. The hold lasts at least for as long as
/// any of the receivers may be working.
fn hold(first: &StepHold, steps: &[&Step], holder: &Holder<'_>, now: Timestamp) -> Hold {
    let ends = steps.iter().filter_map(|step| uncertain(step)).map(|hold| hold.ends_at);
    let latest_end = ends.max().unwrap_or(first.ends_at);
    Hold {
        claim_id: holder.claim_id,
        reason: first.reason,
        since: first.since,
        ends_at: first.ends_at,
        hold_for: holder.durations.hold_for,
        hold_until: now.plus(holder.durations.hold_for).max(latest_end),
        copy_refused: holder.copy_refused,
        answer: None,
        lookup: None,
    }
}

/// The steps of the plan, in its order, as far as the record has them; without a plan all steps.
pub(super) fn steps_of<'a>(steps: &'a [Step], plan: Option<&Plan>) -> Vec<&'a Step> {
    let Some(plan) = plan else { return steps.iter().collect() };
    let found = |planned: &PlannedStep| steps.iter().find(|step| step.name == planned.name);
    plan.steps.iter().filter_map(found).collect()
}

/// The answer to the sender; none if a step was not done.
fn answer(steps: &[&Step], plan: Option<&Plan>) -> Option<Arc<StoredAnswer>> {
    let done = |step: &&Step| {
        let StepState::Succeeded { answer, .. } = &step.state else { return None };
        Some(Arc::clone(answer))
    };
    let answers = steps.iter().map(done).collect::<Option<Vec<_>>>()?;
    // A step that the route has got since the record was written was not done.
    let complete = plan.is_none_or(|plan| plan.steps.len() == steps.len());
    let from = plan.and_then(|plan| steps.iter().position(|step| step.name == plan.answer_from));
    let answer = from.and_then(|from| answers.get(from)).or(answers.last())?;
    complete.then(|| Arc::clone(answer))
}

const fn uncertain(step: &Step) -> Option<&StepHold> {
    if let StepState::Uncertain(hold) = &step.state { Some(hold) } else { None }
}

/// Makes the steps in flight uncertain: their lease ran out, or their process has ended.
pub(in crate::operation::state) fn make_uncertain(
    operation: &mut Operation,
    reason: Reason,
    since: Timestamp,
) {
    for step in &mut operation.steps {
        if let StepState::InFlight { claim_id, ends_at } = step.state {
            if let Some(line) = operation.attempts.of(claim_id, Some(&step.name)) {
                line.end(Outcome::Uncertain, reason, since);
            }
            let answer = None;
            step.state =
                StepState::Uncertain(StepHold { claim_id, reason, since, ends_at, answer });
        }
    }
}

/// Records that the steps under a claim failed. The reply to the claim was lost, so nothing was
/// sent. The result is false if the claim is that of an attempt without steps.
pub(in crate::operation::state) fn withdraw(
    operation: &mut Operation,
    claim_id: ClaimId,
    durations: &Durations,
    now: Timestamp,
) -> bool {
    if operation.attempts.of(claim_id, None).is_some() {
        return false;
    }
    for step in &mut operation.steps {
        if step.state.current_claim() == Some(claim_id) {
            step.state = StepState::Failed { claim_id: Some(claim_id) };
        }
    }
    let copy_refused = operation.state.copy_refused();
    // Nothing begins here, so nobody reads the name.
    let holder = Holder { claim_id, name: &"".into(), durations, copy_refused };
    update_state(operation, None, &holder, now);
    true
}

/// Records an operator's statement that the event was done, and so each of its steps.
pub(in crate::operation::state) fn mark_done(steps: &mut [Step]) {
    for step in steps {
        if !matches!(step.state, StepState::Succeeded { .. }) {
            let answer = StoredAnswer::for_copies(None);
            step.state = StepState::Succeeded { claim_id: None, answer };
        }
    }
}

/// Records an operator's statement that the event was not done. That concerns its uncertain steps.
pub(in crate::operation::state) fn mark_not_done(steps: &mut [Step]) {
    for step in steps {
        if uncertain(step).is_some() {
            step.state = StepState::Failed { claim_id: None };
        }
    }
}

impl StepState {
    /// Whether the step runs under this claim.
    pub(in crate::operation::state) fn is_in_flight(&self, under: ClaimId) -> bool {
        matches!(self, Self::InFlight { claim_id, .. } if *claim_id == under)
    }

    /// The claim that may still settle the step.
    pub(super) const fn current_claim(&self) -> Option<ClaimId> {
        match self {
            Self::InFlight { claim_id, .. } => Some(*claim_id),
            Self::Uncertain(hold) => Some(hold.claim_id),
            Self::Waiting | Self::Succeeded { .. } | Self::Failed { .. } => None,
        }
    }

    /// The claim that has settled the step.
    pub(super) const fn settled_by(&self) -> Option<ClaimId> {
        match self {
            Self::Succeeded { claim_id, .. } | Self::Failed { claim_id } => *claim_id,
            Self::Waiting | Self::InFlight { .. } | Self::Uncertain(_) => None,
        }
    }
}
