//! Advice about times of a route that do not fit each other.

use std::time::Duration;

use super::finding::{ExaminedRoute, Finding};
use crate::config::quantity::short;
use crate::idempotency::IfInFlight;
use crate::store;

/// The shortest lease with room for a second renewal. A lease is renewed at a third of its length,
/// and one renewal may take as long as a store may take to answer: 2 seconds.
const LEASE_ROOM: Duration = Duration::from_secs(6);

pub(super) fn wait_without_limit(examined: &ExaminedRoute<'_>) -> Option<Finding> {
    // If it is known how long the sender waits, `answer-after-patience` says so more exactly.
    if examined.sender.is_some_and(|sender| sender.facts.patience.is_some()) {
        return None;
    }
    let policy = &examined.route.policy;
    match (policy.if_in_flight, policy.answer_within) {
        (IfInFlight::Wait, None) => Some(examined.finding(
            "wait-without-limit",
            "when_in_flight",
            format!(
                "without `answer_within` a copy waits up to {}, and most senders hang up sooner",
                short(policy.durations.attempt_timeout)
            ),
            "`answer_within = \"8s\"`, or what is below the patience of the sender",
        )),
        (IfInFlight::Wait, Some(_)) | (IfInFlight::Refuse, _) => None,
    }
}

pub(super) fn answer_after_attempt(examined: &ExaminedRoute<'_>) -> Option<Finding> {
    let policy = &examined.route.policy;
    let attempt = policy.durations.attempt_timeout;
    // With steps, an event takes several attempts, so that the answer may well come later.
    let is_idle = examined.route.steps.is_none() && policy.answer_within? > attempt;
    is_idle.then(|| {
        examined.finding(
            "answer-after-attempt",
            "answer_within",
            "it changes nothing: every attempt ends before it, at `attempt_timeout`",
            format!(
                "make it shorter than `attempt_timeout`, which is {}, or that one longer",
                short(attempt)
            ),
        )
    })
}

pub(super) fn hold_below_attempt(examined: &ExaminedRoute<'_>) -> Option<Finding> {
    let durations = &examined.route.policy.durations;
    (durations.hold_for < durations.attempt_timeout).then(|| {
        examined.finding(
            "hold-below-attempt",
            "hold_for",
            "an operation is given free while the upstream may still work on it",
            format!(
                "`hold_for = \"30d\"`, or what is above `attempt_timeout`, which is {}",
                short(durations.attempt_timeout)
            ),
        )
    })
}

/// Reports a lease that is too short to be renewed (`lease-without-room`), or longer than an
/// attempt can take (`lease-above-attempt`). At least one lease passes both rules, whatever the
/// timeout is.
pub(super) fn unfit_lease(examined: &ExaminedRoute<'_>) -> Option<Finding> {
    let durations = &examined.route.policy.durations;
    if durations.lease < LEASE_ROOM {
        return Some(examined.finding(
            "lease-without-room",
            "lease",
            "one renewal that takes the store 2s leaves no room for another",
            format!("`lease = \"{}\"`", short(LEASE_ROOM)),
        ));
    }
    let longest = durations.attempt_timeout.max(LEASE_ROOM);
    let outlives_a_crash = match examined.store {
        store::Settings::Redis(_) | store::Settings::Postgres(_) => true,
        // A process that opens its own store knows that no other one holds a lease in it.
        store::Settings::Embedded(_) | store::Settings::Memory => false,
    };
    (outlives_a_crash && durations.lease > longest).then(|| {
        examined.finding(
            "lease-above-attempt",
            "lease",
            "after a crash, copies are told `in flight` for longer than an attempt can take",
            format!("`lease = \"{}\"`", short(longest)),
        )
    })
}
