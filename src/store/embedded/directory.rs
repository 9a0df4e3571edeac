//! The directory of an embedded store. One process at a time uses it, and a file in it names its
//! format.
//!
//! ```text
//! lock              locked by the process that has the store open
//! format            names this program, and the format of the files beside it
//! log/              the log, see `log`, and its mark, see `tables::mark`
//! rows/             the database, see `tables::database`
//! reindex           made while rows may be missing, see `loss`
//! N.log.damaged     a segment of the log as it was before its damage was accepted
//! rows.damaged/     a folder that lacked a part, kept when the loss was accepted
//! log.new/          folders that are being made, or are complete and about to get their names
//! rows.new/
//! records/          the records of format 1, see `tree`
//! records.format-1/ the same, when they were carried over and are about to be deleted
//! ```
//!
//! If something is kept a second time, its name ends in `.damaged.2`, and so on. Nothing is
//! overwritten.
//!
//! A store is made in `log.new/` and `rows.new/`. Once all of it is durable, the file `format` is
//! replaced. From then on it is the store, and the folders get their names. So a crash leaves what
//! was there before, or a store whose folders get their names at the next start.

use std::ffi::OsStr;
use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use super::filesystem::{keep_aside, replace_file, sync_directory};
use super::open_error::OpenError;

/// The whole content of `format`.
const FORMAT: &str = "onceward embedded store, format 2\n";

/// The content of `format` while an empty store is made in place of a lost one.
const BEGUN_ANEW: &str = "onceward embedded store, format 2, begun anew\n";

/// The content of `format` in the format before.
pub(super) const OLDER: &str = "onceward embedded store, format 1\n";

/// The files that a crash may leave in a directory before its first store is complete. Format 1 has
/// left the last one.
const UNFINISHED: [&str; 5] = ["lock", "format.new", NEW_LOG, NEW_ROWS, UNFINISHED_RECORDS];

const RECORDS: &str = "records";
const UNFINISHED_RECORDS: &str = "records.new";
const CARRIED_RECORDS: &str = "records.format-1";
const LOG: &str = "log";
const NEW_LOG: &str = "log.new";
const ROWS: &str = "rows";
const NEW_ROWS: &str = "rows.new";

/// The directory of a store. No other process uses it while this value lives.
#[derive(Debug)]
pub(super) struct Directory {
    path: PathBuf,
    lock: File,
}

/// The folders of the tables.
#[derive(Debug, Clone)]
pub(super) struct Folders {
    /// The segments of the log, the note about them, and the mark.
    pub(super) log: PathBuf,
    /// The database.
    pub(super) rows: PathBuf,
}

