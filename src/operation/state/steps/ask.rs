//! What a look-up has found about one of the steps.

use std::sync::Arc;

use super::super::lookup::{self, Conclusion, Finding, refuse};
use super::super::{
    Change, Claimed, IfUncertain, LookUpLease, OperationState, Rule as _, State, Transition,
};
use super::{Asks, Holder, Run, run, stand};
use crate::operation::{AnswerBody, HeldStep, Operation, Plan, StepState, StoredAnswer, Timestamp};

/// An uncertain event -> what follows from the finding. The same request runs what can begin then,
/// or asks about the next step that may be asked about.
pub(in crate::operation::state) fn conclude(
    mut operation: Operation,
    plan: &Plan,
    step: &Arc<str>,
    conclusion: &Conclusion,
    now: Timestamp,
) -> Transition<Claimed> {
    let request = &conclusion.request;
    let attempt = operation.attempts.latest_number();
    let settled = settle(&mut operation, plan, step, conclusion.finding, now);
    let next = run(&operation, plan, Asks::Behind(step), now);
    let State::Uncertain(held) = &mut operation.state else {
        return request.apply(Some(operation), now);
    };
    held.lookup = None;
    if settled {
        let claim_id = held.claim_id;
        let copy_refused = held.copy_refused;
        let name = &request.holder;
        let terms = &request.terms;
        let holder = Holder { claim_id, name, terms, copy_refused };
        stand(&mut operation, Some(plan), &holder, now);
        if let State::Succeeded(success) = &operation.state {
            let answer = Arc::clone(&success.answer);
            let told = OperationState::Succeeded { attempt, answer };
            return Transition::to(operation, Change::Durable, told.into());
        }
        return request.apply(Some(operation), now).after(Change::Durable, false);
    }
    let result = match next {
        Run::LookUp { step, lease } => {
            let id = request.claim_id;
            let inquiry = LookUpLease { id, until: now.plus(lease), step: Some(step) };
            lookup::begin(held, attempt, inquiry, now)
        }
        Run::Begin(_) | Run::Held | Run::Done => refuse(held, attempt, now),
    };
    Transition::to(operation, Change::Durable, result)
}

/// Whether the finding ends the uncertainty of the step.
fn settle(
    operation: &mut Operation,
    plan: &Plan,
    name: &Arc<str>,
    finding: Finding,
    now: Timestamp,
) -> bool {
    let Some(step) = operation.steps.iter_mut().find(|step| step.name == *name) else {
        return false;
    };
    let StepState::Uncertain(held) = &step.state else { return false };
    let planned = plan.steps.iter().find(|planned| planned.name == *name);
    let attempts_max = match planned.map(|planned| planned.if_uncertain) {
        Some(IfUncertain::LookedUp { attempts_max, .. }) => attempts_max,
        Some(IfUncertain::Held | IfUncertain::Retried { .. }) | None => 0,
    };
    let attempts = operation.attempts.uncertain(Some(name));
    step.state = match finding {
        Finding::Done => StepState::Succeeded { claim_id: None, answer: answer_of(held) },
        Finding::NotDone if held.ends_at <= now && attempts < attempts_max => {
            StepState::Failed { claim_id: None }
        }
        Finding::NotDone | Finding::Unknown => return false,
    };
    true
}

fn answer_of(held: &HeldStep) -> Arc<StoredAnswer> {
    let complete = |answer: &Arc<StoredAnswer>| {
        answer.status.is_success() && matches!(answer.body, AnswerBody::Kept(_))
    };
    let stored = held.answer.clone().filter(complete);
    stored.unwrap_or_else(|| Arc::new(StoredAnswer::empty(http::StatusCode::OK)))
}
