//! The rule for the end of a step. The same atomic change begins the next step.

use std::sync::Arc;

use super::event::{add_missing, begin, make_uncertain, steps_of, update_state};
use super::next_steps::{Lookups, Next, next_steps};
use crate::operation::state::decisions::{add, by_setting};
use crate::operation::state::holder::Holder;
use crate::operation::state::lapse::lapse;
use crate::operation::state::settle::{Completion, Ending, Settlement, log_end};
use crate::operation::state::{Change, Rule, RuleName, State, Transition};
use crate::operation::{
    Attempt, DecisionKind, Operation, OperationId, Plan, Reason, Step, StepHold, StepState,
    StoredAnswer, Timestamp,
};

/// The end of a step, as its holder reports it.
#[derive(Debug, Clone)]
pub struct StepSettlement {
    /// The claim under which the step began, and how the step ended.
    pub settlement: Settlement,
    /// The steps of the route.
    pub plan: Arc<Plan>,
    /// The name of the step.
    pub step: Arc<str>,
}

/// The reply to the end of a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Advanced {
    /// The outcome is recorded, and this step has begun under the same claim and a new lease. The
    /// holder must run it.
    Next {
        /// The name of the step.
        step: Arc<str>,
    },
    /// The outcome is recorded. Other steps still run under the same claim.
    Recorded,
    /// The outcome is recorded, and no step runs under the claim any more.
    Ended {
        /// Whether a copy was refused since the claim. If the event failed and the copy's sender
        /// does not come back, the event is lost.
        copy_refused: bool,
        /// What has become of the event.
        end: EventEnd,
    },
    /// The store had lost the record. The outcome is recorded in a new one.
    RecordLost,
    /// The step no longer belongs to this claim. Nothing changed but the attempt log.
    Superseded,
}

/// What has become of an event when no step of its attempt runs any more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EventEnd {
    /// All steps were done. Copies get this answer.
    Succeeded(Arc<StoredAnswer>),
    /// Not all steps were done, and this is the first one that was not. The sender gets the answer
    /// of that step's receiver.
    Open(Arc<str>),
}

/// A step in flight or uncertain -> its outcome, for the claim under which it began. After a
/// success the next step begins, if the steps run one after the other and the claim on the event is
/// still current.
impl Rule for StepSettlement {
    type Reply = Advanced;
    const NAME: RuleName = RuleName::Advance;

    fn operation(&self) -> OperationId {
        self.settlement.operation()
    }

    fn apply(&self, found: Option<Operation>, now: Timestamp) -> Transition<Advanced> {
        let mut lapsed = lapse(found, now);
        let Some(operation) = &mut lapsed.operation else {
            lapsed.operation = Some(new_record(self, now));
            return lapsed.replied(Change::Durable, Advanced::RecordLost);
        };
        let claim_id = self.settlement.claim_id;
        let step = operation.steps.iter().find(|step| step.name == self.step);
        let state = step.map(|step| &step.state);
        if state.and_then(StepState::current_claim) == Some(claim_id) {
            let copy_refused = operation.state.copy_refused();
            settle(operation, self, now);
            continue_event(operation, self, now);
            let advanced = reply(operation, self, copy_refused);
            lapsed.replied(Change::Durable, advanced)
        } else if state.and_then(StepState::settled_by) == Some(claim_id) {
            // The holder repeats a call whose reply was lost. The first call has changed the
            // record, which may not be durable yet, so it is written again.
            begin_once_more(operation, self, now);
            let advanced = reply(operation, self, false);
            lapsed.replied(Change::Durable, advanced)
        } else {
            // Another claim has begun the step again, or an operator has decided about it.
            log_end(&mut operation.attempts, &self.settlement, Some(&self.step), now);
            lapsed.replied(Change::Lazy, Advanced::Superseded)
        }
    }

    fn is_valid_unwritten(reply: &Advanced) -> bool {
        *reply == Advanced::Superseded
    }
}

/// Writes the outcome of a step into the record.
fn settle(operation: &mut Operation, end: &StepSettlement, now: Timestamp) {
    let Settlement { claim_id, ref ending, .. } = end.settlement;
    log_end(&mut operation.attempts, &end.settlement, Some(&end.step), now);
    let Some(step) = operation.steps.iter_mut().find(|step| step.name == end.step) else { return };
    let reason = ending.reason();
    step.state = match (ending.completion(), &step.state) {
        (Completion::Done(answer), _) => StepState::Succeeded { claim_id: Some(claim_id), answer },
        (Completion::NotDone, _) => StepState::Failed { claim_id: Some(claim_id) },
        (Completion::Unknown(answer), &StepState::InFlight { ends_at, .. }) => {
            let decision = by_setting(DecisionKind::Hold, Some(&end.step), reason, now);
            add(&mut operation.decisions, decision);
            StepState::Uncertain(StepHold { claim_id, reason, since: now, ends_at, answer })
        }
        (Completion::Unknown(answer), StepState::Uncertain(hold)) => {
            StepState::Uncertain(StepHold { reason, answer, ..hold.clone() })
        }
        // The step does not belong to the claim, so it stays as it is.
        (
            Completion::Unknown(_),
            StepState::Waiting | StepState::Succeeded { .. } | StepState::Failed { .. },
        ) => return,
    };
}

