//! The receivers of a route that has several: raw -> `StepsPolicy`.
//!
//! A step takes what it does not say itself from its route, which has it from `[defaults]`.

use std::sync::Arc;
use std::time::Duration;

use figment::value::{Dict, Value};
use serde::Deserialize;

use super::check::{Check, text};
use super::leaf::{Count, Text};
use super::lookup::{RawLookup, lookup};
use super::problem::{Key, quoted};
use super::raw::{RawOutcome, RawRoute};
use super::routes::{if_uncertain, needed, outcome_rule};
use super::value::AddedHeader;
use super::word::UncertainWord;
use crate::idempotency::{Remember, StepPolicy, StepsPolicy, WhenStoreFails};
use crate::proxy::{Mode, WhenKeyMissing};
use crate::upstream::{self, Target};

/// More receivers than this are not one event's.
const STEPS_MAX: usize = 32;

/// What a step takes from its route.
const OF_THE_ROUTE: [&str; 10] = [
    "attempt_timeout",
    "connect_timeout",
    "keepalive",
    "keepalive_max",
    "preserve_host",
    "forward_key",
    "when_uncertain",
    "attempts_max",
    "outcome",
    "lookup",
];

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub(super) struct RawStep {
    name: Option<Text<String>>,
    upstream: Option<Text<Target>>,
    attempt_timeout: Option<Text<Duration>>,
    connect_timeout: Option<Text<Duration>>,
    keepalive: Option<Text<Duration>>,
    keepalive_max: Option<Text<Duration>>,
    preserve_host: Option<bool>,
    forward_key: Option<Text<Option<AddedHeader>>>,
    when_uncertain: Option<Text<UncertainWord>>,
    attempts_max: Option<Count>,
    outcome: Option<RawOutcome>,
    lookup: Option<RawLookup>,
}

/// A list of steps. One that was reported as a problem is none.
pub(super) type RawSteps = Vec<Option<RawStep>>;

/// Gives each step of a route what it does not say itself.
pub(super) fn inherit(route: &mut Dict) {
    let shared: Dict = OF_THE_ROUTE
        .iter()
        .filter_map(|name| Some(((*name).to_owned(), route.get(*name)?.clone())))
        .collect();
    if let Some(Value::Array(_, steps)) = route.get_mut("steps") {
        for step in steps {
            if let Value::Dict(_, step) = step {
                super::inherit::fill(step, &shared);
            }
        }
    }
}

/// One upstream, or several steps: then what is not deduplicated goes where the answers come from.
pub(super) fn receivers(
    check: &mut Check<'_>,
    at: &Key,
    raw: &mut RawRoute,
) -> (Option<Target>, Option<StepsPolicy>) {
    let key = at.join("steps");
    let meant = check.sources.value(&key).is_some();
    let (upstream, answer_from) = (text(raw.upstream.take()), text(raw.answer_from.take()));
    let Some(steps) = raw.steps.take() else {
        if meant {
            return (None, None);
        }
        if answer_from.is_some() {
            let hint = "add `[[routes.NAME.steps]]`, or take it out: one `upstream` answers itself";
            let expected = "`steps` beside it";
            check.report(&at.join("answer_from"), expected, "none".to_owned(), Some(hint));
        }
        return (needed(check, at, "upstream", upstream), None);
    };
    if upstream.is_some() {
        let hint = "take it out: each of the `steps` has its own";
        let found = "one beside `steps`".to_owned();
        check.report(&at.join("upstream"), "it in each step", found, Some(hint));
    }
    let store_fails = raw.when_store_fails.as_ref().map(|Text(when)| *when);
    if store_fails == Some(WhenStoreFails::Forward) {
        let expected = "`refuse`, where an event has several receivers";
        check.wrong(&at.join("when_store_fails"), expected, "`forward`".to_owned());
    }
    if raw.when_key_missing.as_ref().map(|Text(when)| *when) == Some(WhenKeyMissing::Forward) {
        let expected = "`refuse` or `hash-body`, where an event has several receivers";
        check.wrong(&at.join("when_key_missing"), expected, "`forward`".to_owned());
    }
    if raw.mode.as_ref().is_some_and(|Text(mode)| *mode != Mode::Enforce) {
        let expected = "`enforce`, where an event has several receivers";
        check.wrong(&at.join("mode"), expected, "another".to_owned());
    }
    let steps = policy(check, at, steps, (raw.steps_at_once, answer_from));
    let remember = raw.replay.as_ref().and_then(|replay| replay.remember.as_ref());
    let steps = match remember {
        // nobody could say later which event was meant
        Some(Text(Remember::InFlight)) => steps.map(StepsPolicy::retried),
        Some(Text(Remember::Retention)) | None => steps,
    };
    let from = steps.as_ref().and_then(|steps| {
        let from = steps.steps.iter().find(|step| step.name == steps.answer_from);
        Some(from?.upstream.target.clone())
    });
    (from, steps)
}

