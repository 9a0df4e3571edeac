//! Opens the tables: the database as far as the mark says, and the groups of the log behind it.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::accounts::{self, Accounts};
use super::database::Database;
use super::ingest::Ingest;
use super::mark::Mark;
use super::memory::Memory;
use super::rows::Table;
use super::{RUN_CHANGES, Tables};
use crate::operation::Timestamp;
use crate::store::codec;
use crate::store::embedded::damage::{self, OnDamage};
use crate::store::embedded::log::disk::RealDisk;
use crate::store::embedded::log::group::WholeGroup;
use crate::store::embedded::log::scan::LostPart;
use crate::store::embedded::log::{ChangeRef, Fault, Opened, Place, Position, Visitor};
use crate::store::embedded::open_error::OpenError;
use crate::store::embedded::settings::Durability;
use crate::store::embedded::stuffing::unstuff;

/// The folders of a store, and how it is opened.
#[derive(Debug)]
pub(in crate::store::embedded) struct Opening<'a> {
    /// The folder of the log and the mark.
    pub(in crate::store::embedded) log: PathBuf,
    /// The folder of the database.
    pub(in crate::store::embedded) rows: PathBuf,
    pub(in crate::store::embedded) durability: Durability,
    pub(in crate::store::embedded) damage: OnDamage<'a>,
}

impl Opening<'_> {
    /// Makes an empty log and an empty database, durably.
    pub(in crate::store::embedded) fn create(log: &Path, rows: &Path) -> io::Result<()> {
        fs::create_dir_all(log)?;
        fs::create_dir_all(rows)?;
        Opened::create(&RealDisk, log)?;
        Database::open(rows).map_err(io::Error::other)?;
        let position = Position { segment: 0, offset: 512, group: 1 };
        let mut accounts = Accounts::default();
        accounts.begin(0);
        Mark { position, time: Timestamp::default(), accounts }.write(log)
    }

    /// Opens the tables.
    pub(in crate::store::embedded) fn open(mut self) -> Result<Tables, OpenError> {
        let mark = self.mark()?;
        let database = Database::open(&self.rows);
        let database = database.map_err(|error| self.damage.database(error))?;
        let database = Arc::new(database);
        let time = mark.as_ref().map_or(Timestamp::default(), |mark| mark.time);
        let from = mark.as_ref().map(|mark| mark.position);
        let mut accounts = mark.map(|mark| mark.accounts).unwrap_or_default();
        let mut replay = Replay {
            active: Memory::default(),
            database: &database,
            dead: from.map_or(Vec::new(), |from| accounts.dead(from.segment).collect()),
            marked: accounts.clone(),
            accounts: std::mem::take(&mut accounts),
            from,
            time,
            damage: &mut self.damage,
            is_damaged: from.is_none(),
            error: None,
        };
        let opened = Opened {
            disk: Arc::new(RealDisk),
            folder: self.log.clone(),
            durability: self.durability,
            from,
            time: time.0,
        };
        let log = opened.open(&mut replay);
        let Replay { active, mut accounts, time, is_damaged, error, dead, .. } = replay;
        let log = log.map_err(|fault| self.damage.fault(fault))?;
        if let Some(error) = error {
            return Err(self.damage.database(error));
        }
        let segments = Arc::clone(log.segments());
        let newest = log.position().segment;
        accounts.begin(newest);
        let io = |error| self.damage.io(error);
        // A crash came before they were removed.
        for segment in dead {
            segments.remove(segment).map_err(io)?;
            accounts.forget(segment);
        }
        let there = segments.numbers().map_err(io)?;
        for (segment, account) in accounts.iter() {
            if account.live > 0 && !there.contains(&segment) {
                self.damage.missing(segment_path(&self.log, segment))?;
            }
        }
        // Copies of records to which no row leads, because a crash came before the row was written.
        for segment in there.into_iter().filter(|segment| *segment < newest) {
            if !accounts.contains(segment) {
                segments.remove(segment).map_err(io)?;
            }
        }
        let ingest = Ingest::start(Arc::clone(&database), segments, self.log.clone()).map_err(io)?;
        let mut tables = Tables {
            log,
            active,
            frozen: None,
            accounts,
            claim_rows: Default::default(),
            close_by: Timestamp(u64::MAX),
            marked: from.map_or(0, |from| from.segment),
            marked_at: time,
            kept_time: time,
            durability: self.durability,
            ingest,
            database,
        };
        if is_damaged {
            // The next start must not find the same damage again.
            tables.flush(time);
        }
        Ok(tables)
    }

    /// Reads the mark, if the database belongs to it. Without them all rows are made anew.
    fn mark(&mut self) -> Result<Option<Mark>, OpenError> {
        let missing = match Mark::read(&self.log) {
            Ok(mark) => match Database::missing(&self.rows).map_err(|error| self.damage.io(error))? {
                None => return Ok(Some(mark)),
                Some(table) => self.rows.join(table),
            },
            Err(error) if error.kind() == io::ErrorKind::NotFound => Mark::path(&self.log),
            Err(error) if error.kind() == io::ErrorKind::InvalidData => Mark::path(&self.log),
            Err(error) => return Err(self.damage.io(error)),
        };
        self.damage.missing(missing)?;
        damage::begin_rows_anew(&self.rows).map_err(|error| self.damage.io(error))?;
        Ok(None)
    }
}

