//! The tables of the store: rows in memory over rows in the database, and records in the log.
//!
//! A change is one group of the log. Its rows stay in memory until many have come. Then they go
//! into the database in one sorted run, on a thread of its own, and the next rows come together
//! meanwhile. A record never leaves the log: its row says where it lies.

mod accounts;
mod database;
mod ingest;
mod mark;
mod memory;
mod merge;
mod open;
mod rows;

pub(super) use accounts::Accounts;
pub(super) use mark::Mark;
pub(super) use open::Opening;
pub(super) use rows::{DueRow, IndexEntries, Table, TimeKey};

use std::error::Error as StdError;
use std::io;
use std::mem;
use std::ops::Bound;
use std::sync::Arc;

use lsm_tree::Slice;

use self::database::Database;
use self::ingest::{Done, Ingest, Run};
use self::memory::Memory;
use self::merge::{Merged, Order, SourceRow};
use super::batch::{Batch, NewRecord, NewValue, RowChange};
use super::ids;
use super::log::{Log, Place};
use super::settings::Durability;
use super::stuffing::unstuff;
use super::unsettled::{ClaimRows, UnsettledRow};
use crate::operation::{Operation, OperationId, Timestamp};
use crate::store::list::KeyDigest;
use crate::store::{Corrupt, Error, codec};
use crate::telemetry::chain;

/// The number of changes that are collected in memory before they go into the database.
const RUN_CHANGES: usize = 300_000;

/// The most changes in memory. They are so many only if the database cannot be written.
const CHANGES_MAX: usize = 4 * RUN_CHANGES;

/// The longest time between two marks, while a segment waits to be removed.
const MARK_EVERY: std::time::Duration = std::time::Duration::from_secs(20);

/// The open tables.
pub(super) struct Tables {
    log: Log,
    /// The rows that came last, and those that go into the database now.
    active: Memory,
    frozen: Option<Arc<Memory>>,
    accounts: Accounts,
    /// The rows of `unsettled` that the operations in flight share.
    claim_rows: ClaimRows,
    /// The earliest time at which the newest segment must be full, because records in it end.
    close_by: Timestamp,
    /// The segment of the latest mark, and its time.
    marked: u64,
    marked_at: Timestamp,
    kept_time: Timestamp,
    durability: Durability,
    // The thread that writes the database ends before the database is closed.
    ingest: Ingest,
    database: Arc<Database>,
}

/// An error of the disk, of the database, or of a record.
pub(super) type WriteError = Box<dyn StdError + Send + Sync>;

impl Tables {
    /// Returns the latest time of the store's clock that was written. The store's clock continues
    /// from that time, so it never goes back, even if somebody set the machine's clock back.
    pub(super) const fn kept_time(&self) -> Timestamp {
        self.kept_time
    }

    // --- writing ----------------------------------------------------------------------------------

    /// Writes all changes of a batch, with the current time, and empties the batch. Returns once
    /// they are as durable as the settings ask. Only then is the next group written. So with
    /// `durability = "sync"`, a loss of power leaves at most one group unsynced.
    pub(super) fn commit(&mut self, batch: &mut Batch, now: Timestamp) -> Result<(), WriteError> {
        self.take_done();
        let number = self.log.position().group;
        self.share_claims(batch, number);
        let due: Vec<_> = mem::take(&mut batch.due).into_iter().collect();
        for ends in due.chunk_by(|one, next| one.at == next.at) {
            let Some(TimeKey { at, .. }) = ends.first() else { continue };
            let ids = ids::to_bytes(ends.iter().map(|end| end.id));
            batch.insert(Table::Due, &DueRow::key(*at, number), &ids);
        }
        let appended = self.log.append(&mut batch.group, now.0)?;
        self.accounts.begin(appended.segment);
        for RowChange { table, key, value } in batch.changes.drain(..) {
            let value = match value {
                NewValue::None => None,
                NewValue::Bytes(value) => Some(value),
                NewValue::Record(record) => {
                    let offset = appended.begin as u32 + record.offset;
                    let place = Place { segment: appended.segment, offset, length: record.length };
                    self.note_record(&key, &record, place, now);
                    Some(place.to_bytes().as_slice().into())
                }
                NewValue::Removed { begin } => {
                    if let Some(old) = self.old_place(&key) {
                        self.accounts.remove(old, Some(accounts::clear_by(begin, now)));
                    }
                    None
                }
            };
            self.active.set(table, key, value);
        }
        batch.clear();
        if self.active.changes() >= RUN_CHANGES {
            self.freeze(now);
        }
        Ok(())
    }