/// What a directory holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    /// No store, or one that is to be made anew.
    Empty,
    /// A store of format 1.
    Older,
    /// A store of the present format.
    Present,
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
    /// Locks the directory, and makes it if it does not exist.
    pub(super) fn take(path: &Path) -> Result<Self, OpenError> {
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
            Ok(()) => Ok(Self { path: path.to_owned(), lock }),
            Err(TryLockError::WouldBlock) => Err(OpenError::InUse { path: path.to_owned() }),
            Err(TryLockError::Error(source)) => Err(io(source)),
        }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the folders of the store.
    pub(super) fn folders(&self) -> Folders {
        Folders { log: self.path.join(LOG), rows: self.path.join(ROWS) }
    }

    /// Returns the folders in which a store is made.
    pub(super) fn new_folders(&self) -> Folders {
        Folders { log: self.path.join(NEW_LOG), rows: self.path.join(NEW_ROWS) }
    }

    /// Returns what the directory holds. If a crash came before the folders of a complete store had
    /// their names, they get them. A mixture of formats that no crash leaves is an error.
    pub(super) fn stage(&self) -> Result<Stage, OpenError> {
        let format = match fs::read(self.path.join("format")) {
            Ok(format) => format,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Stage::Empty),
            Err(error) => return Err(self.io(error)),
        };
        let found = self.found()?;
        match str::from_utf8(&format) {
            Ok(FORMAT) => {
                // A program of format 1 leaves its folders, and a mistaken copy any of them.
                let mut foreign = vec![UNFINISHED_RECORDS];
                if found.contains(&NEW_LOG) {
                    foreign.push(LOG);
                    foreign.extend(found.contains(&RECORDS).then_some(CARRIED_RECORDS));
                    foreign.extend(found.contains(&NEW_ROWS).then_some(ROWS));
                } else {
                    foreign.push(RECORDS);
                }
                self.none_of(&foreign, &found)?;
                self.name_folders().map_err(|error| self.io(error))?;
                Ok(Stage::Present)
            }
            Ok(OLDER) => {
                self.none_of(&[LOG, ROWS, CARRIED_RECORDS], &found)?;
                Ok(Stage::Older)
            }
            Ok(BEGUN_ANEW) => Ok(Stage::Empty),
            Ok(_) | Err(_) => {
                let first = format.get(..format.len().min(80)).unwrap_or_default();
                let found = String::from_utf8_lossy(first).into_owned();
                Err(OpenError::OtherFormat { path: self.path.clone(), found })
            }
        }
    }

    /// Returns which of the folders of both formats there are.
    fn found(&self) -> Result<Vec<&'static str>, OpenError> {
        let mut found = Vec::new();
        for name in [RECORDS, UNFINISHED_RECORDS, CARRIED_RECORDS, LOG, NEW_LOG, ROWS, NEW_ROWS] {
            if self.exists(name)? {
                found.push(name);
            }
        }
        Ok(found)
    }

    /// Refuses folders that cannot be there.
    fn none_of(&self, foreign: &[&str], found: &[&str]) -> Result<(), OpenError> {
        match found.iter().find(|name| foreign.contains(name)) {
            None => Ok(()),
            Some(name) => {
                Err(OpenError::Mixed { path: self.path.clone(), foreign: self.path.join(name) })
            }
        }
    }

    fn exists(&self, name: &str) -> Result<bool, OpenError> {
        self.path.join(name).try_exists().map_err(|error| self.io(error))
    }

    /// Makes the complete store in the new folders the store of this directory. Records of format 1
    /// are deleted.
    pub(super) fn publish(&self) -> Result<(), OpenError> {
        let publish = || {
            // Format 1 left it if it was not needed. With the present format it would be foreign.
            self.remove(UNFINISHED_RECORDS)?;
            replace_file(&self.path.join("format"), [FORMAT.as_bytes()])?;
            self.name_folders()
        };
        publish().map_err(|error| self.io(error))?;
        // The directory itself may be new, so its name must be synced. If this process may not read
        // the parent, the directory was there before, and its name is durable already.
        let _best_effort = self.path.parent().map(sync_directory);
        Ok(())
    }

    /// Gives the folders of a complete store their names. The last name is that of the log.
    fn name_folders(&self) -> io::Result<()> {
        let is_named = !self.path.join(NEW_LOG).try_exists()?;
        if is_named {
            self.remove(NEW_ROWS)?;
        } else {
            for (from, to) in [(RECORDS, CARRIED_RECORDS), (NEW_ROWS, ROWS), (NEW_LOG, LOG)] {
                if self.path.join(from).try_exists()? {
                    fs::rename(self.path.join(from), self.path.join(to))?;
                    // A loss of power must not undo a renaming but leave the next one.
                    sync_directory(&self.path)?;
                }
            }
        }
        if self.path.join(LOG).try_exists()? {
            self.remove(CARRIED_RECORDS)?;
        }
        Ok(())
    }

    /// Notes that an empty store is to be made in place of one that is lost.
    pub(super) fn begin_anew(&self) -> Result<(), OpenError> {
        replace_file(&self.path.join("format"), [BEGUN_ANEW.as_bytes()])
            .map_err(|error| self.io(error))
    }

    /// Removes the folders in which a store was being made.
    pub(super) fn clear_new(&self) -> Result<(), OpenError> {
        let mut names = [NEW_LOG, NEW_ROWS, UNFINISHED_RECORDS].into_iter();
        names.try_for_each(|name| self.remove(name)).map_err(|error| self.io(error))
    }

    /// Removes these folders too, and keeps aside what is left of a lost store.
    pub(super) fn clear(&self) -> Result<(), OpenError> {
        let keep = || {
            for name in [RECORDS, LOG, ROWS].map(|name| self.path.join(name)) {
                if name.try_exists()? {
                    let aside = keep_aside(&name)?;
                    fs::rename(&name, &aside)?;
                    let kept = aside.display();
                    tracing::warn!(%kept, "what is left of the lost records is kept as it was");
                }
            }
            Ok(())
        };
        keep().map_err(|error: io::Error| self.io(error))?;
        self.clear_new()
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        match fs::remove_dir_all(self.path.join(name)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            removed => removed,
        }
    }

    fn io(&self, source: io::Error) -> OpenError {
        OpenError::Io { path: self.path.clone(), source }
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
        let taken = Directory::take(&path).unwrap();
        let copy = taken.lock.try_clone().unwrap();
        let refused = Directory::take(&path);
        assert!(matches!(refused, Err(OpenError::InUse { .. })), "{refused:?}");
        drop(taken);
        Directory::take(&path).unwrap();
        drop(copy);
    }
}
