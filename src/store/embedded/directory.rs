//! The directory of an embedded store. One process at a time uses it, and a file in it names its
//! format.
//!
//! ```text
//! lock              locked by the process that has the store open
//! format            names this program, and the format of the files beside it
//! records/          the database, with a list of what it must contain, see `contents`
//! reindex           made while rows may be missing, see `loss`
//! records.damaged/  a database that was incomplete, kept when the loss was accepted
//! N.jnl.damaged     a journal as it was before its damage was accepted
//! ```
//!
//! If something is kept a second time, its name ends in `.damaged.2`, and so on. Nothing is
//! overwritten.
//!
//! `records/` is made under another name, and renamed when it is complete. So a crash in between
//! leaves nothing that could be taken for a store.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use super::contents::Contents;
use super::database;
use super::filesystem::{keep_aside, replace_file, sync_directory};
use super::loss;
use super::open_error::OpenError;
use super::settings::IfDamaged;
use super::synced::SyncedNote;

/// The whole content of `format`.
const FORMAT: &str = "onceward embedded store, format 1\n";

/// The files that a crash may leave in a directory before its first store is complete.
const UNFINISHED: [&str; 3] = ["lock", "format.new", "records.new"];

/// The directory of a store. No other process uses it while this value lives.
#[derive(Debug)]
pub(super) struct Directory {
    path: PathBuf,
    lock: File,
}

impl Drop for Directory {
    /// Unlocks the directory. It is not enough to close the file: a child process that was just
    /// forked has a copy of the open file until it executes its program, and that copy keeps the
    /// lock (`flock(2)` in the Linux manual).
    fn drop(&mut self) {
        if let Err(error) = self.lock.unlock() {
            tracing::warn!(%error, "the store stays locked until this process ends");
        }
    }
}

