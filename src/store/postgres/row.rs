//! Makes the columns beside the record. They are for indexes and for people who read the table.

use serde_json::json;

use crate::operation::state::Lease;
use crate::operation::{Operation, State, Timestamp};

/// The end of the year 9999. A later time is written as this one, because a `timestamptz` and many
/// clients do not reach as far as a [`Timestamp`].
const LATEST: u64 = 253_402_300_799_999;

/// The values of the columns. All are none if there is no record.
#[derive(Debug, Default)]
pub(super) struct Columns {
    pub(super) route: Option<String>,
    pub(super) method: Option<String>,
    pub(super) path: Option<String>,
    pub(super) key: Option<String>,
    pub(super) state: Option<&'static str>,
    pub(super) attempt: Option<i32>,
    pub(super) holder: Option<String>,
    pub(super) created_at: Option<i64>,
    pub(super) changes_at: Option<i64>,
}

impl Columns {
    pub(super) fn of(operation: &Operation) -> Self {
        let asked = &operation.asked;
        let key = &operation.asked.key;
        let parts: Vec<_> = key.parts.iter().map(|part| text(part)).collect();
        let holder = match &operation.state {
            State::InFlight(Lease { holder, .. }) => Some(text(holder)),
            State::Uncertain(_)
            | State::Succeeded(_)
            | State::Failed(_)
            | State::Forgotten { .. } => {
                operation.attempts.kept().last().map(|last| text(&last.holder))
            }
        };
        Self {
            route: Some(text(&asked.route)),
            method: Some(text(&asked.method)),
            path: Some(text(&asked.path)),
            key: Some(json!({ "from": key.from.as_str(), "parts": parts }).to_string()),
            state: Some(operation.state.as_str()),
            attempt: Some(i32::try_from(operation.attempts.latest_number()).unwrap_or(i32::MAX)),
            holder,
            created_at: Some(millis(operation.created_at)),
            changes_at: Some(millis(operation.state.changes_at())),
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
