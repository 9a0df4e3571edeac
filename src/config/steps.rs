//! The upstream of a route, or its steps.

use std::sync::Arc;

use super::lookup::LookupUse;
use super::reader::Reported;
use super::receiver::receiver;
use super::shown::quoted;
use super::table::Table;
use crate::idempotency::{StepPolicy, StepsPolicy};
use crate::upstream::Target;

/// An event with more receivers than these is not one event.
const STEPS_MAX: usize = 32;

/// Where a route forwards to.
pub(super) struct Receivers {
    /// The upstream. Of a route with steps it is the one whose answer counts, and requests that are
    /// not deduplicated go there.
    pub(super) target: Target,
    pub(super) steps: Option<Steps>,
}

/// The steps of a route.
pub(super) struct Steps {
    steps: Vec<StepPolicy>,
    answer_from: Arc<str>,
}

impl Steps {
    /// The policy of the steps, either one after the other or at once.
    pub(super) fn policy(self, at_once: bool) -> StepsPolicy {
        StepsPolicy { steps: self.steps, at_once, answer_from: self.answer_from }
    }
}

/// Reads where a route forwards to.
pub(super) fn receivers(table: &mut Table<'_, '_>) -> Result<Receivers, Reported> {
    let upstream = table.written::<Target>("upstream");
    let steps = table.tables("steps", step);
    let answer_from = table.written::<String>("answer_from");
    let Some(steps) = steps? else {
        // One upstream answers itself. The setting was most likely meant for steps.
        if let Ok(Some(_)) = answer_from {
            let hint = "add `[[routes.NAME.steps]]`, or take it out: one `upstream` answers itself";
            let key = table.key("answer_from");
            table.reader.report(&key, "`steps` beside it", "none", Some(hint));
        }
        let target = upstream?.ok_or_else(|| table.missing("upstream", "a value", None))?;
        return Ok(Receivers { target, steps: None });
    };
    if let Ok(Some(_)) = upstream {
        let hint = "take it out: each of the `steps` has its own";
        let key = table.key("upstream");
        table.reader.report(&key, "it in each step", "one beside `steps`", Some(hint));
    }
    if steps.is_empty() || steps.len() > STEPS_MAX {
        return Err(table.wrong("steps", "1 to 32 steps", steps.len().to_string()));
    }
    // The id of an operation at a step is made of the name of the step.
    check_names(table, &steps)?;
    let answering = match answer_from? {
        // The steps run in their order, so that the last one ends when all are done.
        None => steps.last(),
        Some(name) => {
            let named = steps.iter().find(|step| *step.name == *name);
            if named.is_none() {
                let expected = "the name of one of the steps";
                return Err(table.wrong("answer_from", expected, quoted(&name)));
            }
            named
        }
    };
    let answering = answering.ok_or_else(|| table.missing("steps", "a value", None))?;
    let target = answering.upstream.target.clone();
    let answer_from = Arc::clone(&answering.name);
    Ok(Receivers { target, steps: Some(Steps { steps, answer_from }) })
}

fn check_names(table: &mut Table<'_, '_>, steps: &[StepPolicy]) -> Result<(), Reported> {
    for (index, step) in steps.iter().enumerate() {
        if steps.iter().take(index).any(|other| other.name == step.name) {
            let key = table.key("steps").join(index.to_string()).join("name");
            let expected = "a name that no other step of this route has";
            let hint = "the name is part of the id that the receiver gets: give each its own";
            return Err(table.reader.report(&key, expected, quoted(&step.name), Some(hint)));
        }
    }
    Ok(())
}

fn step(table: &mut Table<'_, '_>) -> Result<StepPolicy, Reported> {
    let name = table.needed::<String>("name", None).and_then(|name| {
        let key = table.key("name");
        table.reader.check_name(&key, &name)?;
        Ok(name)
    });
    let target = table.needed("upstream", None);
    let receiver = receiver(table, LookupUse::Used)?;
    Ok(StepPolicy {
        name: name?.into(),
        upstream: receiver.connection.to(target?),
        attempt_timeout: receiver.attempt_timeout,
        receiver: receiver.policy,
    })
}
