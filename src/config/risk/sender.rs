//! Advice about settings that do not fit the habits of the sender, as far as its facts tell them.

use http::StatusCode;

use super::finding::{ExaminedRoute, Finding};
use super::proposal;
use crate::config::quantity::short;
use crate::idempotency::IfInFlight;
use crate::proxy::Mode;

/// Once an operation is forgotten, a retry of the sender is executed as a new one.
pub(super) fn retention_below_retries(examined: &ExaminedRoute<'_>) -> Option<Finding> {
    let sender = examined.sender?;
    // Where nothing is remembered, no retention helps.
    let window = sender.facts.retry_window.filter(|_| examined.is_remembered())?;
    (examined.route.policy.durations.retention <= window).then(|| {
        examined.finding(
            "retention-below-retries",
            "retention",
            format!("{} tries again for {}: a later copy runs again", sender.title, short(window)),
            proposal::set(sender, "retention", &proposal::longer_than(window)),
        )
    })
}

/// A person can have the sender send an event again for longer than it is remembered.
pub(super) fn retention_below_resends(examined: &ExaminedRoute<'_>) -> Option<Finding> {
    let sender = examined.sender?;
    let window = sender.facts.resend_window.filter(|_| examined.is_remembered())?;
    (examined.route.policy.durations.retention <= window).then(|| {
        examined.finding(
            "retention-below-resends",
            "retention",
            format!(
                "a person can have {} send an event again for {}: it then runs again",
                sender.title,
                short(window)
            ),
            "make it longer if that is not meant",
        )
    })
}

/// A sender that has hung up counts the delivery as failed, whatever the answer is.
pub(super) fn answer_after_patience(examined: &ExaminedRoute<'_>) -> Option<Finding> {
    let sender = examined.sender?;
    let patience = sender.facts.patience?;
    let policy = &examined.route.policy;
    // Without `answer_within`, a sender waits until the attempt ends.
    let longest = policy.answer_within.unwrap_or(policy.durations.attempt_timeout);
    (longest >= patience).then(|| {
        examined.finding(
            "answer-after-patience",
            "answer_within",
            format!("{} hangs up after {}", sender.title, short(patience)),
            proposal::set(sender, "answer_within", &proposal::shorter_than(patience)),
        )
    })
}

pub(super) fn in_flight_status_not_retried(examined: &ExaminedRoute<'_>) -> Option<Finding> {
    status_not_retried(examined, "in_flight_status", examined.route.in_flight_status)
}

pub(super) fn uncertain_status_not_retried(examined: &ExaminedRoute<'_>) -> Option<Finding> {
    status_not_retried(examined, "uncertain_status", examined.route.uncertain_status)
}

fn status_not_retried(
    examined: &ExaminedRoute<'_>,
    setting: &str,
    status: StatusCode,
) -> Option<Finding> {
    let sender = examined.sender?;
    let facts = &sender.facts;
    // If the sender never sends again, no other status would help.
    let ends = facts.retries_after(status.as_u16()) == Some(false) && !facts.never_retries();
    ends.then(|| {
        examined.finding(
            "status-not-retried",
            setting,
            format!(
                "the sender does not try again after a {}: if the attempt fails, the event is lost",
                status.as_u16()
            ),
            // 503 comes first, since most senders retry after it.
            proposal::set(sender, setting, &proposal::retried(facts, &[503, 429, 409, 425])),
        )
    })
}

