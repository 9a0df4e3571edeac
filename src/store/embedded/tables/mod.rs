//! The tables of the store.
//!
//! A change is written to the log as one group, and then its rows are kept in memory. When many
//! have come, they are *frozen*: a thread writes them into a database in sorted runs. So a row may
//! be in three places, and the newest counts. The bytes of a record stay in the log. The table of
//! records has their place.
//!
//! ```text
//! change  -> log -> rows in memory -> reply
//!                   frozen rows -> database -> mark -> dead segments are deleted
//! read    : rows in memory, frozen rows, database -> place -> bytes in the log
//! start   : mark -> the rows of the groups behind it come into memory again
//! ```
//!
//! | files | for |
//! | --- | --- |
//! | `rows` | the tables and the bytes of their rows |
//! | `memory`, `merge`, `database` | the places of rows |
//! | `ingest`, `mark`, `accounts` | what the thread does: rows to disk, and segments that go |
//! | `open` | a start |

mod accounts;
mod database;
mod ingest;
mod mark;
mod memory;
mod merge;
mod open;
mod rows;
#[cfg(test)]
mod tests;

pub(super) use accounts::Life;
pub(super) use open::{Options, create, create_rows, missing_rows, remove_mark};
pub(super) use rows::{DueRow, IndexEntries, Table, TimeKey};

use std::error::Error as StdError;
use std::io;
use std::mem;
use std::ops::Bound;
use std::sync::Arc;

use self::accounts::{Accounts, RecordChange};
use self::database::Database;
use self::ingest::{Ingester, Run};
use self::mark::Mark;
use self::memory::{Memory, Order, Span};
use self::merge::{Merge, MergedRow, Source};
use super::directory::Directory;
use super::log::{AppendError, ChangeRef, GroupBytes, Log, Place, RealDisk, RowRef, Segments};
use super::stuffing::unstuff;
use super::unsettled::{ClaimRows, UnsettledRow};
use crate::operation::{Operation, OperationId, Timestamp};
use crate::store::list::KeyDigest;
use crate::store::{Corrupt, Error, codec};
use crate::telemetry::chain;

/// Rows are frozen when so many are in memory: those of about 100,000 events.
const RUN_ROWS: usize = 300_000;

/// With so many rows in memory, claims are refused until the thread has caught up.
const ROWS_MAX: usize = 4 * RUN_ROWS;

/// A segment that nobody needs is deleted after this time, even if few rows have come.
const DEAD_MAX: u64 = 60_000;

/// What is known of a record that a group changes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Known {
    /// Whether it is on disk.
    pub(super) is_on_disk: bool,
    pub(super) life: Life,
}

/// The open tables.
pub(super) struct Tables {
    /// The rows that came last.
    active: Memory,
    /// The rows that the thread writes to the database.
    frozen: Option<Arc<Memory>>,
    accounts: Accounts,
    /// The latest time of the store's clock that was written.
    time: Timestamp,
    /// The time of the latest run.
    frozen_at: Timestamp,
    /// How many rows are frozen at once.
    run_rows: usize,
    /// The buffer of the next group.
    pub(super) buffer: GroupBytes,
    /// The rows of `unsettled` that the operations in flight share.
    pub(super) claim_rows: ClaimRows,
    // Fields are dropped in the order of their declaration: the threads end and the database is
    // closed before the directory is unlocked.
    ingester: Ingester,
    database: Arc<Database>,
    segments: Arc<Segments<RealDisk>>,
    log: Log<RealDisk>,
    #[cfg_attr(not(test), expect(dead_code, reason = "it is locked as long as it lives"))]
    directory: Arc<Directory>,
}

impl Tables {
    /// Returns the number that the next group gets.
    pub(super) const fn next_group(&self) -> u64 {
        self.log.position().group
    }

