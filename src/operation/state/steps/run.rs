//! Which steps of an event a copy may run, and which it may ask about.

use std::sync::Arc;
use std::time::Duration;

use super::super::IfUncertain;
use crate::operation::{AttemptLog, HeldStep, Operation, Plan, PlannedStep, StepState, Timestamp};

/// What is to be done about the steps of an event of which nothing is in flight.
pub(in crate::operation::state) enum Run {
    /// These begin.
    Begin(Vec<Arc<str>>),
    /// Nothing can begin before the receiver of this one was asked, for so long at most.
    LookUp { step: Arc<str>, lease: Duration },
    /// Nothing can begin: what is left is held.
    Held,
    /// All are done.
    Done,
}

/// Which receivers may be asked.
#[derive(Clone, Copy)]
pub(in crate::operation::state) enum Asks<'a> {
    Nobody,
    Everybody,
    /// Those of the steps behind this one, which was asked about just now.
    Behind(&'a str),
}

/// In order, the first step that is not done, and those behind it wait; at once, all of them. One
/// whose outcome is unknown goes by its own policy.
pub(in crate::operation::state) fn run(
    operation: &Operation,
    plan: &Plan,
    asks: Asks<'_>,
    now: Timestamp,
) -> Run {
    let mut to_begin = Vec::new();
    let mut to_ask = None;
    let mut open = false;
    let (mut may_ask, behind) = match asks {
        Asks::Nobody => (false, None),
        Asks::Everybody => (true, None),
        Asks::Behind(step) => (false, Some(step)),
    };
    for planned in &plan.steps {
        let found = operation.steps.iter().find(|step| step.name == planned.name);
        let state = found.map_or(&StepState::Waiting, |step| &step.state);
        let begins = match state {
            StepState::Succeeded { .. } => continue,
            StepState::Waiting | StepState::Failed { .. } => true,
            StepState::Uncertain(held) => may_attempt(held, planned, &operation.attempts, now),
            StepState::InFlight { .. } => false,
        };
        if begins {
            to_begin.push(Arc::clone(&planned.name));
        } else if may_ask && matches!(state, StepState::Uncertain(_)) {
            to_ask = to_ask.or_else(|| asked_about(planned));
        }
        may_ask |= behind == Some(&*planned.name);
        open = true;
        if !plan.at_once {
            break;
        }
    }
    match (to_begin.is_empty(), to_ask) {
        (false, _) => Run::Begin(to_begin),
        (true, Some((step, lease))) => Run::LookUp { step, lease },
        (true, None) if open => Run::Held,
        (true, None) => Run::Done,
    }
}

fn asked_about(planned: &PlannedStep) -> Option<(Arc<str>, Duration)> {
    match planned.if_uncertain {
        IfUncertain::LookedUp { lease, .. } => Some((Arc::clone(&planned.name), lease)),
        IfUncertain::Held | IfUncertain::Retried { .. } => None,
    }
}

/// Whether an uncertain step is sent again without asking.
fn may_attempt(
    held: &HeldStep,
    planned: &PlannedStep,
    attempts: &AttemptLog,
    now: Timestamp,
) -> bool {
    match planned.if_uncertain {
        IfUncertain::Retried { attempts_max } => {
            held.ends_at <= now && attempts.uncertain(Some(&planned.name)) < attempts_max
        }
        IfUncertain::Held | IfUncertain::LookedUp { .. } => false,
    }
}
