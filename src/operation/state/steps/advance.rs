//! The end of a step, and in the same atomic step the beginning of the next one.

use std::sync::Arc;

use super::super::decide::note;
use super::super::settle::{Ending, Line, log_end};
use super::super::{Call, Change, Lease, Rule, State, Transition, lapse};
use super::{Asks, Holder, Run, add_missing, begin, decision, ordered, run, stand};
use crate::operation::{
    Attempt, AttemptLog, ClaimId, DecisionKind, HeldStep, Operation, OperationId, OperationRequest,
    Plan, Reason, Step, StepState, StoredAnswer, Terms, Timestamp,
};

/// The end of a step, as its holder reports it.
#[derive(Debug, Clone)]
pub struct StepEnd {
    /// What the claim asked for: written again should the record be gone.
    pub asked: Arc<OperationRequest>,
    /// The claim under which the step began.
    pub claim_id: ClaimId,
    /// The number of the attempt at the event.
    pub attempt: u32,
    /// The process that made it.
    pub holder: Arc<str>,
    /// The durations that bind the operation.
    pub terms: Terms,
    /// The steps of the route.
    pub plan: Arc<Plan>,
    /// Which one has ended.
    pub step: Arc<str>,
    /// How it ended.
    pub ending: Ending,
}

/// The answer to the end of a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Advanced {
    /// Written, and this step has begun under the same claim and a fresh lease: its holder must run
    /// it.
    Next {
        /// Which one.
        step: Arc<str>,
    },
    /// Written. Other steps of the same claim still run.
    Recorded,
    /// Written, and nothing of the claim runs any more.
    Ended {
        /// A copy was refused meanwhile: if the event failed, its sender may have lost it.
        copy_refused: bool,
        /// How the event stands.
        end: EventEnd,
    },
    /// The record was gone. The outcome was written anew.
    RecordLost,
    /// The step is no longer this claim's. Nothing changed but the attempt log.
    Superseded,
}

/// How an event stands when no step of an attempt runs any more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EventEnd {
    /// All are done: what every copy gets.
    Succeeded(Arc<StoredAnswer>),
    /// The first step that is not done gives the sender its answer.
    Open(Arc<str>),
}

/// A step in flight or uncertain -> its outcome, for the claim under which it began. After a success
/// the next one begins, if they run one after the other and the claim on the event is still current.
impl Rule for StepEnd {
    type Answer = Advanced;
    const CALL: Call = Call::Advance;

    fn operation(&self) -> OperationId {
        self.asked.id
    }

    fn apply(&self, found: Option<Operation>, now: Timestamp) -> Transition<Advanced> {
        let mut seen = lapse(found, now);
        let Some(operation) = &mut seen.operation else {
            seen.operation = Some(lost(self, now));
            return seen.answered(Change::Durable, Advanced::RecordLost);
        };
        let step = operation.steps.iter().find(|step| step.name == self.step);
        let state = step.map(|step| &step.state);
        if state.and_then(StepState::current_claim) == Some(self.claim_id) {
            let copy_refused = copy_refused(&operation.state);
            settle(operation, self, now);
            follow(operation, self, copy_refused, now);
            let advanced = outlook(operation, self, copy_refused);
            seen.answered(Change::Durable, advanced)
        } else if state.and_then(StepState::settled_by) == Some(self.claim_id) {
            // The call was sent twice. Whether the first one is durable is not known.
            begin_once_more(operation, self, now);
            let advanced = outlook(operation, self, false);
            seen.answered(Change::Durable, advanced)
        } else {
            log_end(&mut operation.attempts, &line_of(self), &self.ending, now);
            seen.answered(Change::Lazy, Advanced::Superseded)
        }
    }

    fn stands_unwritten(answer: &Advanced) -> bool {
        *answer == Advanced::Superseded
    }
}

