//! The markers that show whether the servers still have their records, as words on the servers.

use super::keys::Shard;
use crate::store::shared::{EpochMarker, EpochStatus};

/// The character between the status of a marker and its value. With the status `begun`, a marker is
/// only its value.
const SEPARATOR: char = ':';

/// Reads a marker as it is kept on the server.
pub(super) fn from_word(shard: Shard, word: &str) -> EpochMarker {
    let parts = word.split_once(SEPARATOR);
    let parts = parts.and_then(|(status, value)| Some((EpochStatus::of(status)?, value)));
    let (status, value) = parts.unwrap_or((EpochStatus::Begun, word));
    EpochMarker { part: shard.number(), value: value.to_owned(), status }
}

/// Writes a marker as it is kept on the server.
pub(super) fn to_word(EpochMarker { value, status, .. }: &EpochMarker) -> String {
    match status {
        EpochStatus::Begun => value.clone(),
        EpochStatus::Emptied | EpochStatus::Acknowledged => {
            format!("{}{SEPARATOR}{value}", status.as_str())
        }
    }
}