/// Begins the next step of the event, or sets the event's state to the one that follows from its
/// steps.
fn continue_event(operation: &mut Operation, end: &StepSettlement, now: Timestamp) {
    let StepSettlement { settlement, plan, .. } = end;
    let Settlement { claim_id, attempt, ending, .. } = settlement;
    let copy_refused = operation.state.copy_refused();
    let holder = Holder { copy_refused, ..settlement.holder() };
    match &operation.state {
        State::InFlight(lease) if lease.claim_id != *claim_id => return,
        // A later claim has run other steps of the event since, and may still settle them. The
        // later claim stays the current one.
        State::Uncertain(hold) if hold.claim_id != *claim_id => {
            let latest = Holder { claim_id: hold.claim_id, ..holder };
            return update_state(operation, Some(plan), &latest, now);
        }
        State::InFlight(_) | State::Uncertain(_) => {}
        // The route has lost this step since, and the event was settled without it.
        State::Succeeded(_) | State::Failed(_) | State::Forgotten { .. } => return,
    }
    // After a failure or an unknown outcome the later steps wait: their receivers may rely on this
    // one.
    let goes_on = matches!(ending, Ending::Succeeded { .. }) && !plan.at_once;
    add_missing(&mut operation.steps, plan);
    // Look-ups are for copies. This attempt has just sent its steps to their receivers.
    match next_steps(operation, plan, Lookups::None, now) {
        Next::Attempt(steps) if goes_on => {
            begin(operation, plan.named(&steps), &holder, *attempt, now);
        }
        Next::Attempt(_) | Next::Lookup { .. } | Next::Hold | Next::Done => {
            update_state(operation, Some(plan), &holder, now);
        }
    }
}

/// Begins the next step once more. A holder that reports an end twice got no reply to its first
/// report. So the holder does not know of the step that the first report began, and has sent
/// nothing to its receiver, even if the lease has run out since. The holder counts the times of the
/// step from this call, and so must the record.
fn begin_once_more(operation: &mut Operation, end: &StepSettlement, now: Timestamp) {
    let StepSettlement { settlement, plan, .. } = end;
    let Settlement { claim_id, .. } = settlement;
    if plan.at_once || operation.state.current_claim() != Some(*claim_id) {
        return;
    }
    let began = |step: &&mut Step| match &step.state {
        StepState::InFlight { claim_id: under, .. } => under == claim_id,
        StepState::Uncertain(hold) => {
            hold.claim_id == *claim_id && hold.reason == Reason::LeaseExpired
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
    let copy_refused = operation.state.copy_refused();
    operation.state = Holder { copy_refused, ..settlement.holder() }.in_flight(ends_at, now);
}

/// The reply to the holder, from the record as it is now.
fn reply(operation: &Operation, end: &StepSettlement, copy_refused: bool) -> Advanced {
    let StepSettlement { settlement, plan, .. } = end;
    let steps = steps_of(&operation.steps, Some(plan));
    if let Some(step) = steps.iter().find(|step| step.state.is_in_flight(settlement.claim_id)) {
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

/// A new record with this outcome, for an event whose record the store has lost. Steps before this
/// one were done, because otherwise this one would not have begun. Steps that began beside it have
/// lost their lease with the record, and are uncertain until their own ends are reported.
fn new_record(end: &StepSettlement, now: Timestamp) -> Operation {
    let StepSettlement { settlement, plan, .. } = end;
    let Settlement { subject, claim_id, attempt, holder, .. } = settlement;
    let mut operation = Operation::begun(subject, now);
    let mut is_before = true;
    for planned in &plan.steps {
        let is_it = planned.name == end.step;
        is_before &= !is_it;
        let state = if plan.at_once || is_it {
            let ends_at = now.plus(planned.attempt_timeout);
            StepState::InFlight { claim_id: *claim_id, ends_at }
        } else if is_before {
            StepState::Succeeded { claim_id: None, answer: StoredAnswer::for_copies(None) }
        } else {
            StepState::Waiting
        };
        operation.steps.push(Step { name: Arc::clone(&planned.name), state });
    }
    let line = Attempt::begun(*attempt, *claim_id, holder, now);
    operation.attempts.push(Attempt { step: Some(Arc::clone(&end.step)), ..line });
    settle(&mut operation, end, now);
    if operation.steps.iter().any(|step| step.state.is_in_flight(*claim_id)) {
        make_uncertain(&mut operation, Reason::LeaseExpired, now);
        let decision = by_setting(DecisionKind::Hold, None, Reason::LeaseExpired, now);
        add(&mut operation.decisions, decision);
    }
    update_state(&mut operation, Some(plan), &settlement.holder(), now);
    operation
}