impl Directory {
    /// Locks the directory. If it does not exist, makes it with an empty database in it.
    pub(super) fn take(path: &Path, if_damaged: IfDamaged) -> Result<Self, OpenError> {
        let io = |source| OpenError::Io { path: path.to_owned(), source };
        fs::create_dir_all(path).map_err(io)?;
        if !path.join("format").try_exists().map_err(io)? && !is_unfinished(path).map_err(io)? {
            // These files belong to somebody else. A mistyped path must not fill another program's
            // directory.
            return Err(OpenError::NotOurs { path: path.to_owned() });
        }
        // The operating system releases the lock when the process ends, however it ends.
        let lock = File::create(path.join("lock")).map_err(io)?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(OpenError::InUse { path: path.to_owned() });
            }
            Err(TryLockError::Error(source)) => return Err(io(source)),
        }
        let taken = Self { path: path.to_owned(), lock };
        taken.check_format()?;
        if taken.damaged().try_exists().map_err(io)? {
            match if_damaged {
                IfDamaged::Refuse => return Err(OpenError::Damaged { path: path.to_owned() }),
                IfDamaged::Accept => {
                    loss::note(path).map_err(io)?;
                    fs::remove_file(taken.damaged()).map_err(io)?;
                }
            }
            tracing::error!(
                store = %path.display(),
                "operations were lost with a damaged journal; they may run again"
            );
        }
        if !taken.records().try_exists().map_err(io)? {
            if !path.join("format").try_exists().map_err(io)? {
                taken.make_records()?;
            } else if Contents::exists(&taken.unfinished()).map_err(io)? {
                // A crash came after the records were complete and before they got their name.
                taken.publish_records().map_err(io)?;
            } else if if_damaged == IfDamaged::Accept {
                taken.begin_anew(&taken.records())?;
            } else {
                return Err(OpenError::RecordsGone { path: path.to_owned() });
            }
        } else if taken.unfinished().try_exists().map_err(io)? {
            // These records were made to replace damaged ones, but were not needed. If they stayed
            // and the store lost its records later, they would be taken for the store.
            fs::remove_dir_all(taken.unfinished()).map_err(io)?;
        }
        Ok(taken)
    }

    /// Returns the list of what the database must contain, if there is one. A database that lacks a
    /// part is an error, or is kept aside and replaced. If it were opened, it would delete the
    /// files that it can no longer assign to a table.
    pub(super) fn contents(&self, if_damaged: IfDamaged) -> Result<Option<Contents>, OpenError> {
        let io = |source| OpenError::Io { path: self.path.clone(), source };
        let records = self.records();
        let contents = match Contents::read(&records) {
            Err(error)
                if error.kind() == io::ErrorKind::InvalidData
                    && if_damaged == IfDamaged::Accept =>
            {
                tracing::error!(%error, "the list of the store's contents is damaged and ignored");
                None
            }
            read => read.map_err(io)?,
        };
        let Some(missing) = Contents::missing(contents.as_ref(), &records).map_err(io)? else {
            return Ok(contents);
        };
        if if_damaged == IfDamaged::Refuse {
            return Err(OpenError::Missing { store: self.path.clone(), missing });
        }
        self.begin_anew(&missing)?;
        Contents::read(&self.records()).map_err(io)
    }

    /// Replaces the database by an empty one. An existing database is kept aside.
    fn begin_anew(&self, missing: &Path) -> Result<(), OpenError> {
        let io = |source| OpenError::Io { path: self.path.clone(), source };
        self.make_unfinished()?;
        if self.records().try_exists().map_err(io)? {
            let aside = keep_aside(&self.records()).map_err(io)?;
            fs::rename(self.records(), &aside).map_err(io)?;
            tracing::warn!(records = %aside.display(), "the damaged records are kept as they were");
        }
        self.publish_records().map_err(io)?;
        tracing::error!(
            store = %self.path.display(),
            missing = %missing.display(),
            "all records are lost with what is missing; all their operations may run again"
        );
        Ok(())
    }

    /// Returns the folder of the database.
    pub(super) fn records(&self) -> PathBuf {
        self.path.join("records")
    }

    /// Returns the folder of a database that is not complete yet.
    fn unfinished(&self) -> PathBuf {
        self.path.join("records.new")
    }

    /// Returns the path of the file that says that records were lost. The store does not open while
    /// this file exists.
    fn damaged(&self) -> PathBuf {
        self.path.join("damaged")
    }

    /// Notes durably that a journal has lost complete writes. The database has cut them off, so
    /// without this note the next start would find nothing wrong.
    pub(super) fn mark_damaged(&self, journal: &Path) -> OpenError {
        let path = self.path.clone();
        let says = format!("`{}` was damaged and has lost complete writes\n", journal.display());
        match fs::write(self.damaged(), says).and_then(|()| sync_directory(&self.path)) {
            Ok(()) => OpenError::Damaged { path },
            Err(source) => OpenError::Io { path, source },
        }
    }

    fn check_format(&self) -> Result<(), OpenError> {
        match fs::read(self.path.join("format")) {
            Ok(found) if found == FORMAT.as_bytes() => Ok(()),
            Ok(found) => {
                let first = found.get(..found.len().min(80)).unwrap_or_default();
                let found = String::from_utf8_lossy(first).into_owned();
                Err(OpenError::OtherFormat { path: self.path.clone(), found })
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(source) => Err(OpenError::Io { path: self.path.clone(), source }),
        }
    }

    /// Makes an empty database. A crash leaves either the whole database or none.
    fn make_records(&self) -> Result<(), OpenError> {
        let io = |source| OpenError::Io { path: self.path.clone(), source };
        self.make_unfinished()?;
        // Without the file `format`, the records would be taken for the files of another program.
        replace_file(&self.path.join("format"), [FORMAT.as_bytes()]).map_err(io)?;
        self.publish_records().map_err(io)?;
        // The directory itself may be new, so its name must be synced. If this process may not read
        // the parent, the directory was there before, and its name is durable already.
        let _best_effort = self.path.parent().map(sync_directory);
        Ok(())
    }

    /// Makes an empty database under its temporary name.
    fn make_unfinished(&self) -> Result<(), OpenError> {
        let io = |source| OpenError::Io { path: self.path.clone(), source };
        let unfinished = self.unfinished();
        if unfinished.try_exists().map_err(io)? {
            fs::remove_dir_all(&unfinished).map_err(io)?;
        }
        database::create(&unfinished).map_err(|source| OpenError::database(&self.path, source))?;
        SyncedNote::begin(&unfinished, 0).map_err(io)?;
        let contents = Contents::of(&unfinished, &BTreeMap::new());
        contents.and_then(|contents| contents.write(&unfinished)).map_err(io)
    }

    fn publish_records(&self) -> io::Result<()> {
        fs::rename(self.unfinished(), self.records())?;
        sync_directory(&self.path)
    }
}

/// Whether a directory holds only what an interrupted first start may have left.
fn is_unfinished(path: &Path) -> io::Result<bool> {
    for entry in fs::read_dir(path)? {
        let name = entry?.file_name();
        if !UNFINISHED.iter().any(|left| name == OsStr::new(left)) {
            return Ok(false);
        }
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A child process that was just forked has a copy of the open file, as this test has.
    #[test]
    fn a_directory_is_free_though_a_copy_of_its_lock_is_open() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("store");
        let taken = Directory::take(&path, IfDamaged::Refuse).unwrap();
        let copy = taken.lock.try_clone().unwrap();
        let refused = Directory::take(&path, IfDamaged::Refuse);
        assert!(matches!(refused, Err(OpenError::InUse { .. })), "{refused:?}");
        drop(taken);
        Directory::take(&path, IfDamaged::Refuse).unwrap();
        drop(copy);
    }
}