fn segment_path(folder: &Path, segment: u64) -> PathBuf {
    crate::store::embedded::log::segment::path(folder, segment)
}

/// The rows that the groups of the log give.
struct Replay<'a, 'd> {
    active: Memory,
    database: &'a Database,
    accounts: Accounts,
    /// The segments of which the mark counts the records.
    marked: Accounts,
    /// The segments that nothing needed at the mark.
    dead: Vec<u64>,
    from: Option<Position>,
    time: Timestamp,
    damage: &'a mut OnDamage<'d>,
    /// Whether the next start would find damage where this one found it.
    is_damaged: bool,
    error: Option<lsm_tree::Error>,
}

impl Visitor for Replay<'_, '_> {
    fn segment(&mut self, segment: u64) {
        self.accounts.begin(segment);
    }

    fn group(&mut self, segment: u64, group: &WholeGroup<'_>) {
        self.time = self.time.max(Timestamp(group.label.time));
        for row in group.rows(segment) {
            let Some(table) = Table::from_number(row.table) else { continue };
            if table == Table::Records {
                self.note_record(row.key, row.change);
            }
            let value = match row.change {
                ChangeRef::Put { place, .. } | ChangeRef::Moved(place)
                    if table == Table::Records =>
                {
                    Some(place.to_bytes().as_slice().into())
                }
                ChangeRef::Put { value, .. } => Some(value.into()),
                ChangeRef::Remove | ChangeRef::Moved(_) => None,
            };
            self.active.set(table, row.key.into(), value);
        }
        if self.active.changes() >= RUN_CHANGES {
            let rows = std::mem::take(&mut self.active);
            let ingest = |table| self.database.ingest(table, rows.rows(table));
            self.error = Table::ALL.into_iter().find_map(|table| ingest(table).err());
        }
    }

    fn fault(&mut self, fault: &Fault) -> bool {
        let is_accepted = self.damage.accepts(fault);
        self.is_damaged |= is_accepted;
        is_accepted
    }

    fn dropped(&mut self, segment: &Path, lost: &LostPart) {
        damage::log_loss(segment, lost);
    }
}

impl Replay<'_, '_> {
    /// Counts a record at its new place, and no longer at its old one.
    fn note_record(&mut self, key: &[u8], change: ChangeRef<'_>) {
        let is_in_memory = self.active.get(Table::Records, key);
        let old = match is_in_memory {
            Some(row) => row.and_then(|place| Place::from_bytes(place)),
            // The database may have rows of later groups than the mark says. The mark does not
            // count their records.
            None => self
                .database
                .get(Table::Records, key)
                .ok()
                .flatten()
                .and_then(|place| Place::from_bytes(&place))
                .filter(|place| self.is_counted(*place)),
        };
        if let Some(old) = old {
            let clear_by = match change {
                ChangeRef::Put { value, place } if place.segment != old.segment => {
                    end_of(value).map(|end| accounts::clear_by(self.time, end))
                }
                ChangeRef::Put { .. } => None,
                ChangeRef::Remove | ChangeRef::Moved(_) => {
                    Some(accounts::clear_by(self.time, self.time))
                }
            };
            self.accounts.remove(old, clear_by);
        }
        match change {
            ChangeRef::Put { place, .. } | ChangeRef::Moved(place) => self.accounts.add(place),
            ChangeRef::Remove => {}
        }
    }

    fn is_counted(&self, place: Place) -> bool {
        self.from.is_some_and(|from| {
            let is_before = place.segment != from.segment || u64::from(place.offset) < from.offset;
            is_before && self.marked.contains(place.segment)
        })
    }
}

/// Returns the time at which a record ends, if it can be read.
fn end_of(kept: &[u8]) -> Option<Timestamp> {
    let record = unstuff(kept).ok()?;
    codec::decode(&record).ok().map(|operation| operation.state.changes_at())
}
