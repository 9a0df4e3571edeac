//! The end of a look-up about one of the steps.

use std::sync::Arc;

use super::event::update_state;
use super::next_steps::{Lookups, Next, next_steps};
use crate::operation::state::holder::Holder;
use crate::operation::state::{
    Change, ClaimReply, ClaimRequest, Finding, Hold, LookupGrant, LookupReport, ReportedState,
    Rule as _, State, Transition,
};
use crate::operation::{Operation, Plan, StepState, StoredAnswer, Timestamp};

/// An uncertain event -> the state that follows from the finding. The same request may then be
/// granted the steps that can begin, or a look-up about a later step.
pub(in crate::operation::state) fn conclude(
    mut operation: Operation,
    plan: &Plan,
    step: &Arc<str>,
    report: &LookupReport,
    now: Timestamp,
) -> Transition<ClaimReply> {
    let request = &report.request;
    let attempt = operation.attempts.latest_number();
    if settle(&mut operation, plan, step, report.finding, now) {
        return follow(operation, plan, request, now);
    }
    let next = next_steps(&operation, plan, Lookups::After(step), now);
    let State::Uncertain(hold) = &mut operation.state else {
        return request.apply(Some(operation), now);
    };
    hold.lookup = None;
    let reply = match next {
        Next::Lookup { step, lease } => {
            hold.grant_look_up(request, LookupGrant { attempt, step }, lease, now)
        }
        Next::Attempt(_) | Next::Hold | Next::Done => hold.refuse(attempt, now),
    };
    Transition::to(operation, Change::Durable, reply)
}

/// Sets the state of the event after a look-up has settled one of its steps. The request that has
/// looked up gets what follows.
fn follow(
    mut operation: Operation,
    plan: &Plan,
    request: &ClaimRequest,
    now: Timestamp,
) -> Transition<ClaimReply> {
    let attempt = operation.attempts.latest_number();
    let State::Uncertain(hold) = &mut operation.state else {
        return request.apply(Some(operation), now);
    };
    hold.lookup = None;
    let Hold { claim_id, copy_refused, .. } = *hold;
    let holder = Holder { claim_id, copy_refused, ..request.holder() };
    update_state(&mut operation, Some(plan), &holder, now);
    // This request gets the success even on a route that shares successes only with waiters. A
    // claim would take the request for a new event.
    if let State::Succeeded(success) = &operation.state {
        let answer = Arc::clone(&success.answer);
        let reply = ReportedState::Succeeded { attempt, answer };
        return Transition::to(operation, Change::Durable, reply.into());
    }
    let mut done = request.apply(Some(operation), now);
    done.change = Change::Durable;
    done
}

/// Records the finding in the step. The result is false if the step stays uncertain.
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
    let StepState::Uncertain(hold) = &step.state else { return false };
    let planned = plan.steps.iter().find(|planned| planned.name == *name);
    let uncertain = operation.attempts.uncertain(Some(name));
    let may_repeat = planned.is_some_and(|it| it.if_uncertain.allows_another(uncertain));
    step.state = match finding {
        Finding::Done => {
            let answer = StoredAnswer::for_copies(hold.answer.as_ref());
            StepState::Succeeded { claim_id: None, answer }
        }
        // *Not done* means *not yet* while the receiver may still be working on the last attempt.
        Finding::NotDone if hold.ends_at <= now && may_repeat => {
            StepState::Failed { claim_id: None }
        }
        Finding::NotDone | Finding::Unknown => return false,
    };
    true
}