/// Onceward itself answers 502, 503 and 504 when the event is not done, so that the sender has to
/// take each of them as "send it again".
pub(super) fn final_statuses(examined: &ExaminedRoute<'_>) -> Option<Finding> {
    let sender = examined.sender?;
    let facts = &sender.facts;
    let own =
        [StatusCode::BAD_GATEWAY, StatusCode::SERVICE_UNAVAILABLE, StatusCode::GATEWAY_TIMEOUT];
    let is_final = |status: &&StatusCode| facts.is_final(**status) == Some(true);
    let finals: Vec<&str> = own.iter().filter(is_final).map(StatusCode::as_str).collect();
    let is_lost = !finals.is_empty() && !facts.never_retries();
    (is_lost && examined.route.retry_status.is_none()).then(|| {
        examined.finding(
            "final-statuses",
            "retry_status",
            format!(
                "{} does not try again after a {}: while the upstream or the store is away, its events are lost",
                sender.title,
                finals.join(" or ")
            ),
            proposal::set(
                sender,
                "retry_status",
                &proposal::retried(facts, &[503, 429, 500, 409, 425]),
            ),
        )
    })
}

/// Some senders disable a webhook after so many failed deliveries, and a refused copy is one.
pub(super) fn refusals_count_as_failures(examined: &ExaminedRoute<'_>) -> Option<Finding> {
    let facts = &examined.sender?.facts;
    let limit = facts.disabled_after.as_deref().filter(|_| !facts.never_retries())?;
    let refuses = examined.route.policy.if_in_flight == IfInFlight::Refuse;
    (refuses && examined.is_remembered()).then(|| {
        examined.finding(
            "refusals-count-as-failures",
            "when_in_flight",
            format!("a refused copy is a failure to the sender, which stops after: {limit}"),
            "`when_in_flight = \"wait\"` answers it with the outcome",
        )
    })
}

pub(super) fn event_too_large(examined: &ExaminedRoute<'_>) -> Option<Finding> {
    let sender = examined.sender?;
    let largest = sender.facts.largest_event_bytes?;
    (examined.route.request_bytes_max < largest).then(|| {
        examined.finding(
            "event-too-large",
            "request_bytes_max",
            format!("an event of {} may have {largest} bytes", sender.title),
            proposal::set(sender, "request_bytes_max", &proposal::size_for(largest)),
        )
    })
}

/// Unless the sender is known to sign each retry anew, a retry may carry the time of the first
/// delivery, and is refused as stale once the tolerance has passed.
pub(super) fn tolerance_below_retries(examined: &ExaminedRoute<'_>) -> Option<Finding> {
    let sender = examined.sender.filter(|_| examined.verifies())?;
    let settings = sender.signature.as_ref().filter(|settings| settings.has_timestamp())?;
    let tolerance = examined.route.tolerance.or(settings.tolerance())?;
    let window = sender.facts.retry_window.filter(|window| *window > tolerance)?;
    (!sender.facts.signed_anew).then(|| {
        examined.finding(
            "tolerance-below-retries",
            "tolerance",
            format!(
                "{} tries again for {}, and a retry that keeps the first timestamp is refused after {}",
                sender.title,
                short(window),
                short(tolerance)
            ),
            format!(
                "`tolerance = {}`, with a `retention` above it",
                proposal::longer_than(window)
            ),
        )
    })
}

pub(super) fn sender_never_retries(examined: &ExaminedRoute<'_>) -> Option<Finding> {
    let sender = examined.sender.filter(|sender| sender.facts.never_retries())?;
    Some(examined.finding(
        "sender-never-retries",
        "provider",
        format!(
            "{} does not try again: what fails is lost unless a person sends it again",
            sender.title
        ),
        "watch for failed attempts",
    ))
}

pub(super) fn facts_unconfirmed(examined: &ExaminedRoute<'_>) -> Option<Finding> {
    let sender = examined.sender.filter(|sender| !sender.facts.unconfirmed.is_empty())?;
    let hint = if examined.route.mode == Mode::Observe {
        "before it enforces, see in the log what it would have done with each event"
    } else {
        "try it with `mode = \"observe\"` first"
    };
    Some(examined.finding(
        "facts-unconfirmed",
        "provider",
        format!("of {} it is not confirmed: {}", sender.title, sender.facts.unconfirmed.join("; ")),
        hint,
    ))
}