    /// Writes the row that all operations share that are in flight from now on, and removes the
    /// rows of which no operation is in flight any more.
    fn share_claims(&mut self, batch: &mut Batch, number: u64) {
        for id in mem::take(&mut batch.ended) {
            if let Some(number) = self.claim_rows.end(id) {
                batch.remove_claims(number);
            }
        }
        if !batch.claimed.is_empty() {
            let claimed = mem::take(&mut batch.claimed);
            self.claim_rows.add(number, &claimed);
            let ids = ids::to_bytes(claimed.into_iter());
            batch.insert(Table::Unsettled, &number.to_be_bytes(), &ids);
        }
    }

    /// Notes that a record lies at a new place.
    fn note_record(&mut self, key: &[u8], record: &NewRecord, place: Place, now: Timestamp) {
        if record.replaces
            && let Some(old) = self.old_place(key)
        {
            let clear_by = record.due.map(|due| accounts::clear_by(now, due));
            self.accounts.remove(old, clear_by);
        }
        self.accounts.add(place);
        if let Some(due) = record.due {
            // The records of a segment should end at about the same time.
            self.close_by = self.close_by.min(accounts::close_by(now, due));
        }
    }

    /// Returns the place of a record that is about to lie elsewhere. If it cannot be read, the
    /// record stays counted, and its segment is kept for longer than it must be.
    fn old_place(&self, key: &[u8]) -> Option<Place> {
        self.place(key).ok().flatten()
    }

    /// Does what only time asks for: begins a new segment, and lets the database have the rows so
    /// that segments can be removed.
    pub(super) fn tick(&mut self, now: Timestamp) -> io::Result<()> {
        self.take_done();
        if now >= self.close_by {
            self.log.begin_segment(now.0)?;
            self.accounts.begin(self.log.position().segment);
            self.close_by = Timestamp(u64::MAX);
        }
        let segment = self.log.position().segment;
        let waits = self.accounts.dead(segment).next().is_some();
        if waits && now >= self.marked_at.plus(MARK_EVERY) {
            self.freeze(now);
        }
        Ok(())
    }

    /// Goes on after a failed write.
    pub(super) fn restore(&mut self, now: Timestamp) -> io::Result<()> {
        self.log.restore(now.0)?;
        self.accounts.begin(self.log.position().segment);
        Ok(())
    }

    /// Whether a write has failed, and the log has not gone on since.
    pub(super) const fn is_suspended(&self) -> bool {
        self.log.is_suspended()
    }

    /// Whether there is room for new operations, on the disk and in memory.
    pub(super) fn has_room(&self) -> bool {
        self.log.has_room() && self.active.changes() < CHANGES_MAX
    }

    /// Hands the rows in memory to the database, unless it is still busy with earlier ones.
    fn freeze(&mut self, now: Timestamp) {
        if self.frozen.is_some() {
            return;
        }
        let rows = Arc::new(mem::take(&mut self.active));
        self.frozen = Some(Arc::clone(&rows));
        let position = self.log.position();
        let unsynced_from = (self.durability == Durability::Os).then_some(self.marked);
        let mark = Mark { position, time: now, accounts: self.accounts.clone() };
        self.ingest.hand_in(Run { rows, mark, unsynced_from });
        self.marked = position.segment;
        self.marked_at = now;
    }