fn line_of(end: &StepEnd) -> Line<'_> {
    let StepEnd { claim_id, attempt, holder, step, .. } = end;
    Line { claim_id: *claim_id, attempt: *attempt, holder, step: Some(step) }
}

/// Writes the outcome of a step into the record.
fn settle(operation: &mut Operation, end: &StepEnd, now: Timestamp) {
    let StepEnd { claim_id, ending, .. } = end;
    log_end(&mut operation.attempts, &line_of(end), ending, now);
    let Some(step) = operation.steps.iter_mut().find(|step| step.name == end.step) else { return };
    let claim_id = *claim_id;
    let answer = match ending {
        Ending::Succeeded { answer, .. } => {
            let answer = Arc::clone(answer);
            step.state = StepState::Succeeded { claim_id: Some(claim_id), answer };
            return;
        }
        Ending::Failed { .. } | Ending::NeverSent { .. } => {
            step.state = StepState::Failed { claim_id: Some(claim_id) };
            return;
        }
        Ending::Uncertain { answer, .. } => Some(Arc::clone(answer)),
        Ending::Unanswered { .. } => None,
    };
    let reason = ending.reason();
    let ends_at = match &step.state {
        StepState::InFlight { ends_at, .. } => *ends_at,
        StepState::Uncertain(held) => held.ends_at,
        StepState::Waiting | StepState::Succeeded { .. } | StepState::Failed { .. } => now,
    };
    let since = match &step.state {
        StepState::Uncertain(held) => held.since,
        StepState::Waiting
        | StepState::InFlight { .. }
        | StepState::Succeeded { .. }
        | StepState::Failed { .. } => {
            note(&mut operation.decisions, decision(DecisionKind::Hold, &end.step, reason, now));
            now
        }
    };
    step.state = StepState::Uncertain(HeldStep { claim_id, reason, since, ends_at, answer });
}

/// What follows for the event: the next step begins, or its state is that of its steps.
fn follow(operation: &mut Operation, end: &StepEnd, copy_refused: bool, now: Timestamp) {
    let StepEnd { claim_id, attempt, holder, terms, plan, .. } = end;
    let holder = Holder { claim_id: *claim_id, name: holder, terms, copy_refused };
    match &operation.state {
        State::InFlight(lease) if lease.claim_id != *claim_id => return,
        // the latest claim stays the one that may go on
        State::Uncertain(held) if held.claim_id != *claim_id => {
            let latest = Holder { claim_id: held.claim_id, ..holder };
            return stand(operation, Some(plan), &latest, now);
        }
        State::InFlight(_) | State::Uncertain(_) => {}
        // the route does not have the step any more
        State::Succeeded(_) | State::Failed(_) | State::Forgotten { .. } => return,
    }
    let goes_on = matches!(end.ending, Ending::Succeeded { .. }) && !plan.at_once;
    add_missing(&mut operation.steps, plan);
    // nobody is asked in the middle of an attempt: that is for the next copy
    match run(operation, plan, Asks::Nobody, now) {
        Run::Begin(steps) if goes_on => {
            begin(operation, plan.named(&steps), &holder, *attempt, now);
        }
        Run::Begin(_) | Run::LookUp { .. } | Run::Held | Run::Done => {
            stand(operation, Some(plan), &holder, now);
        }
    }
}

