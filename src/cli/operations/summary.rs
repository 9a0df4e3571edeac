//! What an operator has to know of an operation before they decide about it.

use crate::admin::api::{Answer, Attempt, Operation};
use crate::operation::Key;

/// How much of a key a table shows. `show` shows the whole key.
const KEY_CHARS_MAX: usize = 80;

/// The number of the latest attempt.
pub(super) fn latest_attempt(operation: &Operation) -> Option<u32> {
    operation.attempts.iter().map(|attempt| attempt.number).max()
}

/// The idempotency key, in one line.
pub(super) fn key(operation: &Operation) -> String {
    let key = &operation.key;
    format!("{} ({})", key.parts.join(" "), key.from.as_str())
}

/// A key in a cell of a table.
pub(super) fn short_key(key: &Key) -> String {
    let key = key.parts.join(" ");
    let short: String = key.chars().take(KEY_CHARS_MAX).collect();
    if short == key { key } else { format!("{short}...") }
}

/// The state, with a word more where the route only observed: then no copy was refused or answered
/// because of it.
pub(super) fn state_name(operation: &Operation) -> String {
    let state = &operation.state;
    if operation.observed { format!("{state} (observed)") } else { state.clone() }
}

/// The state and the latest attempt, in one line.
pub(super) fn state(shown: &Operation) -> String {
    let Operation { operation, route, created_at, .. } = shown;
    let state = state_name(shown);
    let attempt = shown.attempts.iter().max_by_key(|attempt| attempt.number);
    let attempt = attempt.map_or_else(String::new, |attempt| {
        let sent = match attempt.sent {
            Some(true) => "sent",
            Some(false) => "nothing sent",
            None => "sent or not is unknown",
        };
        let reason = attempt.reason.as_deref().unwrap_or("no reason known");
        format!("; attempt {}: {sent}, {reason}", attempt.number)
    });
    format!("{operation} on route `{route}`, created {created_at}, is {state}{attempt}")
}

/// What can go wrong if the next copy is a new attempt.
pub(super) fn danger(operation: &Operation) -> String {
    let danger = if operation.state == "succeeded" {
        "the upstream has done it: the next copy does it again"
    } else if operation.attempts.iter().any(may_have_been_done) {
        "the upstream may have done it, or may still be working on it: then the next copy does it \
         again"
    } else {
        "none that is known: nothing was sent, or the upstream has refused it"
    };
    // Before that time the upstream may still be at work, so nobody can find out yet what it has
    // done.
    let lease = operation.lease.as_ref();
    let ends_at = lease.map(|lease| format!("; its attempt ends by {}", lease.ends_at));
    format!("danger: {danger}{}", ends_at.unwrap_or_default())
}

/// Whether the upstream may have done what this attempt asked for. Only an attempt that sent
/// nothing and one that the upstream answered with a failure rule it out.
fn may_have_been_done(attempt: &Attempt) -> bool {
    attempt.sent != Some(false) && attempt.outcome.as_deref() != Some("failed")
}

/// Whether copies get this stored answer once the operation is resolved as succeeded without
/// another answer. An answer that is no success, or whose body was not stored, is of no use to
/// them.
pub(super) fn would_be_replayed(answer: &Answer) -> bool {
    (200..300).contains(&answer.status) && !answer.body_omitted
}
