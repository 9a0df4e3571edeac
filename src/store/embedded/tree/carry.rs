//! Carries the records of format 1 over to the present format, at the first start on them.
//!
//! The records are written to a new store in the order of their ids, as if they were claimed now.
//! If the carrying is interrupted, the next start goes on behind the last id that the new store has.
//! It begins again if an older version of the program has changed the records meanwhile. Format 1
//! notes something of every group, its label, and the new store has the label under which it was
//! begun.
//!
//! The old records stay as they are until the new store is complete and durable.

use std::fs;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use super::{OldRecord, OldRecords};
use crate::clock::{Clock, Moment};
use crate::operation::{OperationId, Timestamp};
use crate::store::embedded::batch::Batch;
use crate::store::embedded::directory::Directory;
use crate::store::embedded::filesystem::replace_file;
use crate::store::embedded::open_error::OpenError;
use crate::store::embedded::settings::{Durability, IfDamaged};
use crate::store::embedded::tables::{self, Options, Tables};
use crate::telemetry::chain;

/// The most records that are written in one group, and about the most bytes.
const RECORDS_MAX: usize = 1024;
const BYTES_MAX: usize = 1 << 20;

/// A line of the log tells about the progress after this time, and after this part of the records.
const TELL_EVERY: Duration = Duration::from_secs(5);
const TELL_PARTS: usize = 20;

/// Carries all records over, and makes the new store the store of the directory.
pub(in super::super) fn carry_over(
    older: &OldRecords,
    directory: &Arc<Directory>,
    options: Options,
    clock: &Clock,
) -> Result<(), OpenError> {
    let mut carrying = Carrying::begin(older, directory, options, clock)?;
    while carrying.step()? {}
    carrying.close()?;
    let removed = fs::remove_file(label_path(directory));
    removed.map_err(|source| OpenError::Io { path: directory.path().to_owned(), source })?;
    directory.publish()
}

/// Records that are being carried over.
pub(super) struct Carrying<'a> {
    older: &'a OldRecords,
    directory: &'a Directory,
    tables: Tables,
    kept_time: Timestamp,
    /// The last record that is carried over.
    last: Option<OperationId>,
    progress: Progress<'a>,
}

/// How far the carrying has come.
pub(super) struct Progress<'a> {
    clock: &'a Clock,
    /// About how many records there are.
    total: usize,
    carried: usize,
    unreadable: usize,
    /// How many were carried over when that was told last, and when that was.
    told: usize,
    told_at: Moment,
}

impl<'a> Carrying<'a> {
    /// Opens or makes the new store.
    pub(super) fn begin(
        older: &'a OldRecords,
        directory: &'a Arc<Directory>,
        options: Options,
        clock: &'a Clock,
    ) -> Result<Self, OpenError> {
        let label = older.label()?;
        let kept_time = older.kept_time()?;
        // An interrupted carrying goes on, so not every group must be synced.
        let options = options.with(Durability::Os, IfDamaged::Refuse);
        let tables = if let Some(tables) = unfinished(directory, &label, options)? {
            tables
        } else {
            directory.clear_new()?;
            tables::create(&directory.new_folders())?;
            note_label(directory, &label)?;
            Tables::open(Arc::clone(directory), directory.new_folders(), options)?
        };
        let failed = |error| OpenError::database(directory.path(), error);
        let last = tables.last_id().map_err(failed)?;
        let progress = Progress::begin(clock, older.approximate_count());
        let behind = last.map(tracing::field::display);
        tracing::info!(
            records = progress.total,
            behind,
            "the store has format 1; its records are carried over to format 2, which no older \
             version of this program reads"
        );
        Ok(Self { older, directory, tables, kept_time, last, progress })
    }

    /// Carries the next records over. Returns false if there are no more.
    pub(super) fn step(&mut self) -> Result<bool, OpenError> {
        let Self { older, directory, tables, kept_time, last, progress } = self;
        let mut batch = Batch::new(tables);
        let mut records = 0;
        let mut bytes = 0;
        for record in older.records_after(*last) {
            let OldRecord { id, kept, operation } = record?;
            let carried = operation.and_then(|operation| batch.write(id, None, Some(&operation)));
            if let Err(corrupt) = carried {
                tracing::error!(operation.id = %id, error = %chain(&corrupt), "a record is kept");
                batch.keep(id, &kept, older.unsettled(id)?);
                progress.unreadable += 1;
            }
            *last = Some(id);
            records += 1;
            bytes += kept.len();
            if records == RECORDS_MAX || bytes >= BYTES_MAX {
                break;
            }
        }
        // The time is carried over even if there are no records.
        let committed = batch.commit(tables, *kept_time);
        committed.map_err(|error| OpenError::database(directory.path(), error))?;
        tables.catch_up(*kept_time);
        progress.note(records);
        Ok(records > 0)
    }

    /// How many records this start has carried over.
    #[cfg(test)]
    pub(super) const fn carried(&self) -> usize {
        self.progress.carried
    }

    /// Makes the new store durable and closes it. Then all is carried over.
    pub(super) fn close(self) -> Result<(), OpenError> {
        let Self { directory, tables, progress, .. } = self;
        let path = directory.path();
        tables.close().map_err(|source| OpenError::Io { path: path.to_owned(), source })?;
        let Progress { carried, unreadable, .. } = progress;
        tracing::info!(
            carried,
            unreadable,
            "all records of the store are carried over to format 2"
        );
        Ok(())
    }
}

/// Returns the new store of an interrupted carrying, if it goes on with the same records.
fn unfinished(
    directory: &Arc<Directory>,
    label: &[u8],
    options: Options,
) -> Result<Option<Tables>, OpenError> {
    match fs::read(label_path(directory)) {
        Ok(begun) if begun == label => {}
        Ok(_) => return Ok(None),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(source) => return Err(OpenError::Io { path: directory.path().to_owned(), source }),
    }
    match Tables::open(Arc::clone(directory), directory.new_folders(), options) {
        Ok(tables) => Ok(Some(tables)),
        Err(error) => {
            let error = chain(&error);
            tracing::info!(%error, "what was carried over cannot be opened and is made again");
            Ok(None)
        }
    }
}

/// The file that has the label of the old records. It is in the new folder, so that it goes with it.
fn label_path(directory: &Directory) -> PathBuf {
    directory.new_folders().log.join("carried-from")
}

fn note_label(directory: &Directory, label: &[u8]) -> Result<(), OpenError> {
    let noted = replace_file(&label_path(directory), [label]);
    noted.map_err(|source| OpenError::Io { path: directory.path().to_owned(), source })
}

impl<'a> Progress<'a> {
    pub(super) fn begin(clock: &'a Clock, total: usize) -> Self {
        Self { clock, total, carried: 0, unreadable: 0, told: 0, told_at: clock.moment() }
    }

    /// Notes that records were carried over, and tells of it from time to time. Returns whether it
    /// was told now.
    pub(super) fn note(&mut self, records: usize) -> bool {
        let Self { clock, total: of_about, carried, told, told_at, .. } = self;
        *carried += records;
        let now = clock.moment();
        let is_part = (*carried - *told).saturating_mul(TELL_PARTS) >= *of_about;
        let is_due = records > 0 && (is_part || told_at.until(now) >= TELL_EVERY);
        if is_due {
            tracing::info!(carried, of_about, "records are carried over");
            *told = *carried;
            *told_at = now;
        }
        is_due
    }
}
