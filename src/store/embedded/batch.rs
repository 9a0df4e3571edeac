//! Changes of the tables that are written together. They are one group of the journal.

use std::collections::BTreeSet;
use std::mem;

use fjall::{Keyspace, PersistMode, Slice};

use super::ids;
use super::journal::group::{LABEL_KEY, Label};
use super::settings::Durability;
use super::stuffing::stuff;
use super::tables::{DueRow, IndexEntries, Tables, TimeKey};
use super::unsettled::Unsettled;
use crate::operation::{Operation, OperationId, Timestamp};
use crate::store::codec::{self, Corrupt};

/// Changes that are written together or not at all.
pub(super) struct Batch<'a> {
    tables: &'a Tables,
    rows: Vec<Row<'a>>,
    /// The number of records that the batch changes.
    changes: u32,
    /// The operations that are in flight from now on, and those that are no longer.
    claimed: Vec<OperationId>,
    ended: Vec<OperationId>,
    /// The ends of records that `due` gets.
    added: BTreeSet<TimeKey>,
    /// The keys of the rows of `due` that are removed.
    removed: Vec<Slice>,
}

/// A row of a table, as it will be. A row without a value is removed.
struct Row<'a> {
    table: &'a Keyspace,
    key: Slice,
    value: Option<Slice>,
}

impl<'a> Batch<'a> {
    pub(super) fn new(tables: &'a Tables) -> Self {
        Self {
            tables,
            rows: Vec::new(),
            changes: 0,
            claimed: Vec::new(),
            ended: Vec::new(),
            added: BTreeSet::new(),
            removed: Vec::new(),
        }
    }

    fn insert(&mut self, table: &'a Keyspace, key: &[u8], value: impl Into<Slice>) {
        self.rows.push(Row { table, key: key.into(), value: Some(value.into()) });
    }

    fn remove(&mut self, table: &'a Keyspace, key: &[u8]) {
        self.rows.push(Row { table, key: key.into(), value: None });
    }

    /// Returns the earliest time that the batch adds to `due`.
    pub(super) fn earliest_due(&self) -> Option<Timestamp> {
        self.added.first().map(|row| row.at)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.rows.is_empty() && self.added.is_empty() && self.removed.is_empty()
    }

    /// Writes a record and its rows in the other tables. `before` are the rows that the record has
    /// on disk.
    pub(super) fn write(
        &mut self,
        id: OperationId,
        before: Option<IndexEntries>,
        operation: Option<&Operation>,
    ) -> Result<(), Corrupt> {
        let table = &self.tables.operations;
        let key = id.as_bytes();
        match operation {
            Some(operation) => self.insert(table, key, stuff(codec::encode(operation)?)),
            None => self.remove(table, key),
        }
        self.changes = self.changes.saturating_add(1);
        self.index(id, before, operation.map(IndexEntries::of));
        Ok(())
    }

    /// Writes the rows of a record in the other tables. `before` are those that it has on disk.
    pub(super) fn index(
        &mut self,
        id: OperationId,
        before: Option<IndexEntries>,
        after: Option<IndexEntries>,
    ) {
        let tables = self.tables;
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
                self.remove(&tables.created, &row.to_bytes());
                self.remove(&tables.keys, &row.keyed(key));
            }
            if let Some((at, key)) = found_after {
                let row = TimeKey { at, id };
                self.insert(&tables.created, &row.to_bytes(), "");
                self.insert(&tables.keys, &row.keyed(key), "");
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
        let table = &self.tables.unsettled;
        match unsettled {
            Some(Unsettled::InFlight) => self.insert(table, key, "f"),
            Some(Unsettled::Uncertain) => self.insert(table, key, "u"),
            None => self.remove(table, key),
        }
    }

    /// Removes a row that the claims of a group share.
    pub(super) fn remove_claims(&mut self, number: u64) {
        self.remove(&self.tables.unsettled, &number.to_be_bytes());
    }

    pub(super) fn add_due(&mut self, due: TimeKey) {
        self.added.insert(due);
    }

    pub(super) fn remove_due(&mut self, row: &DueRow) {
        self.removed.push(row.key.clone());
    }

    /// Writes all changes, with the current time. Returns once they are as durable as the settings
    /// ask. Only then is the next group written. So with `durability = "sync"`, a loss of power
    /// leaves at most one group unsynced.
    pub(super) fn commit(mut self, now: Timestamp) -> Result<(), fjall::Error> {
        let sequence_from = self.tables.database.seqno();
        self.share_claims(sequence_from);
        let Self { tables, rows, changes, added, removed, .. } = self;
        let mode = match tables.durability {
            Durability::Sync => PersistMode::SyncData,
            Durability::Os => PersistMode::Buffer,
        };
        let label = Label {
            time: now.0,
            sequence_from,
            changes,
            is_synced: tables.durability == Durability::Sync,
        };
        let mut writes = tables.database.batch().durability(Some(mode));
        // The label is the first row, where a reader can find it even in a damaged journal.
        writes.insert(&tables.meta, LABEL_KEY, label.to_bytes());
        for Row { table, key, value } in rows {
            match value {
                Some(value) => writes.insert(table, key, value),
                None => writes.remove(table, key),
            }
        }
        for row in removed {
            writes.remove(&tables.due, row);
        }
        let added: Vec<_> = added.into_iter().collect();
        for ends in added.chunk_by(|one, next| one.at == next.at) {
            let Some(TimeKey { at, .. }) = ends.first() else { continue };
            let ids = ids::to_bytes(ends.iter().map(|end| end.id));
            writes.insert(&tables.due, DueRow::key(*at, sequence_from), ids);
        }
        writes.commit()?;
        tables.note_group(label.sequence_from)
    }

    /// Writes the row that all operations share that are in flight from now on, and removes the
    /// rows of which no operation is in flight any more.
    fn share_claims(&mut self, number: u64) {
        let mut shared = self.tables.claim_rows.borrow_mut();
        for id in mem::take(&mut self.ended) {
            if let Some(number) = shared.end(id) {
                self.remove_claims(number);
            }
        }
        if !self.claimed.is_empty() {
            shared.add(number, &self.claimed);
            let ids = ids::to_bytes(self.claimed.iter().copied());
            self.insert(&self.tables.unsettled, &number.to_be_bytes(), ids);
        }
    }
}
