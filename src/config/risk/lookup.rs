//! Advice about look-ups that are never made, or whose answer may be about another operation.

use super::finding::{ExaminedRoute, Finding};
use crate::idempotency::{LookupSettings, ReceiverPolicy};
use crate::operation::state::IfUncertain;

pub(super) fn risks(examined: &ExaminedRoute<'_>) -> Vec<Finding> {
    let mut risks: Vec<Finding> = lookup_unused(examined).into_iter().collect();
    match &examined.route.steps {
        // With steps, each step asks with its own URL.
        None => {
            let lookup = examined.route.policy.receiver.lookup.as_ref();
            risks.extend(lookup.and_then(|it| lookup_by_id_alone(examined, "lookup.url", it)));
        }
        Some(steps) => {
            for (index, step) in steps.steps.iter().enumerate() {
                let url = format!("steps.{index}.lookup.url");
                let lookup = step.receiver.lookup.as_ref();
                risks.extend(lookup.and_then(|it| lookup_by_id_alone(examined, &url, it)));
            }
        }
    }
    risks
}

fn lookup_unused(examined: &ExaminedRoute<'_>) -> Option<Finding> {
    let is_idle = |policy: &ReceiverPolicy| {
        policy.lookup.is_some() && !matches!(policy.if_uncertain, IfUncertain::LookUp { .. })
    };
    let is_idle = match &examined.route.steps {
        None => is_idle(&examined.route.policy.receiver),
        Some(steps) => steps.steps.iter().any(|step| is_idle(&step.receiver)),
    };
    is_idle.then(|| {
        examined.finding(
            "lookup-unused",
            "lookup.url",
            "nobody is asked there: `when_uncertain` is not `lookup`",
            "`when_uncertain = \"lookup\"` asks there",
        )
    })
}

/// The type of an event is a part of its identity wherever it has one, and so is the scope. A URL
/// with the id alone asks about several operations at once.
fn lookup_by_id_alone(
    examined: &ExaminedRoute<'_>,
    setting: &str,
    lookup: &LookupSettings,
) -> Option<Finding> {
    let url = lookup.url.to_string();
    let by_id = ["{key}", "{event_id}"].into_iter().find(|name| url.contains(name))?;
    (!url.contains("{operation}")).then(|| {
        examined.finding(
            "lookup-by-id-alone",
            setting,
            format!(
                "`{by_id}` is the same for two operations that differ in type, `key.scope`, method \
                 or path: what the receiver says of one is taken for the other"
            ),
            "name it by `{operation}`, which the receiver got as `Onceward-Operation`, there too",
        )
    })
}
