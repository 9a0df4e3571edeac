//! Several receivers of one event: which steps run, and what follows from them for the event.
//!
//! The event is claimed once. A step that has begun keeps the claim under which it did, so that its
//! late settle counts as long as nobody else has begun or decided it.

mod advance;
mod ask;
mod run;

pub use advance::{Advanced, EventEnd, StepEnd};
pub(super) use ask::conclude;
pub(super) use run::{Asks, Run, run};

use std::sync::Arc;
use std::time::Duration;

use super::decide::note;
use super::lapse::WHEN_UNCERTAIN;
use super::lookup::refuse;
use super::{
    Change, ClaimRequest, Claimed, Failure, Grant, Held, Lease, OperationState, State, Success,
    Transition,
};
use crate::operation::{
    Attempt, ClaimId, Decision, DecisionKind, HeldStep, Operation, Outcome, Plan, PlannedStep,
    Reason, Step, StepState, StoredAnswer, Terms, Timestamp,
};

/// Who begins a step, or has ended one.
pub(super) struct Holder<'a> {
    pub(super) claim_id: ClaimId,
    pub(super) name: &'a Arc<str>,
    pub(super) terms: &'a Terms,
    pub(super) copy_refused: bool,
}

/// (none), failed, forgotten, uncertain -> in flight, with the steps that are to run now.
pub(super) fn grant(
    mut operation: Operation,
    request: &ClaimRequest,
    plan: &Plan,
    now: Timestamp,
) -> Transition<Claimed> {
    if matches!(operation.state, State::Succeeded(_) | State::Forgotten { .. }) {
        free_all(&mut operation.steps);
    }
    add_missing(&mut operation.steps, plan);
    let holder = Holder {
        claim_id: request.claim_id,
        name: &request.holder,
        terms: &request.terms,
        copy_refused: false,
    };
    let attempt = operation.attempts.latest_number();
    let result = match run(&operation, plan, Asks::Nobody, now) {
        Run::Begin(steps) => {
            let attempt = attempt.saturating_add(1);
            begin(&mut operation, plan.named(&steps), &holder, attempt, now);
            Claimed::Granted(Grant { attempt, steps })
        }
        // The route's steps have changed since the last attempt.
        Run::Done | Run::Held | Run::LookUp { .. } => {
            stand(&mut operation, Some(plan), &holder, now);
            match &mut operation.state {
                State::Succeeded(Success { answer, .. }) => {
                    OperationState::Succeeded { attempt, answer: Arc::clone(answer) }.into()
                }
                State::Uncertain(held) => refuse(held, attempt, now),
                State::InFlight(_) | State::Failed(_) | State::Forgotten { .. } => {
                    OperationState::Free.into()
                }
            }
        }
    };
    Transition::to(operation, Change::Durable, result)
}

/// All run again.
pub(super) fn free_all(steps: &mut [Step]) {
    for step in steps {
        step.state = StepState::Waiting;
    }
}

fn add_missing(steps: &mut Vec<Step>, plan: &Plan) {
    for PlannedStep { name, .. } in &plan.steps {
        if !steps.iter().any(|step| step.name == *name) {
            steps.push(Step { name: Arc::clone(name), state: StepState::Waiting });
        }
    }
}

/// These steps begin: from now on each of them may have been sent.
fn begin<'a>(
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
            if let StepState::Uncertain(held) = &step.state {
                let decision = decision(DecisionKind::Retried, &step.name, held.reason, now);
                note(&mut operation.decisions, decision);
            }
            step.state = StepState::InFlight { claim_id: holder.claim_id, ends_at };
        }
    }
    operation.state = State::InFlight(Lease {
        claim_id: holder.claim_id,
        holder: Arc::clone(holder.name),
        expires_at: now.plus(holder.terms.lease),
        ends_at: latest,
        hold_for: holder.terms.hold_for,
        copy_refused: holder.copy_refused,
    });
}

/// The state of the event that follows from its steps: those of the plan, else all.
pub(super) fn stand(
    operation: &mut Operation,
    plan: Option<&Plan>,
    holder: &Holder<'_>,
    now: Timestamp,
) {
    let steps = ordered(&operation.steps, plan);
    let latest_end = steps.iter().filter_map(|step| match &step.state {
        StepState::InFlight { ends_at, .. } => Some(*ends_at),
        StepState::Waiting
        | StepState::Uncertain(_)
        | StepState::Succeeded { .. }
        | StepState::Failed { .. } => None,
    });
    if let (Some(latest), State::InFlight(lease)) = (latest_end.max(), &operation.state) {
        operation.state = State::InFlight(Lease { ends_at: latest, ..lease.clone() });
        return;
    }
    let claim_id = Some(holder.claim_id);
    let expires_at = now.plus(holder.terms.retention);
    operation.state = if let Some(first) = steps.iter().find_map(|step| uncertain(step)) {
        State::Uncertain(hold(first, &steps, holder, now))
    } else if let Some(answer) = answer(&steps, plan) {
        State::Succeeded(Success { claim_id, settled_at: now, expires_at, answer })
    } else {
        State::Failed(Failure { claim_id, settled_at: now, expires_at })
    };
}

