//! Makes the columns beside the record. They are for indexes and for people who read the table.

use serde_json::json;

use crate::operation::state::Lease;
use crate::operation::{Key, Operation, State, Timestamp};

/// The end of the year 9999. A later time is written as this one, because a `timestamptz` and many
/// clients do not reach as far as a [`Timestamp`].
const LATEST: u64 = 253_402_300_799_999;

/// Returns the key of an operation as JSON.
pub(super) fn key(key: &Key) -> String {
    let parts: Vec<_> = key.parts.iter().map(|part| text(part)).collect();
    json!({ "from": key.from.as_str(), "parts": parts }).to_string()
}

/// Returns the number of the latest attempt.
pub(super) fn attempt(operation: &Operation) -> i32 {
    i32::try_from(operation.attempts.latest_number()).unwrap_or(i32::MAX)
}

/// Returns the holder of the latest attempt.
pub(super) fn holder(operation: &Operation) -> Option<String> {
    match &operation.state {
        State::InFlight(Lease { holder, .. }) => Some(text(holder)),
        State::Uncertain(_) | State::Succeeded(_) | State::Failed(_) | State::Forgotten { .. } => {
            operation.attempts.kept().last().map(|last| text(&last.holder))
        }
    }
}

/// Returns milliseconds since the Unix epoch, as the server's functions take them.
pub(super) fn millis(at: Timestamp) -> i64 {
    i64::try_from(at.0.min(LATEST)).unwrap_or(i64::MAX)
}

/// Returns the time for milliseconds that the server's functions return.
pub(super) fn timestamp(millis: i64) -> Timestamp {
    Timestamp(u64::try_from(millis).unwrap_or(0))
}

/// Returns a text for a column. PostgreSQL's `text` cannot hold a NUL, so the column shows another
/// character in its place. The record keeps the NUL.
pub(super) fn text(text: &str) -> String {
    text.replace('\0', "\u{2400}")
}
