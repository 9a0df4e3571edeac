//! The columns beside the record: what people and indexes see of an operation.

use serde_json::json;

use crate::operation::state::Lease;
use crate::operation::{Operation, State, Timestamp};

/// The last moment that is written as it is: the end of the year 9999. Later ones are written as this one.
const LATEST: u64 = 253_402_300_799_999;

/// What the columns say.
#[derive(Debug, Default)]
pub(super) struct Columns<'a> {
    pub(super) route: Option<String>,
    pub(super) method: Option<String>,
    pub(super) path: Option<String>,
    pub(super) key: Option<String>,
    pub(super) state: Option<&'a str>,
    pub(super) attempt: Option<i32>,
    pub(super) holder: Option<String>,
    pub(super) created_at: Option<i64>,
    pub(super) changes_at: Option<i64>,
}

impl<'a> Columns<'a> {
    pub(super) fn of(operation: &'a Operation) -> Self {
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

/// As the server counts it.
pub(super) fn millis(at: Timestamp) -> i64 {
    i64::try_from(at.0.min(LATEST)).unwrap_or(i64::MAX)
}

/// As the server counted it.
pub(super) fn timestamp(millis: i64) -> Timestamp {
    Timestamp(u64::try_from(millis).unwrap_or(0))
}

/// The server has no text with a NUL in it; the record keeps it.
pub(super) fn text(text: &str) -> String {
    text.replace('\0', "\u{2400}")
}