/// The receivers, and the one that is answered from.
fn policy(
    check: &mut Check<'_>,
    at: &Key,
    raw: RawSteps,
    (at_once, answer_from): (Option<bool>, Option<String>),
) -> Option<StepsPolicy> {
    let key = at.join("steps");
    if raw.is_empty() || raw.len() > STEPS_MAX {
        check.wrong(&key, "1 to 32 steps", format!("{}", raw.len()));
        return None;
    }
    let read: Vec<_> = raw
        .into_iter()
        .enumerate()
        .map(|(index, raw)| step(check, &key.join(index.to_string()), raw?))
        .collect();
    let steps = read.into_iter().collect::<Option<Vec<StepPolicy>>>()?;
    for (index, step) in steps.iter().enumerate() {
        if steps.iter().take(index).any(|other| other.name == step.name) {
            let name = key.join(index.to_string()).join("name");
            let expected = "a name that no other step of this route has";
            let hint = "the name is part of the id that the receiver gets: give each its own";
            check.report(&name, expected, quoted(&step.name), Some(hint));
            return None;
        }
    }
    let answer_from = match answer_from {
        None => Arc::clone(&steps.last()?.name),
        Some(name) => {
            let from = steps.iter().find(|step| *step.name == *name);
            if from.is_none() {
                check.wrong(&at.join("answer_from"), "the name of one of the steps", quoted(&name));
            }
            Arc::clone(&from?.name)
        }
    };
    Some(StepsPolicy { steps, at_once: at_once?, answer_from })
}

fn step(check: &mut Check<'_>, at: &Key, mut raw: RawStep) -> Option<StepPolicy> {
    let name = needed(check, at, "name", text(raw.name));
    let name = name.filter(|name| check.named(&at.join("name"), name));
    let target = needed(check, at, "upstream", text(raw.upstream));
    let attempt_timeout = check.above_zero(&at.join("attempt_timeout"), text(raw.attempt_timeout));
    let connect_timeout = check.above_zero(&at.join("connect_timeout"), text(raw.connect_timeout));
    let when_uncertain = text(raw.when_uncertain);
    let wanted = matches!(when_uncertain, Some(UncertainWord::LookUp));
    let lookup = lookup(check, at, raw.lookup, wanted).ok();
    let asked_for = lookup.as_ref().and_then(|lookup| Some(lookup.as_ref()?.timeout));
    let if_uncertain = if_uncertain(when_uncertain, raw.attempts_max, asked_for);
    let reference = raw.outcome.as_mut().and_then(|raw| text(raw.reference.take()));
    let outcome = raw.outcome.and_then(|raw| outcome_rule(check, at, raw));
    Some(StepPolicy {
        name: name?.into(),
        upstream: upstream::Settings {
            target: target?,
            connect_timeout: connect_timeout?,
            keepalive: text(raw.keepalive)?,
            keepalive_max: text(raw.keepalive_max)?,
            preserve_host: raw.preserve_host?,
        },
        attempt_timeout: attempt_timeout?,
        if_uncertain: if_uncertain?,
        lookup: lookup?,
        outcome: outcome?,
        reference,
        forward_key: text(raw.forward_key)?.map(|AddedHeader(name)| name),
    })
}
