//! Changes of the tables that are written together: a group of the journal.

use std::collections::BTreeSet;

use fjall::{Keyspace, PersistMode, Slice};

use super::Durability;
use super::journal::{LABEL_KEY, Label};
use super::stuffing::stuff;
use super::tables::{Dated, Mark, Standing, Tables};
use crate::operation::{Operation, OperationId, Timestamp};
use crate::store::codec::{self, Corrupt};

/// Changes that are written together or not at all.
pub(super) struct Batch<'a> {
    tables: &'a Tables,
    rows: Vec<Row<'a>>,
    /// How many records it changes.
    changes: u32,
    /// Rows of `due`. One that is both added and removed is there.
    added: BTreeSet<Dated>,
    removed: BTreeSet<Dated>,
}

/// A row of a table as it will be; without a value, it will be gone.
struct Row<'a> {
    table: &'a Keyspace,
    key: Slice,
    value: Option<Slice>,
}

impl<'a> Batch<'a> {
    pub(super) fn new(tables: &'a Tables) -> Self {
        let added = BTreeSet::new();
        let removed = BTreeSet::new();
        Self { tables, rows: Vec::new(), changes: 0, added, removed }
    }

    fn insert(&mut self, table: &'a Keyspace, key: &[u8], value: impl Into<Slice>) {
        self.rows.push(Row { table, key: key.into(), value: Some(value.into()) });
    }

    fn remove(&mut self, table: &'a Keyspace, key: &[u8]) {
        self.rows.push(Row { table, key: key.into(), value: None });
    }

    /// The earliest row that it adds to `due`.
    pub(super) fn earliest_due(&self) -> Option<Timestamp> {
        self.added.first().map(|row| row.at)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.rows.is_empty() && self.added.is_empty() && self.removed.is_empty()
    }

    /// Writes a record, and what the other tables tell of it. `before` is where it stood.
    pub(super) fn write(
        &mut self,
        id: OperationId,
        before: Standing,
        operation: Option<&Operation>,
    ) -> Result<(), Corrupt> {
        let tables = self.tables;
        let after = Standing::of(operation);
        let key = id.as_bytes();
        match operation {
            Some(operation) => {
                self.insert(&tables.operations, key, stuff(codec::encode(operation)?));
            }
            None => self.remove(&tables.operations, key),
        }
        self.changes = self.changes.saturating_add(1);
        if before.mark() != after.mark() {
            self.mark(id, after.mark());
        }
        if before.found_by() != after.found_by() {
            if let Some((at, key)) = before.found_by() {
                let row = Dated { at, id };
                self.remove(&tables.created, &row.to_bytes());
                self.remove(&tables.keys, &row.keyed(key));
            }
            if let Some((at, key)) = after.found_by() {
                let row = Dated { at, id };
                self.insert(&tables.created, &row.to_bytes(), "");
                self.insert(&tables.keys, &row.keyed(key), "");
            }
        }
        // a later end needs no row: the row that it has leads to the record
        let has_row = match (before.due(), after.due()) {
            (Some(before), Some(after)) => before <= after,
            (_, None) => true,
            (None, Some(_)) => false,
        };
        if let Some(at) = after.due()
            && !has_row
        {
            self.add_due(Dated { at, id });
        }
        Ok(())
    }

    /// Says of an operation that it is not settled, or that it is.
    pub(super) fn mark(&mut self, id: OperationId, mark: Option<Mark>) {
        let key = id.as_bytes();
        let table = &self.tables.unsettled;
        match mark {
            Some(Mark::InFlight) => self.insert(table, key, "f"),
            Some(Mark::Uncertain) => self.insert(table, key, "u"),
            None => self.remove(table, key),
        }
    }

    pub(super) fn add_due(&mut self, due: Dated) {
        self.added.insert(due);
    }

    pub(super) fn remove_due(&mut self, due: Dated) {
        self.removed.insert(due);
    }

    /// Writes all of it, with the current time. Returns when it is as durable as the settings ask:
    /// the next group is written only then, so a loss of power leaves at most one group unsynced.
    pub(super) fn commit(self, now: Timestamp) -> Result<(), fjall::Error> {
        let Self { tables, rows, changes, added, removed } = self;
        let mode = match tables.durability {
            Durability::Sync => PersistMode::SyncData,
            Durability::Os => PersistMode::Buffer,
        };
        let label = Label {
            time: now.0,
            sequence_from: tables.database.seqno(),
            changes,
            is_synced: tables.durability == Durability::Sync,
        };
        let mut writes = tables.database.batch().durability(Some(mode));
        writes.insert(&tables.meta, LABEL_KEY, label.to_bytes());
        for Row { table, key, value } in rows {
            match value {
                Some(value) => writes.insert(table, key, value),
                None => writes.remove(table, key),
            }
        }
        for row in removed.difference(&added) {
            writes.remove(&tables.due, row.to_bytes());
        }
        for row in &added {
            writes.insert(&tables.due, row.to_bytes(), "");
        }
        writes.commit()?;
        tables.note_group(label.sequence_from)
    }
}
