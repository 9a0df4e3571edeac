//! Look-ups that nobody makes, or whose answer may be about another operation.

use super::problem::Key;
use super::risk::Risk;
use crate::idempotency::{LookupSettings, StepPolicy};
use crate::operation::state::IfUncertain;
use crate::proxy::RouteSettings;

pub(super) fn risks(at: &Key, route: &RouteSettings) -> Vec<Risk> {
    let mut risks: Vec<Risk> = unused(at, route).into_iter().collect();
    match &route.steps {
        None => risks.extend(route.policy.lookup.as_ref().and_then(|it| ambiguous(at, it))),
        Some(steps) => {
            for (index, step) in steps.steps.iter().enumerate() {
                let at = at.join("steps").join(index.to_string());
                risks.extend(step.lookup.as_ref().and_then(|it| ambiguous(&at, it)));
            }
        }
    }
    risks
}

fn unused(at: &Key, route: &RouteSettings) -> Option<Risk> {
    let used = |if_uncertain| matches!(if_uncertain, IfUncertain::LookedUp { .. });
    let idle = match &route.steps {
        None => route.policy.lookup.is_some() && !used(route.policy.if_uncertain),
        Some(steps) => {
            let some = |step: &StepPolicy| step.lookup.is_some() && !used(step.if_uncertain);
            steps.steps.iter().any(some)
        }
    };
    idle.then(|| Risk {
        code: "lookup-unused",
        key: at.join("lookup").join("url"),
        text: "nobody is asked there: `when_uncertain` is not `lookup`".to_owned(),
        hint: "`when_uncertain = \"lookup\"` asks there".into(),
    })
}

/// An event's type is always a part of its identity where it has one, and its id is not all of it.
fn ambiguous(at: &Key, lookup: &LookupSettings) -> Option<Risk> {
    let url = lookup.url.to_string();
    let by_id = ["{key}", "{event_id}"].into_iter().find(|name| url.contains(name))?;
    (!url.contains("{operation}")).then(|| Risk {
        code: "lookup-by-id-alone",
        key: at.join("lookup").join("url"),
        text: format!(
            "`{by_id}` is the same for two operations that differ in type, `key.scope`, method or \
             path: what the receiver says of one is taken for the other"
        ),
        hint: "name it by `{operation}`, which the receiver got as `Onceward-Operation`, there too"
            .into(),
    })
}
