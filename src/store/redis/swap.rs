//! Makes the command for a swap, and reads the reply. `swap.lua` describes both.

use redis::Value;

use super::command::{Command, SWAP};
use super::keys::{Index, Keys, Shard, member, score_of};
use super::marker::to_word;
use super::reply::{bytes, number, parts, text, unexpected_shape};
use crate::operation::{Operation, State, Timestamp};
use crate::store::Error;
use crate::store::list::KeyDigest;
use crate::store::shared::{
    EncodedRecord, Found, RecordChange, Revision, StoredRecord, Swap, SwapResult,
};

/// Makes the command for a swap. If `replicas_confirm`, it writes a change that is there already
/// again, so that replicas can confirm it.
pub(super) fn swap_command(keys: &Keys, swap: &Swap<'_>, replicas_confirm: bool) -> Command {
    let record = keys.record(swap.id);
    let waits = if swap.waits { "w" } else { "" };
    let Some(change) = &swap.change else {
        // A read names only one key, so that it works while a slot moves. A command on several keys
        // is refused then.
        return Command::script(&SWAP, &[record]).arg(waits);
    };
    let RecordChange { expected, guard, .. } = change;
    let places = IndexChange::of(change);
    let index = |index| keys.index(Shard::of(swap.id), index);
    let mut names = vec![record, index(places.leaves), index(places.enters)];
    if places.is_listed_anew {
        names.extend([index(Index::Created), index(Index::Keys)]);
    }
    names.extend(guard.as_ref().map(|marker| keys.epoch(Shard::numbered(marker.part))));
    let letters = [
        if change.record.is_some() { "p" } else { "r" },
        if expected.as_ref().is_some_and(|expected| expected.lapsed) { "l" } else { "" },
        waits,
        if replicas_confirm { "a" } else { "" },
        if guard.is_some() { "e" } else { "" },
    ];
    let revision = expected.as_ref().map(|expected| expected.revision.0.to_string());
    let mut command = Command::script(&SWAP, &names)
        .arg(letters.concat())
        .arg(member(swap.id))
        .arg(revision.unwrap_or_default())
        .arg(change.not_before.0)
        .arg(change.not_after.0)
        .arg(if change.ends { keys.endings() } else { String::new() });
    if let Some(EncodedRecord { revision, bytes, operation }) = &change.record {
        command = command
            .arg(revision.0.to_string())
            .arg(bytes.as_slice())
            .arg(operation.state.as_str())
            .arg(operation.state.changes_at().0);
        if places.is_listed_anew {
            command = command
                .arg(operation.created_at.0)
                .arg(&*operation.subject.route)
                .arg(score_of(KeyDigest::of(&operation.subject.key)));
        }
    }
    if let Some(marker) = guard {
        command = command.arg(to_word(marker));
    }
    Command { is_urgent: swap.is_urgent, ..command }
}

/// The places of an operation in the indexes, before and after a change.
struct IndexChange {
    leaves: Index,
    enters: Index,
    /// Whether the operation enters or leaves the indexes of all operations.
    is_listed_anew: bool,
}

impl IndexChange {
    fn of(change: &RecordChange<'_>) -> Self {
        let before = change.expected.as_ref().map(|expected| expected.operation);
        let after = change.record.as_ref().map(|record| record.operation);
        let created_at = |found: Option<&Operation>| found.map(|found| found.created_at);
        let index = |found: &Operation| index_of(&found.state);
        let leaves = before.or(after).map_or(Index::Settled, index);
        Self {
            leaves,
            enters: after.map_or(leaves, index),
            is_listed_anew: after.is_none() || created_at(before) != created_at(after),
        }
    }
}

/// Returns the index that holds the operations in this state.
const fn index_of(state: &State) -> Index {
    match state {
        State::InFlight(_) => Index::InFlight,
        State::Uncertain(_) => Index::Uncertain,
        State::Succeeded(_) | State::Failed(_) | State::Forgotten { .. } => Index::Settled,
    }
}

/// The reply of the script.
pub(super) enum SwapReply {
    Swapped(SwapResult),
    Unreadable,
    /// The server turned a read or the first write away, with this error.
    Denied(String),
}

impl SwapReply {
    pub(super) fn parse(value: Value) -> Result<Self, Error> {
        if let Value::Int(_) = value {
            return Ok(Self::Swapped(SwapResult::Done(Timestamp(number(&value)?))));
        }
        let mut parts = parts(value)?.into_iter();
        let (name, detail) = parts.next().zip(parts.next()).ok_or_else(unexpected_shape)?;
        let name = text(&name)?;
        // This reply has the server's error in the place of the time.
        if name == "denied" {
            return Ok(Self::Denied(text(&detail)?));
        }
        let at = Timestamp(number(&detail)?);
        match name.as_str() {
            "unreadable" => Ok(Self::Unreadable),
            "emptied" => Ok(Self::Swapped(SwapResult::Emptied)),
            "seen" => {
                let stored = match parts.next() {
                    None => None,
                    Some(revision) => Some(StoredRecord {
                        revision: Revision(number(&revision)?),
                        bytes: bytes(parts.next().ok_or_else(unexpected_shape)?)?,
                    }),
                };
                Ok(Self::Swapped(SwapResult::Conflict(Found { at, stored })))
            }
            _ => Err(unexpected_shape()),
        }
    }
}
