//! The rule for the end of a look-up.

use std::sync::Arc;

use super::decisions::add;
use super::grant::grant;
use super::lapse::lapse;
use super::{
    Change, ClaimReply, ClaimRequest, Finding, LookupReport, ReportedState, Rule, RuleName, State,
    Transition, steps,
};
use crate::operation::{Decision, DecisionKind, Operation, OperationId, StoredAnswer, Timestamp};

/// The name of look-ups in the list of decisions.
const LOOKUP: &str = "lookup";

/// uncertain -> succeeded | in flight | uncertain, depending on the finding.
impl Rule for LookupReport {
    type Reply = ClaimReply;
    const NAME: RuleName = RuleName::Conclude;

    fn operation(&self) -> OperationId {
        self.request.subject.id
    }

    fn apply(&self, found: Option<Operation>, now: Timestamp) -> Transition<ClaimReply> {
        let mut lapsed = lapse(found, now);
        let current = lapsed.operation.take_if(|found| is_current(&found.state, self));
        let done = if let Some(operation) = current {
            conclude(operation, self, now)
        } else {
            // Meanwhile the attempt was settled late, an operator decided, or the lease ran out and
            // another copy asked. The finding may be out of date, so it changes nothing.
            let look = ClaimRequest { may_grant: false, ..self.request.clone() };
            look.apply(lapsed.operation.take(), now)
        };
        done.after(&lapsed)
    }

    fn is_valid_unwritten(reply: &ClaimReply) -> bool {
        ClaimRequest::is_valid_unwritten(reply)
    }
}

fn conclude(
    mut operation: Operation,
    report: &LookupReport,
    now: Timestamp,
) -> Transition<ClaimReply> {
    let LookupReport { request, step, finding, .. } = report;
    add(&mut operation.decisions, decision(report, now));
    if let (Some(step), Some(plan)) = (step, &request.plan) {
        return steps::conclude(operation, plan, step, report, now);
    }
    let attempt = operation.attempts.latest_number();
    let may_repeat = request.if_uncertain.allows_another(operation.attempts.uncertain(None));
    let State::Uncertain(hold) = &mut operation.state else {
        return request.apply(Some(operation), now);
    };
    let reply = match finding {
        Finding::Done => {
            let answer = StoredAnswer::for_copies(hold.answer.as_ref());
            let reply = ReportedState::Succeeded { attempt, answer: Arc::clone(&answer) };
            operation.state = State::succeeded(None, answer, request.durations.retention, now);
            reply.into()
        }
        // *Not done* means *not yet* while the upstream may still be working on the last attempt.
        Finding::NotDone if hold.ends_at <= now && may_repeat => {
            return grant(Some(operation), request, now);
        }
        Finding::NotDone | Finding::Unknown => {
            hold.lookup = None;
            hold.refuse(attempt, now)
        }
    };
    Transition::to(operation, Change::Durable, reply)
}

/// Whether the report belongs to the look-up that was granted last.
fn is_current(state: &State, report: &LookupReport) -> bool {
    let LookupReport { request, step, .. } = report;
    let State::Uncertain(hold) = state else { return false };
    let lookup = hold.lookup.as_ref();
    lookup.is_some_and(|lookup| lookup.id == request.claim_id && lookup.step == *step)
}

fn decision(report: &LookupReport, now: Timestamp) -> Decision {
    let LookupReport { step, finding, reason, reference, .. } = report;
    let finding = finding.as_str();
    let reason = match step {
        Some(step) => format!("{step}: {finding}: {reason}"),
        None => format!("{finding}: {reason}"),
    };
    Decision {
        at: now,
        by: LOOKUP.to_owned(),
        kind: DecisionKind::LookedUp,
        reason,
        reference: reference.clone(),
    }
}
