//! The rows of `unsettled`, which show a start what is not settled.
//!
//! ```text
//! operation id                       -> `f` in flight, `u` uncertain
//! number of a group, big-endian      -> the ids of the operations whose claims came with the group
//! ```
//!
//! An uncertain operation has a row of its own. The operations that are claimed with one group
//! share a row, which is removed with the end of the last of them. So a group of many claims costs
//! two rows, and not two for each claim. A row may name operations that have ended meanwhile, so
//! their records decide. Older versions wrote a row for each operation in flight; this one does so
//! for records that it cannot read.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use super::ids;
use crate::operation::{Operation, OperationId, State};

/// The state of an operation that is not settled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unsettled {
    InFlight,
    Uncertain,
}

impl Unsettled {
    /// The state of this operation, if it is not settled.
    pub(super) fn of(operation: &Operation) -> Option<Self> {
        match operation.state {
            State::InFlight(_) => Some(Self::InFlight),
            State::Uncertain(_) => Some(Self::Uncertain),
            State::Succeeded(_) | State::Failed(_) | State::Forgotten { .. } => None,
        }
    }
}

/// A row of `unsettled`.
pub(super) enum UnsettledRow {
    /// The row of one operation.
    One(OperationId, Unsettled),
    /// The row of a group of claims.
    Claims { number: u64, ids: Vec<OperationId> },
}

impl UnsettledRow {
    /// Parses a row. Returns none if no version can have written it.
    pub(super) fn from_bytes(key: &[u8], value: &[u8]) -> Option<Self> {
        if let Ok(number) = key.try_into() {
            let ids = ids::from_bytes(value)?;
            return Some(Self::Claims { number: u64::from_be_bytes(number), ids });
        }
        let id = OperationId::from_bytes(key.try_into().ok()?);
        let state = if value == b"f" { Unsettled::InFlight } else { Unsettled::Uncertain };
        Some(Self::One(id, state))
    }
}

/// The rows that the operations in flight share.
#[derive(Debug, Default)]
pub(super) struct ClaimRows {
    /// The number of the row that names an operation in flight.
    rows: HashMap<OperationId, u64>,
    /// How many operations of each row are in flight.
    in_flight: HashMap<u64, usize>,
}

impl ClaimRows {
    /// Notes that a row names these operations.
    pub(super) fn add(&mut self, number: u64, ids: &[OperationId]) {
        if !ids.is_empty() {
            self.rows.extend(ids.iter().map(|id| (*id, number)));
            self.in_flight.insert(number, ids.len());
        }
    }

    /// Returns the numbers of the rows that are needed no more once these operations have ended.
    pub(super) fn emptied_by(&self, ids: &[OperationId]) -> Vec<u64> {
        let mut numbers: Vec<_> = ids.iter().filter_map(|id| self.rows.get(id).copied()).collect();
        numbers.sort_unstable();
        let of_one = numbers.chunk_by(|one, next| one == next);
        let emptied = of_one.filter(|ended| {
            ended.first().and_then(|number| self.in_flight.get(number)) == Some(&ended.len())
        });
        emptied.flat_map(|ended| ended.first().copied()).collect()
    }

    /// Notes that an operation is no longer in flight.
    pub(super) fn end(&mut self, id: OperationId) {
        let Some(number) = self.rows.remove(&id) else { return };
        let Entry::Occupied(mut in_flight) = self.in_flight.entry(number) else { return };
        *in_flight.get_mut() -= 1;
        if *in_flight.get() == 0 {
            in_flight.remove();
        }
    }
}