/// Begins the next step once more. A holder that reports an end twice has not heard of the step that
/// began with the first report, so it has sent nothing to that receiver, even if the lease has run
/// out since. The step's times count from this call, as they do for its holder.
fn begin_once_more(operation: &mut Operation, end: &StepEnd, now: Timestamp) {
    let StepEnd { claim_id, holder, terms, plan, .. } = end;
    if plan.at_once || operation.state.current_claim() != Some(*claim_id) {
        return;
    }
    let began = |step: &&mut Step| match &step.state {
        StepState::InFlight { claim_id: of, .. } => of == claim_id,
        StepState::Uncertain(held) => {
            held.claim_id == *claim_id && held.reason == Reason::LeaseExpired
        }
        StepState::Waiting | StepState::Succeeded { .. } | StepState::Failed { .. } => false,
    };
    let Some(step) = operation.steps.iter_mut().find(began) else { return };
    let planned = plan.steps.iter().find(|planned| planned.name == step.name);
    let Some(planned) = planned else { return };
    let ends_at = now.plus(planned.attempt_timeout);
    step.state = StepState::InFlight { claim_id: *claim_id, ends_at };
    if let Some(line) = operation.attempts.of(*claim_id, Some(&planned.name)) {
        line.started_at = now;
        line.ended_at = None;
        line.outcome = None;
        line.reason = None;
    }
    operation.state = State::InFlight(Lease {
        claim_id: *claim_id,
        holder: Arc::clone(holder),
        expires_at: now.plus(terms.lease),
        ends_at,
        hold_for: terms.hold_for,
        copy_refused: copy_refused(&operation.state),
    });
}

/// How the event stands, for the holder of a claim on it.
fn outlook(operation: &Operation, end: &StepEnd, copy_refused: bool) -> Advanced {
    let StepEnd { claim_id, plan, .. } = end;
    let steps = ordered(&operation.steps, Some(plan));
    let runs = |step: &&&Step| matches!(&step.state, StepState::InFlight { claim_id: of, .. } if of == claim_id);
    if let Some(step) = steps.iter().find(runs) {
        let step = Arc::clone(&step.name);
        return if plan.at_once { Advanced::Recorded } else { Advanced::Next { step } };
    }
    let open = |step: &&&Step| !matches!(step.state, StepState::Succeeded { .. });
    let end = match &operation.state {
        State::Succeeded(success) => EventEnd::Succeeded(Arc::clone(&success.answer)),
        State::InFlight(_) | State::Uncertain(_) | State::Failed(_) | State::Forgotten { .. } => {
            let first = steps.iter().find(open);
            EventEnd::Open(Arc::clone(first.map_or(&end.step, |step| &step.name)))
        }
    };
    Advanced::Ended { copy_refused, end }
}

/// Of a record that is gone: steps before this one were done, or it would not have begun; of those
/// beside it nobody knows, until their own ends are reported.
fn lost(end: &StepEnd, now: Timestamp) -> Operation {
    let StepEnd { asked, claim_id, attempt, holder, terms, plan, .. } = end;
    let mut before = true;
    let steps = plan.steps.iter().map(|planned| {
        let ends_at = now.plus(planned.attempt_timeout);
        let is_it = planned.name == end.step;
        before &= !is_it;
        let state = if plan.at_once || is_it {
            let reason = Reason::LeaseLost;
            let since = now;
            let answer = None;
            StepState::Uncertain(HeldStep { claim_id: *claim_id, reason, since, ends_at, answer })
        } else if before {
            let answer = Arc::new(StoredAnswer::empty(http::StatusCode::OK));
            StepState::Succeeded { claim_id: None, answer }
        } else {
            StepState::Waiting
        };
        Step { name: Arc::clone(&planned.name), state }
    });
    let mut attempts = AttemptLog::default();
    let line = Attempt::begun(*attempt, *claim_id, holder, now);
    attempts.push(Attempt { step: Some(Arc::clone(&end.step)), ..line });
    let mut operation = Operation {
        asked: Arc::clone(asked),
        created_at: now,
        state: State::Forgotten { expires_at: now },
        attempts,
        decisions: Vec::new(),
        steps: steps.collect(),
    };
    settle(&mut operation, end, now);
    let holder = Holder { claim_id: *claim_id, name: holder, terms, copy_refused: false };
    stand(&mut operation, Some(plan), &holder, now);
    operation
}

const fn copy_refused(state: &State) -> bool {
    match state {
        State::InFlight(lease) => lease.copy_refused,
        State::Uncertain(held) => held.copy_refused,
        State::Succeeded(_) | State::Failed(_) | State::Forgotten { .. } => false,
    }
}