    /// Writes a group. `known` says of each record in it, in their order, what is known. Returns
    /// once the group is as durable as the settings ask. Only then is the next group written. So
    /// with `durability = "sync"`, a loss of power leaves at most one group unsynced.
    pub(super) fn commit(
        &mut self,
        group: &mut GroupBytes,
        known: &[Known],
        now: Timestamp,
    ) -> Result<(), AppendError> {
        let newest = self.log.position().segment;
        let appended = self.log.append(group, now.0)?;
        if appended.segment != newest {
            self.accounts.sealed();
        }
        self.accounts.open(appended.segment);
        self.time = self.time.max(now);
        let mut known = known.iter();
        for row in group.rows(appended) {
            self.apply(row, &mut known, now);
        }
        self.finish_run();
        if self.active.rows() >= self.run_rows {
            self.freeze(now);
        }
        Ok(())
    }

    /// Puts a row of a group into memory.
    fn apply(
        &mut self,
        RowRef { table, key, change }: RowRef<'_>,
        known: &mut std::slice::Iter<'_, Known>,
        now: Timestamp,
    ) {
        let Some(table) = Table::of_number(table) else { return };
        if table != Table::Records {
            let value = match change {
                ChangeRef::Put { value, .. } => Some(value),
                ChangeRef::Remove | ChangeRef::Moved(_) => None,
            };
            let set = self.active.set(table, key, value);
            return debug_assert!(set.is_ok(), "every row has the length of its table");
        }
        let Ok(id) = key.try_into() else { return };
        let is_moved = matches!(change, ChangeRef::Moved(_));
        let new = match change {
            ChangeRef::Put { place, .. } | ChangeRef::Moved(place) => Some(place),
            ChangeRef::Remove => None,
        };
        let moved = Known { is_on_disk: true, life: Life::Moved };
        let known = if is_moved { Some(&moved) } else { known.next() }.copied();
        let Known { is_on_disk, life } = known.unwrap_or(moved);
        let old = self.active.set_record(id, new).or_else(|| self.frozen_record(&id));
        let old = match old {
            Some(place) => place,
            // If the database cannot be read, the count of the old segment stays too high.
            None if is_on_disk => self.stored_record(&id).unwrap_or_default(),
            None => None,
        };
        self.accounts.change(RecordChange { old, new, life, now });
    }

    fn frozen_record(&self, id: &[u8; 16]) -> Option<Option<Place>> {
        self.frozen.as_ref()?.record(id)
    }

    fn stored_record(&self, id: &[u8; 16]) -> Result<Option<Place>, Error> {
        stored_record(&self.database, id)
    }

    /// Hands the rows in memory to the thread, unless it has some already.
    fn freeze(&mut self, now: Timestamp) {
        if self.frozen.is_some() {
            return;
        }
        let position = self.log.position();
        let active = mem::replace(&mut self.active, Memory::new(position.group));
        let memory = Arc::new(active);
        self.frozen = Some(Arc::clone(&memory));
        self.frozen_at = now;
        let accounts = self.accounts.clone();
        let mark = Mark { position: Some(position), time: self.time, accounts };
        self.ingester.ingest(Run { memory, mark });
    }

    /// Forgets the rows that the thread has written.
    fn finish_run(&mut self) {
        if self.frozen.is_none() {
            return;
        }
        let Some(ingested) = self.ingester.ended() else { return };
        self.end_run(&ingested);
    }

    fn end_run(&mut self, ingested: &ingest::Ingested) {
        for segment in &ingested.deleted {
            self.accounts.close(*segment);
        }
        if let Some(memory) = self.frozen.take() {
            self.ingester.free(memory);
        }
    }

    /// Does what is due: closes the newest segment by its age, and has dead segments deleted.
    pub(super) fn tick(&mut self, now: Timestamp) -> Result<(), AppendError> {
        self.finish_run();
        let newest = self.log.position().segment;
        // On a full disk the rest of the newest segment is needed.
        if self.accounts.seal_by(newest) <= now && self.log.has_room() {
            self.log.seal();
            // An empty group begins the new segment. Otherwise a store in which nothing happens
            // would keep the old one.
            let mut empty = mem::take(&mut self.buffer);
            empty.begin();
            let committed = self.commit(&mut empty, &[], now);
            self.buffer = empty;
            committed?;
        }
        let newest = self.log.position().segment;
        let is_time = now.0.saturating_sub(self.frozen_at.0) >= DEAD_MAX;
        if is_time && self.accounts.dead_before(newest).next().is_some() {
            self.freeze(now);
        }
        Ok(())
    }