    /// Forgets the rows that the database has by now.
    fn take_done(&mut self) {
        if let Some(done) = self.ingest.done() {
            self.forget_frozen(done);
        }
    }

    fn forget_frozen(&mut self, Done { removed }: Done) {
        self.frozen = None;
        removed.into_iter().for_each(|segment| self.accounts.forget(segment));
    }

    /// Hands all rows to the database, and waits for that.
    pub(super) fn flush(&mut self, now: Timestamp) {
        for _ in 0..2 {
            if self.frozen.is_some()
                && let Some(done) = self.ingest.wait()
            {
                self.forget_frozen(done);
            }
            if self.active.changes() > 0 || self.marked != self.log.position().segment {
                self.freeze(now);
            }
        }
    }

    /// Makes all that was written durable, whatever the settings ask for.
    pub(super) fn sync(&self) -> io::Result<()> {
        self.log.sync()
    }

    // --- reading ----------------------------------------------------------------------------------

    /// Returns the place of a record.
    fn place(&self, key: &[u8]) -> Result<Option<Place>, lsm_tree::Error> {
        let row = self.get(Table::Records, key)?;
        Ok(row.and_then(|place| Place::from_bytes(&place)))
    }

    fn get(&self, table: Table, key: &[u8]) -> Result<Option<Slice>, lsm_tree::Error> {
        let frozen = || self.frozen.as_ref().and_then(|frozen| frozen.get(table, key));
        match self.active.get(table, key).or_else(frozen) {
            Some(row) => Ok(row.cloned()),
            None => self.database.get(table, key),
        }
    }

