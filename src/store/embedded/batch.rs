//! Changes of the tables that are written together. They are one group of the log.

use std::mem;

use fjall::Slice;

use super::ids;
use super::log::{AppendError, GroupBytes};
use super::stuffing::stuff;
use super::tables::{DueRow, IndexEntries, Known, Life, Table, Tables, TimeKey};
use super::unsettled::Unsettled;
use crate::operation::{Operation, OperationId, Timestamp};
use crate::store::codec::{self, Corrupt};

/// Changes that are written together or not at all.
pub(super) struct Batch {
    /// The number of the group.
    number: u64,
    rows: GroupBytes,
    /// What is known of the records in the group, in their order.
    known: Vec<Known>,
    /// The operations that are in flight from now on, and those that are no longer.
    claimed: Vec<OperationId>,
    ended: Vec<OperationId>,
    /// The ends of records that `due` gets.
    added: Vec<TimeKey>,
    /// The keys of the rows of `due` that are removed.
    removed: Vec<Slice>,
}

impl Batch {
    pub(super) fn new(tables: &mut Tables) -> Self {
        let mut rows = mem::take(&mut tables.buffer);
        rows.begin();
        Self {
            number: tables.next_group(),
            rows,
            known: Vec::new(),
            claimed: Vec::new(),
            ended: Vec::new(),
            added: Vec::new(),
            removed: Vec::new(),
        }
    }

    fn insert(&mut self, table: Table, key: &[u8], value: &[u8]) {
        self.rows.put(table.number(), key, value);
    }

    fn remove(&mut self, table: Table, key: &[u8]) {
        self.rows.remove(table.number(), key);
    }

    /// Returns the earliest time that the batch adds to `due`.
    pub(super) fn earliest_due(&self) -> Option<Timestamp> {
        self.added.iter().map(|row| row.at).min()
    }

    pub(super) fn is_empty(&self) -> bool {
        let Self { rows, claimed, ended, added, removed, .. } = self;
        let is_without_ids = claimed.is_empty() && ended.is_empty();
        rows.is_empty() && is_without_ids && added.is_empty() && removed.is_empty()
    }

    /// Writes a record and its rows in the other tables. `before` are the rows that the record has
    /// on disk.
    pub(super) fn write(
        &mut self,
        id: OperationId,
        before: Option<IndexEntries>,
        operation: Option<&Operation>,
    ) -> Result<(), Corrupt> {
        let key = id.as_bytes();
        let life = match (operation, before) {
            (Some(operation), _) => {
                self.insert(Table::Records, key, &stuff(codec::encode(operation)?));
                Life::of(operation)
            }
            (None, before) => {
                self.remove(Table::Records, key);
                before.map_or(Life::ThrowAway, |before| before.life_ended())
            }
        };
        self.known.push(Known { is_on_disk: before.is_some(), life });
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
                self.insert(Table::Created, &row.to_bytes(), &[]);
                self.insert(Table::Keys, &row.keyed(key), &[]);
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
        self.added.push(due);
    }

    pub(super) fn remove_due(&mut self, row: &DueRow) {
        self.removed.push(row.key.clone());
    }

    /// Writes all changes, with the current time. Returns once they are as durable as the settings
    /// ask.
    pub(super) fn commit(mut self, tables: &mut Tables, now: Timestamp) -> Result<(), AppendError> {
        self.share_claims(tables);
        self.write_due();
        let Self { number, mut rows, known, claimed, ended, .. } = self;
        let committed = tables.commit(&mut rows, &known, now);
        tables.buffer = rows;
        committed?;
        ended.into_iter().for_each(|id| tables.claim_rows.end(id));
        tables.claim_rows.add(number, &claimed);
        Ok(())
    }

    /// Writes the row that all operations share that are in flight from now on, and removes the
    /// rows of which no operation is in flight any more.
    fn share_claims(&mut self, tables: &Tables) {
        for number in tables.claim_rows.emptied_by(&self.ended) {
            self.remove_claims(number);
        }
        if !self.claimed.is_empty() {
            let ids = ids::to_bytes(self.claimed.iter().copied());
            self.insert(Table::Unsettled, &self.number.to_be_bytes(), &ids);
        }
    }

    fn write_due(&mut self) {
        for key in mem::take(&mut self.removed) {
            self.remove(Table::Due, &key);
        }
        let mut added = mem::take(&mut self.added);
        added.sort_unstable();
        added.dedup();
        for ends in added.chunk_by(|one, next| one.at == next.at) {
            let Some(TimeKey { at, .. }) = ends.first() else { continue };
            let ids = ids::to_bytes(ends.iter().map(|end| end.id));
            self.insert(Table::Due, &DueRow::key(*at, self.number), &ids);
        }
    }
}