    /// Returns the reason why no claim may be written, if there is one.
    pub(super) fn refuses_claims(&self) -> Option<&'static str> {
        if !self.log.has_room() {
            return Some("its disk is full");
        }
        (self.active.rows() >= self.rows_max()).then_some("its disk is too slow, or fails")
    }

    const fn rows_max(&self) -> usize {
        ROWS_MAX / RUN_ROWS * self.run_rows
    }

    /// Whether a write has failed, so that nothing can be written until [`Self::restore`] succeeds.
    pub(super) fn is_suspended(&self) -> bool {
        self.log.is_suspended()
    }

    /// Goes on after a failed write.
    pub(super) fn restore(&mut self) -> io::Result<()> {
        self.log.restore()
    }

    /// Returns the latest time of the store's clock that was written. The store's clock continues
    /// from that time, so it never goes back, even if somebody set the machine's clock back.
    pub(super) const fn kept_time(&self) -> Timestamp {
        self.time
    }

    /// Reads a record.
    pub(super) fn read(&self, id: OperationId) -> Result<Option<Operation>, Error> {
        self.read_key(id.as_bytes())
    }

    fn read_key(&self, key: &[u8; 16]) -> Result<Option<Operation>, Error> {
        let known = self.active.record(key).or_else(|| self.frozen_record(key));
        let place = match known {
            Some(place) => place,
            None => self.stored_record(key)?,
        };
        place.map(|place| self.read_at(key, place)).transpose()
    }

    fn read_at(&self, key: &[u8; 16], place: Place) -> Result<Operation, Error> {
        let id = OperationId::from_bytes(*key);
        let kept = self.segments.read(key, place).map_err(|error| match error.kind() {
            io::ErrorKind::InvalidData => Error::Unreadable(id, Corrupt::Checksum),
            io::ErrorKind::NotFound => Error::Unreadable(id, Corrupt::CutOff),
            _ => failed(error),
        })?;
        let record = unstuff(&kept).and_then(|record| codec::decode(&record));
        record.map_err(|corrupt| Error::Unreadable(id, corrupt))
    }

    /// Reads the records behind an id, or all of them, in the order of their ids.
    pub(super) fn records_after(
        &self,
        id: Option<OperationId>,
    ) -> impl Iterator<Item = Result<Operation, Error>> {
        let after = id.as_ref().map_or(Bound::Unbounded, |id| Bound::Excluded(&id.as_bytes()[..]));
        let rows = self.range(Span { start: after, ..Span::all(Table::Records) });
        rows.filter_map(|row| {
            let MergedRow { key, value } = match row {
                Ok(row) => row,
                Err(error) => return Some(Err(failed(error))),
            };
            let key = key.as_ref().try_into().ok()?;
            Some(self.read_at(key, Place::from_bytes(&value)?))
        })
    }

    /// Returns the highest id of a record.
    pub(super) fn last_id(&self) -> Result<Option<OperationId>, fjall::Error> {
        let span = Span { order: Order::Backward, ..Span::all(Table::Records) };
        let rows = self.range(span);
        let parse = |MergedRow { key, .. }: MergedRow| key.as_ref().try_into().ok();
        let last = parsed(rows, parse).next().transpose()?;
        Ok(last.map(OperationId::from_bytes))
    }

    /// Waits for the thread if there are many rows in memory that it has not got yet.
    pub(super) fn catch_up(&mut self, now: Timestamp) {
        if self.active.rows() >= self.run_rows && self.frozen.is_some() {
            self.finish_run_now();
            self.freeze(now);
        }
    }

    /// Waits until the thread has written the rows that it has got.
    fn finish_run_now(&mut self) {
        if let Some(ingested) = self.ingester.wait() {
            self.end_run(&ingested);
        }
    }

    /// Returns the rows of `unsettled`.
    pub(super) fn unsettled(&self) -> impl Iterator<Item = Result<UnsettledRow, fjall::Error>> {
        let rows = self.range(Span::all(Table::Unsettled));
        parsed(rows, |MergedRow { key, value }| UnsettledRow::from_bytes(&key, &value))
    }

    /// Returns the rows of `due` with times from `from` to `until`, earliest first.
    pub(super) fn due(
        &self,
        from: Timestamp,
        until: Timestamp,
    ) -> impl Iterator<Item = Result<DueRow, fjall::Error>> {
        let first = from.0.to_be_bytes();
        let last = DueRow::key(until, u64::MAX);
        let rows = self.range(Span {
            start: Bound::Included(&first),
            end: Bound::Included(&last),
            ..Span::all(Table::Due)
        });
        parsed(rows, |MergedRow { key, value }| DueRow::from_bytes(key, &value))
    }

    /// Returns the rows of `created` that come after `after` in a list, newest first. Without
    /// `after` it returns all of them.
    pub(super) fn created_before(
        &self,
        after: Option<TimeKey>,
    ) -> impl Iterator<Item = Result<TimeKey, fjall::Error>> {
        let after = after.map(TimeKey::to_bytes);
        let end = after.as_ref().map_or(Bound::Unbounded, |key| Bound::Excluded(key.as_slice()));
        let order = Order::Backward;
        let rows = self.range(Span { end, order, ..Span::all(Table::Created) });
        parsed(rows, |MergedRow { key, .. }| TimeKey::from_bytes(&key))
    }

    /// Does the same as [`Self::created_before`], for the rows of `keys` with this digest.
    pub(super) fn keyed_before(
        &self,
        key: KeyDigest,
        after: Option<TimeKey>,
    ) -> impl Iterator<Item = Result<TimeKey, fjall::Error>> {
        let lowest = TimeKey { at: Timestamp(0), id: OperationId::from_bytes([0; 16]) };
        let highest = TimeKey { at: Timestamp(u64::MAX), id: OperationId::from_bytes([0xff; 16]) };
        let start = lowest.keyed(key);
        let end = after.unwrap_or(highest).keyed(key);
        let rows = self.range(Span {
            table: Table::Keys,
            start: Bound::Included(&start),
            end: Bound::Excluded(&end),
            order: Order::Backward,
        });
        parsed(rows, |MergedRow { key, .. }| TimeKey::from_keyed(&key))
    }

    fn range(&self, span: Span<'_>) -> Merge<'_> {
        let in_memory = [Some(&self.active), self.frozen.as_deref()].into_iter().flatten();
        let in_memory = in_memory.map(|memory| Box::new(memory.range(span).map(Ok)) as Source<'_>);
        let sources = in_memory.chain([self.database.range(span)]).collect();
        Merge::new(sources, span.order)
    }

    /// Makes all that was written durable, whatever the settings ask for.
    pub(super) fn sync(&self) -> io::Result<()> {
        self.segments.sync_until(self.log.position())
    }

    /// Closes the tables. Syncs all that was written, and notes that.
    pub(super) fn close(self) -> io::Result<()> {
        self.log.close()
    }
}

fn stored_record(database: &Database, id: &[u8; 16]) -> Result<Option<Place>, Error> {
    let found = database.get(Table::Records, id).map_err(failed)?;
    let parsed = found.map(|place| Place::from_bytes(&place)).map(|place| {
        place.ok_or(Error::Unreadable(OperationId::from_bytes(*id), Corrupt::Foreign))
    });
    parsed.transpose()
}

/// Parses rows. A row that no version can have written is left out.
fn parsed<'a, T>(
    rows: Merge<'a>,
    parse: impl Fn(MergedRow) -> Option<T> + 'a,
) -> impl Iterator<Item = Result<T, fjall::Error>> + 'a {
    rows.filter_map(move |row| row.map(&parse).transpose())
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

/// Turns a failure of the tables into a failure of the call.
pub(super) fn failed(error: impl StdError + Send + Sync + 'static) -> Error {
    Error::Failed(Box::new(error))
}