    fn rows(&self, table: Table, part: Part, order: Order) -> Merged<'_> {
        let Part { from, until } = part;
        let memories = [Some(&self.active), self.frozen.as_deref()].into_iter().flatten();
        let merged = memories.fold(Merged::new(order), |merged, memory| {
            let rows = memory.range(table, from.clone(), until.clone()).map(Ok);
            merged.with(ordered(rows, order))
        });
        merged.with(ordered(self.database.range(table, from, until), order))
    }

    /// Reads a record.
    pub(super) fn read(&self, id: OperationId) -> Result<Option<Operation>, Error> {
        let Some(place) = self.place(id.as_bytes()).map_err(failed)? else { return Ok(None) };
        self.read_at(id, place).map(Some)
    }

    fn read_at(&self, id: OperationId, place: Place) -> Result<Operation, Error> {
        let kept = self.log.segments().read(place).map_err(|error| Error::Failed(error.into()))?;
        decoded(id, &kept)
    }

    /// Reads the records of the operations behind this one, or of all, in the order of their ids.
    pub(super) fn records_after(
        &self,
        after: Option<OperationId>,
    ) -> impl Iterator<Item = Result<Operation, Error>> {
        let from = after.map_or(Bound::Unbounded, |id| Bound::Excluded(id.as_bytes().as_slice().into()));
        let part = Part { from, until: Bound::Unbounded };
        self.rows(Table::Records, part, Order::Ascending).filter_map(|row| match row {
            Ok(row) => {
                let id = OperationId::from_bytes(row.key.as_ref().try_into().ok()?);
                Some(self.read_at(id, Place::from_bytes(&row.value)?))
            }
            Err(error) => Some(Err(failed(error))),
        })
    }

    /// Returns the rows of `unsettled`.
    pub(super) fn unsettled(&self) -> impl Iterator<Item = Result<UnsettledRow, lsm_tree::Error>> {
        let rows = self.rows(Table::Unsettled, Part::ALL, Order::Ascending);
        rows.filter_map(|row| match row {
            Ok(row) => UnsettledRow::from_bytes(&row.key, &row.value).map(Ok),
            Err(error) => Some(Err(error)),
        })
    }

    /// Returns the rows of `due` with times from `from` to `until`, earliest first.
    pub(super) fn due(
        &self,
        from: Timestamp,
        until: Timestamp,
    ) -> impl Iterator<Item = Result<DueRow, lsm_tree::Error>> {
        let from = Bound::Included(DueRow::key(from, 0).as_slice().into());
        let until = Bound::Included(DueRow::key(until, u64::MAX).as_slice().into());
        let rows = self.rows(Table::Due, Part { from, until }, Order::Ascending);
        rows.filter_map(|row| match row {
            Ok(row) => DueRow::from_bytes(row.key, &row.value).map(Ok),
            Err(error) => Some(Err(error)),
        })
    }

    /// Returns the rows of `created` that come after `after` in a list, newest first. Without
    /// `after` it returns all of them.
    pub(super) fn created_before(
        &self,
        after: Option<TimeKey>,
    ) -> impl Iterator<Item = Result<TimeKey, lsm_tree::Error>> {
        let until = after.map_or(Bound::Unbounded, |after| {
            Bound::Excluded(after.to_bytes().as_slice().into())
        });
        let part = Part { from: Bound::Unbounded, until };
        let rows = self.rows(Table::Created, part, Order::Descending);
        rows.filter_map(|row| row.map(|row| TimeKey::from_bytes(&row.key)).transpose())
    }

    /// Does the same as [`Self::created_before`], for the rows of `keys` with this digest.
    pub(super) fn keyed_before(
        &self,
        key: KeyDigest,
        after: Option<TimeKey>,
    ) -> impl Iterator<Item = Result<TimeKey, lsm_tree::Error>> {
        let lowest = TimeKey { at: Timestamp(0), id: OperationId::from_bytes([0; 16]) };
        let highest = TimeKey { at: Timestamp(u64::MAX), id: OperationId::from_bytes([0xff; 16]) };
        let from = Bound::Included(lowest.keyed(key).as_slice().into());
        let until = after.unwrap_or(highest).keyed(key);
        let part = Part { from, until: Bound::Excluded(until.as_slice().into()) };
        let rows = self.rows(Table::Keys, part, Order::Descending);
        rows.filter_map(|row| row.map(|row| TimeKey::from_keyed(&row.key)).transpose())
    }
}

/// A part of a table.
struct Part {
    from: Bound<Slice>,
    until: Bound<Slice>,
}

impl Part {
    const ALL: Self = Self { from: Bound::Unbounded, until: Bound::Unbounded };
}

/// Gives rows in an order.
fn ordered<'a>(
    rows: impl DoubleEndedIterator<Item = SourceRow> + 'a,
    order: Order,
) -> Box<dyn Iterator<Item = SourceRow> + 'a> {
    match order {
        Order::Ascending => Box::new(rows),
        Order::Descending => Box::new(rows.rev()),
    }
}

/// Reads a record of this operation.
fn decoded(id: OperationId, kept: &[u8]) -> Result<Operation, Error> {
    let record = unstuff(kept).and_then(|record| codec::decode(&record));
    let record = record.and_then(|record| {
        if record.subject.id == id { Ok(record) } else { Err(Corrupt::Foreign) }
    });
    record.map_err(|corrupt| Error::Unreadable(id, corrupt))
}

/// Returns what was read. If a record is unreadable, logs that it is kept, and returns none. Such a
/// record is never removed, because nobody can say whether its operation was done. But it is no
/// reason to refuse all others.
pub(super) fn unless_unreadable<T>(read: Result<T, Error>) -> Result<Option<T>, Error> {
    match read {
        Ok(found) => Ok(Some(found)),
        Err(error @ Error::Unreadable(id, _)) => {
            tracing::error!(operation.id = %id, error = %chain(&error), "a record is kept");
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

/// Turns a failure of the database into a failure of the call.
pub(super) fn failed(error: lsm_tree::Error) -> Error {
    Error::Failed(Box::new(error))
}
