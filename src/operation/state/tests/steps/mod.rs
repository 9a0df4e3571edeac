//! Events with several receivers: the steps that run, and the effects of claims, leases, crashes
//! and operators on them.

mod lasting;
mod lookup;
mod running;

use super::*;

const NAMES: [&str; 3] = ["charge", "account", "mail"];

fn plan_with(at_once: bool, if_uncertain: IfUncertain) -> Arc<Plan> {
    let planned = |name: &str| PlannedStep {
        name: name.into(),
        attempt_timeout: Duration::from_millis(ATTEMPT_TIMEOUT),
        if_uncertain,
        forward_key: (name == "charge").then(|| "x-dedup".into()),
    };
    let steps = NAMES.into_iter().map(planned).collect();
    Arc::new(Plan { steps, at_once, answer_from: "mail".into() })
}

fn in_order() -> Arc<Plan> {
    plan_with(false, IfUncertain::Hold)
}

fn at_once() -> Arc<Plan> {
    plan_with(true, IfUncertain::Hold)
}

fn claiming(n: u8, plan: &Arc<Plan>) -> ClaimRequest {
    ClaimRequest { plan: Some(Arc::clone(plan)), ..request(n) }
}

fn end(n: u8, plan: &Arc<Plan>, step: &str, outcome: Outcome) -> StepSettlement {
    let reference = None;
    let ending = match outcome {
        Outcome::Succeeded => Ending::Succeeded { answer: named_answer(step), reference },
        Outcome::Failed => ending(outcome),
        Outcome::Uncertain => Ending::Unanswered { reason: Reason::TimedOut, status: None },
    };
    let plan = Arc::clone(plan);
    let step = step.into();
    StepSettlement { settlement: Settlement { ending, ..settlement(n, outcome) }, plan, step }
}

/// An answer whose body is the name of its step.
fn named_answer(step: &str) -> Arc<StoredAnswer> {
    let body = AnswerBody::Kept(step.to_owned().into());
    Arc::new(StoredAnswer { body, ..StoredAnswer::empty(http::StatusCode::OK) })
}

fn begun(attempt: u32, steps: &[&str]) -> ClaimReply {
    ClaimReply::Granted(Grant { attempt, steps: steps.iter().map(|&step| step.into()).collect() })
}

fn next(step: &str) -> Advanced {
    Advanced::Next { step: step.into() }
}

fn open(step: &str) -> Advanced {
    Advanced::Ended { copy_refused: false, end: EventEnd::Open(step.into()) }
}

/// The state of each step, and then the state of the event.
fn standing(operation: Option<&Operation>) -> String {
    let operation = operation.unwrap();
    let steps = operation.steps.iter().map(|step| step.state.as_str());
    format!("{} {}", steps.collect::<Vec<_>>().join(" "), operation.state.as_str())
}

/// The record after these steps have ended in this order, each with its outcome.
fn after(n: u8, plan: &Arc<Plan>, ends: &[(&str, Outcome)]) -> Option<Operation> {
    let done = claim(None, &claiming(n, plan), T0);
    assert!(
        matches!(done.reply, ClaimReply::Granted(Grant { attempt: 1, .. })),
        "{:?}",
        done.reply
    );
    ends.iter().fold(done.operation, |found, (step, outcome)| {
        let done = advance(found, &end(n, plan, step, *outcome), at(1));
        assert_eq!(done.change, Change::Durable);
        done.operation
    })
}
