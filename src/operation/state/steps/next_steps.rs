//! Decides which steps of an event may begin, and about which step the receiver may be asked.

use std::sync::Arc;
use std::time::Duration;

use crate::operation::copies::IfUncertain;
use crate::operation::{Operation, Plan, StepState, Timestamp};

/// The decision about an uncertain operation, or about the steps of an event.
pub(in crate::operation::state) enum Next {
    /// An attempt may begin: at these steps, or at the whole operation on a route without steps.
    Attempt(Vec<Arc<str>>),
    /// Nothing may be sent, but the receiver of the operation, or of this step, may be asked
    /// whether it was done. Other copies may not ask while `lease` lasts.
    Lookup { step: Option<Arc<str>>, lease: Duration },
    /// Nothing may be sent: the operation, or each step that is left, is held.
    Hold,
    /// All steps were done.
    Done,
}

/// The steps whose receivers may be asked.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(in crate::operation::state) enum Lookups<'a> {
    /// None of them.
    None,
    /// All of them.
    Any,
    /// Those after this step, whose receiver was asked just now.
    After(&'a str),
}

/// Decides about the first step that was not done if the steps run one after the other, and about
/// all steps that were not done if they run at the same time. Each uncertain step follows its own
/// policy.
pub(in crate::operation::state) fn next_steps(
    operation: &Operation,
    plan: &Plan,
    look_ups: Lookups<'_>,
    now: Timestamp,
) -> Next {
    let mut to_begin = Vec::new();
    let mut to_ask = None;
    let mut all_done = true;
    let mut may_ask = look_ups == Lookups::Any;
    for planned in &plan.steps {
        let found = operation.steps.iter().find(|step| step.name == planned.name);
        let state = found.map_or(&StepState::Waiting, |step| &step.state);
        let begins = match state {
            StepState::Succeeded { .. } => continue,
            StepState::Waiting | StepState::Failed { .. } => true,
            StepState::Uncertain(hold) => {
                let uncertain = operation.attempts.uncertain(Some(&planned.name));
                matches!(planned.if_uncertain, IfUncertain::Retry { .. })
                    && hold.ends_at <= now
                    && planned.if_uncertain.allows_another(uncertain)
            }
            StepState::InFlight { .. } => false,
        };
        if begins {
            to_begin.push(Arc::clone(&planned.name));
        } else if may_ask
            && to_ask.is_none()
            && matches!(state, StepState::Uncertain(_))
            && let IfUncertain::LookUp { lease, .. } = planned.if_uncertain
        {
            to_ask = Some(Next::Lookup { step: Some(Arc::clone(&planned.name)), lease });
        }
        may_ask |= look_ups == Lookups::After(&planned.name);
        all_done = false;
        // The receiver of a later step may rely on what the earlier ones have done.
        if !plan.at_once {
            break;
        }
    }
    if !to_begin.is_empty() {
        return Next::Attempt(to_begin);
    }
    to_ask.unwrap_or(if all_done { Next::Done } else { Next::Hold })
}