fn hold(first: &HeldStep, steps: &[&Step], holder: &Holder<'_>, now: Timestamp) -> Held {
    let ends = steps.iter().filter_map(|step| uncertain(step)).map(|held| held.ends_at);
    let latest_end = ends.max().unwrap_or(first.ends_at);
    Held {
        claim_id: holder.claim_id,
        reason: first.reason,
        since: first.since,
        ends_at: first.ends_at,
        hold_for: holder.terms.hold_for,
        hold_until: now.plus(holder.terms.hold_for).max(latest_end),
        copy_refused: holder.copy_refused,
        answer: None,
        lookup: None,
    }
}

/// The steps that count, in their order. One that the record does not have yet is not done.
fn ordered<'a>(steps: &'a [Step], plan: Option<&Plan>) -> Vec<&'a Step> {
    let Some(plan) = plan else { return steps.iter().collect() };
    let found = |planned: &PlannedStep| steps.iter().find(|step| step.name == planned.name);
    plan.steps.iter().filter_map(found).collect()
}

/// What the sender gets when all are done; none if they are not.
fn answer(steps: &[&Step], plan: Option<&Plan>) -> Option<Arc<StoredAnswer>> {
    let done = |step: &&Step| match &step.state {
        StepState::Succeeded { answer, .. } => Some(Arc::clone(answer)),
        StepState::Waiting
        | StepState::InFlight { .. }
        | StepState::Uncertain(_)
        | StepState::Failed { .. } => None,
    };
    let answers = steps.iter().map(done).collect::<Option<Vec<_>>>()?;
    let complete = plan.is_none_or(|plan| plan.steps.len() == steps.len());
    let from = plan.and_then(|plan| steps.iter().position(|step| step.name == plan.answer_from));
    let answer = from.and_then(|from| answers.get(from)).or(answers.last())?;
    complete.then(|| Arc::clone(answer))
}

const fn uncertain(step: &Step) -> Option<&HeldStep> {
    match &step.state {
        StepState::Uncertain(held) => Some(held),
        StepState::Waiting
        | StepState::InFlight { .. }
        | StepState::Succeeded { .. }
        | StepState::Failed { .. } => None,
    }
}

/// Steps in flight become uncertain: their lease ran out, or their process has ended.
pub(super) fn lose(operation: &mut Operation, reason: Reason, since: Timestamp) {
    for step in &mut operation.steps {
        if let StepState::InFlight { claim_id, ends_at } = step.state {
            if let Some(line) = operation.attempts.of(claim_id, Some(&step.name)) {
                line.ended_at = Some(since);
                line.outcome = Some(Outcome::Uncertain);
                line.reason = Some(reason);
            }
            let answer = None;
            step.state =
                StepState::Uncertain(HeldStep { claim_id, reason, since, ends_at, answer });
        }
    }
}

/// What was begun under a claim whose reply never came was not sent. False if the claim is
/// that of an attempt without steps.
pub(super) fn withdraw(
    operation: &mut Operation,
    claim_id: ClaimId,
    retention: Duration,
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
    let (holder, hold_for, copy_refused) = match &operation.state {
        State::InFlight(lease) => (Arc::clone(&lease.holder), lease.hold_for, lease.copy_refused),
        State::Uncertain(held) => ("".into(), held.hold_for, held.copy_refused),
        State::Succeeded(_) | State::Failed(_) | State::Forgotten { .. } => return false,
    };
    let lease = Duration::ZERO;
    let attempt_timeout = Duration::ZERO;
    let terms = Terms { lease, attempt_timeout, retention, hold_for };
    let holder = Holder { claim_id, name: &holder, terms: &terms, copy_refused };
    stand(operation, None, &holder, now);
    true
}

/// A person says that the event was done, or that what is uncertain of it was not.
pub(super) fn resolve(steps: &mut [Step], succeeded: bool) {
    let claim_id = None;
    for step in steps {
        let done = matches!(step.state, StepState::Succeeded { .. });
        if succeeded && !done {
            let answer = Arc::new(StoredAnswer::empty(http::StatusCode::OK));
            step.state = StepState::Succeeded { claim_id, answer };
        } else if !succeeded && uncertain(step).is_some() {
            step.state = StepState::Failed { claim_id };
        }
    }
}

/// A decision of the route's about one of the steps.
fn decision(kind: DecisionKind, step: &str, reason: Reason, at: Timestamp) -> Decision {
    let by = WHEN_UNCERTAIN.to_owned();
    let reason = format!("{step}: {reason}");
    Decision { at, by, kind, reason, reference: None }
}

impl StepState {
    /// The claim that may still settle it.
    const fn current_claim(&self) -> Option<ClaimId> {
        match self {
            Self::InFlight { claim_id, .. } => Some(*claim_id),
            Self::Uncertain(held) => Some(held.claim_id),
            Self::Waiting | Self::Succeeded { .. } | Self::Failed { .. } => None,
        }
    }

    /// The claim whose settle made it what it is.
    const fn settled_by(&self) -> Option<ClaimId> {
        match self {
            Self::Succeeded { claim_id, .. } | Self::Failed { claim_id } => *claim_id,
            Self::Waiting | Self::InFlight { .. } | Self::Uncertain(_) => None,
        }
    }
}
