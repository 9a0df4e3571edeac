//! Makes the command for a swap, and reads the reply. `swap.lua` describes both.

use redis::Value;

use super::command::{Command, SWAP};
use super::keys::{Index, Keys, Shard, member, score_of};
use super::reply::{bytes, number, parts, text, unexpected_shape};
use crate::operation::{Operation, State, Timestamp};
use crate::store::Error;
use crate::store::list::KeyDigest;
use crate::store::shared::{
    Conditions, Expected, Found, Purpose, Revision, StoredRecord, Swap, Write,
};

/// The marker of the epoch: a claim is granted only if this key holds this word.
pub(super) struct EpochGuard {
    pub(super) key: String,
    pub(super) word: String,
}

/// Makes the command for a swap. If `replicas_confirm`, it writes a change that is there already
/// again, so that replicas can confirm it.
pub(super) fn swap_command(
    keys: &Keys,
    swap: &Swap<'_>,
    guard: Option<EpochGuard>,
    replicas_confirm: bool,
) -> Command {
    let record = keys.record(swap.id);
    let waits = if swap.waits { "w" } else { "" };
    let Some(conditions) = swap.write.conditions() else {
        // A read names only one key, so that it works while a slot moves. A command on several keys
        // is refused then.
        return Command::script(&SWAP, &[record]).arg(waits);
    };
    let change = IndexChange::of(swap);
    let index = |index| keys.index(Shard::of(swap.id), index);
    let mut names = vec![record, index(change.leaves), index(change.enters)];
    if change.is_listed_anew {
        names.extend([index(Index::Created), index(Index::Keys)]);
    }
    let (guard_key, guard_word) = guard.map(|EpochGuard { key, word }| (key, word)).unzip();
    names.extend(guard_key);
    let (expected, lapsed) = match swap.expected {
        Expected::NoRecord => (String::new(), false),
        Expected::Revision { revision, lapsed, .. } => (revision.0.to_string(), lapsed),
    };
    let letters = [
        if matches!(swap.write, Write::Removal(_)) { "r" } else { "p" },
        if lapsed { "l" } else { "" },
        waits,
        if replicas_confirm { "a" } else { "" },
        if guard_word.is_some() { "e" } else { "" },
    ];
    let Conditions { not_before, not_after, ends, .. } = conditions;
    let command = Command::script(&SWAP, &names)
        .arg(letters.concat())
        .arg(member(swap.id))
        .arg(expected)
        .arg(not_before.0)
        .arg(not_after.0)
        .arg(if ends { keys.endings() } else { String::new() });
    // An empty slice adds no argument.
    let command = with_record(command, &swap.write, change.is_listed_anew);
    let is_urgent = swap.purpose == Purpose::Renewal;
    Command { is_urgent, ..command.arg(guard_word.as_slice()) }
}

/// Adds the record that a swap writes, if it writes one.
fn with_record(command: Command, write: &Write<'_>, is_listed_anew: bool) -> Command {
    let Write::Record { revision, bytes, operation, .. } = write else { return command };
    let command = command
        .arg(revision.0.to_string())
        .arg(*bytes)
        .arg(operation.state.as_str())
        .arg(operation.state.changes_at().0);
    if !is_listed_anew {
        return command;
    }
    command
        .arg(operation.created_at.0)
        .arg(&*operation.asked.route)
        .arg(score_of(KeyDigest::of(&operation.asked.key)))
}

/// The places of an operation in the indexes, before and after a write.
struct IndexChange {
    leaves: Index,
    enters: Index,
    /// Whether the operation enters or leaves the indexes of all operations.
    is_listed_anew: bool,
}

impl IndexChange {
    fn of(swap: &Swap<'_>) -> Self {
        let before = match swap.expected {
            Expected::NoRecord => None,
            Expected::Revision { operation, .. } => Some(operation),
        };
        let after = match swap.write {
            Write::Record { operation, .. } => Some(operation),
            Write::Nothing | Write::Removal(_) => None,
        };
        let created_at = |found: &Operation| found.created_at;
        let index = |found: &Operation| index_of(&found.state);
        let leaves = before.or(after).map_or(Index::Settled, index);
        Self {
            leaves,
            enters: after.map_or(leaves, index),
            is_listed_anew: after
                .is_none_or(|after| before.map(created_at) != Some(after.created_at)),
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
    Done(Timestamp),
    Found(Found),
    Unreadable,
    Emptied,
    /// The server turned a read or the first write away, with this error.
    Denied(String),
}

impl SwapReply {
    pub(super) fn parse(value: Value) -> Result<Self, Error> {
        if let Value::Int(_) = value {
            return Ok(Self::Done(Timestamp(number(&value)?)));
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
            "emptied" => Ok(Self::Emptied),
            "seen" => {
                let stored = match parts.next() {
                    None => None,
                    Some(revision) => Some(StoredRecord {
                        revision: Revision(number(&revision)?),
                        bytes: bytes(parts.next().ok_or_else(unexpected_shape)?)?,
                    }),
                };
                Ok(Self::Found(Found { at, stored }))
            }
            _ => Err(unexpected_shape()),
        }
    }
}
