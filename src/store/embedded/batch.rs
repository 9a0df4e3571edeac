//! Changes of the tables that are written together. They are one group of the log.

use std::collections::BTreeSet;

use lsm_tree::Slice;

use super::log::GroupBytes;
use super::stuffing::stuff;
use super::tables::{DueRow, IndexEntries, Table, TimeKey};
use super::unsettled::Unsettled;
use crate::operation::{Operation, OperationId, Timestamp};
use crate::store::codec::{self, Corrupt};

/// Changes that are written together or not at all.
#[derive(Debug, Default)]
pub(super) struct Batch {
    pub(super) group: GroupBytes,
    pub(super) changes: Vec<RowChange>,
    /// The operations that are in flight from now on, and those that are no longer.
    pub(super) claimed: Vec<OperationId>,
    pub(super) ended: Vec<OperationId>,
    /// The ends of records that `due` gets.
    pub(super) due: BTreeSet<TimeKey>,
}

/// A row of a table, as it will be.
#[derive(Debug)]
pub(super) struct RowChange {
    pub(super) table: Table,
    pub(super) key: Slice,
    pub(super) value: NewValue,
}

/// The value of a row, as it will be.
#[derive(Debug)]
pub(super) enum NewValue {
    /// The row is removed.
    None,
    Bytes(Slice),
    /// The row leads to a record in the group.
    Record(NewRecord),
    /// A record is removed. `begin` is the time at which its life began.
    Removed { begin: Timestamp },
}

/// A record in a group.
#[derive(Debug)]
pub(super) struct NewRecord {
    /// The byte of the group at which it begins.
    pub(super) offset: u32,
    pub(super) length: u32,
    /// Whether the store has an earlier version of it.
    pub(super) replaces: bool,
    /// The time at which it ends, if that is known.
    pub(super) due: Option<Timestamp>,
}

impl Batch {
    /// Empties the batch, and keeps its buffers.
    pub(super) fn clear(&mut self) {
        self.group.clear();
        self.changes.clear();
        self.claimed.clear();
        self.ended.clear();
        self.due.clear();
    }

    pub(super) fn insert(&mut self, table: Table, key: &[u8], value: &[u8]) {
        self.group.put(table as u8, key, value);
        self.changes.push(RowChange { table, key: key.into(), value: NewValue::Bytes(value.into()) });
    }

    fn remove(&mut self, table: Table, key: &[u8]) {
        self.group.remove(table as u8, key);
        self.changes.push(RowChange { table, key: key.into(), value: NewValue::None });
    }

    /// Returns the earliest time that the batch adds to `due`.
    pub(super) fn earliest_due(&self) -> Option<Timestamp> {
        self.due.first().map(|row| row.at)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.changes.is_empty() && self.due.is_empty()
    }

    /// Writes a record and its rows in the other tables. `before` are the rows that the record has
    /// on disk.
    pub(super) fn write(
        &mut self,
        id: OperationId,
        before: Option<IndexEntries>,
        operation: Option<&Operation>,
    ) -> Result<(), Corrupt> {
        let table = Table::Records;
        let key = id.as_bytes();
        let after = operation.map(IndexEntries::of);
        let value = if let Some(operation) = operation {
            let record = stuff(codec::encode(operation)?);
            let offset = self.group.put(table as u8, key, &record);
            NewValue::Record(NewRecord {
                offset,
                length: record.len() as u32,
                replaces: before.is_some(),
                due: after.and_then(|entries| entries.due),
            })
        } else {
            self.group.remove(table as u8, key);
            let begin = before.map(|entries| entries.created_at).unwrap_or_default();
            NewValue::Removed { begin }
        };
        self.changes.push(RowChange { table, key: key.as_slice().into(), value });
        self.index(id, before, after);
        Ok(())
    }

    /// Writes the rows of a record in the other tables. `before` are those that it has on disk.
    pub(super) fn index(
        &mut self,
        id: OperationId,
        before: Option<IndexEntries>,
        after: Option<IndexEntries>,
    ) {
        let [unsettled_before, unsettled_after] = [before, after].map(|entries| entries?.unsettled);
        if unsettled_before != unsettled_after {
            match unsettled_before {
                Some(Unsettled::InFlight) => self.ended.push(id),
                Some(Unsettled::Uncertain) => self.set_unsettled(id, None),
                None => {}
            }
            match unsettled_after {
                Some(Unsettled::InFlight) => self.claimed.push(id),
                after @ Some(Unsettled::Uncertain) => self.set_unsettled(id, after),
                None => {}
            }
        }
        let found_by = |entries: IndexEntries| (entries.created_at, entries.key);
        let [found_before, found_after] = [before, after].map(|entries| entries.map(found_by));
        if found_before != found_after {
            if let Some((at, key)) = found_before {
                let row = TimeKey { at, id };
                self.remove(Table::Created, &row.to_bytes());
                self.remove(Table::Keys, &row.keyed(key));
            }
            if let Some((at, key)) = found_after {
                let row = TimeKey { at, id };
                self.insert(Table::Created, &row.to_bytes(), b"");
                self.insert(Table::Keys, &row.keyed(key), b"");
            }
        }
        // An end that moves to later needs no new row. The earlier row leads to the record, and the
        // record has its end.
        let [due_before, due_after] = [before, after].map(|entries| entries?.due);
        if let Some(at) = due_after
            && due_before.is_none_or(|before| before > at)
        {
            self.add_due(TimeKey { at, id });
        }
    }

    /// Writes or removes the row of one operation that says whether the operation is settled.
    pub(super) fn set_unsettled(&mut self, id: OperationId, unsettled: Option<Unsettled>) {
        let key = id.as_bytes();
        match unsettled {
            Some(Unsettled::InFlight) => self.insert(Table::Unsettled, key, b"f"),
            Some(Unsettled::Uncertain) => self.insert(Table::Unsettled, key, b"u"),
            None => self.remove(Table::Unsettled, key),
        }
    }

    /// Removes a row that the claims of a group share.
    pub(super) fn remove_claims(&mut self, number: u64) {
        self.remove(Table::Unsettled, &number.to_be_bytes());
    }

    pub(super) fn add_due(&mut self, due: TimeKey) {
        self.due.insert(due);
    }

    pub(super) fn remove_due(&mut self, row: &DueRow) {
        self.remove(Table::Due, &row.key);
    }
}
