//! The directory of an embedded store. One process at a time uses it, and a file in it names its
//! format.
//!
//! ```text
//! lock              locked by the process that has the store open
//! format            names this program, and the format of the files beside it
//! log/              the segments, how far they were synced, and the mark, see `log` and `tables`
//! rows/             the database
//! reindex           made while rows may be missing, see `loss`
//! log.damaged/, rows.damaged/, N.log.damaged
//!                   what was damaged or incomplete, kept when the loss was accepted
//! ```
//!
//! If something is kept a second time, its name ends in `.damaged.2`, and so on. Nothing is
//! overwritten.
//!
//! `log/` and `rows/` are made under other names, and renamed when they are complete. So a crash in
//! between leaves nothing that could be taken for a store.

use std::ffi::OsStr;
use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use super::damage::OnDamage;
use super::filesystem::{keep_aside, replace_file, sync_directory};
use super::loss;
use super::open_error::OpenError;
use super::settings::{Durability, IfDamaged};
use super::tables::Opening;

/// The whole content of `format`.
const FORMAT: &str = "onceward embedded store, format 2\n";

/// The files that a crash may leave in a directory before its first store is complete.
const UNFINISHED: [&str; 4] = ["lock", "format.new", "log.new", "rows.new"];

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
    /// Locks the directory. If it does not exist, makes it with an empty store in it.
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
        if !taken.log().try_exists().map_err(io)? {
            if !path.join("format").try_exists().map_err(io)? {
                taken.make()?;
            } else if taken.part("log.new").try_exists().map_err(io)? {
                // A crash came after the parts were complete and before they got their names.
                taken.publish().map_err(io)?;
            } else if if_damaged == IfDamaged::Accept {
                taken.begin_anew()?;
            } else {
                return Err(OpenError::RecordsGone { path: path.to_owned() });
            }
        }
        Ok(taken)
    }

    /// Says how to open the tables.
    pub(super) fn opening(&self, durability: Durability, if_damaged: IfDamaged) -> Opening<'_> {
        let damage = OnDamage { store: &self.path, if_damaged };
        Opening { log: self.log(), rows: self.part("rows"), durability, damage }
    }

    fn log(&self) -> PathBuf {
        self.part("log")
    }

    fn part(&self, name: &str) -> PathBuf {
        self.path.join(name)
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

    /// Makes an empty store. A crash leaves either the whole store or none.
    fn make(&self) -> Result<(), OpenError> {
        let io = |source| OpenError::Io { path: self.path.clone(), source };
        self.make_unfinished().map_err(io)?;
        // Without the file `format`, the parts would be taken for the files of another program.
        replace_file(&self.path.join("format"), [FORMAT.as_bytes()]).map_err(io)?;
        self.publish().map_err(io)?;
        // The directory itself may be new, so its name must be synced. If this process may not read
        // the parent, the directory was there before, and its name is durable already.
        let _best_effort = self.path.parent().map(sync_directory);
        Ok(())
    }

    /// Makes an empty log and an empty database under their temporary names.
    fn make_unfinished(&self) -> io::Result<()> {
        for name in ["log.new", "rows.new"] {
            let part = self.part(name);
            if part.try_exists()? {
                fs::remove_dir_all(&part)?;
            }
        }
        Opening::create(&self.part("log.new"), &self.part("rows.new"))?;
        sync_directory(&self.path)
    }

    /// Gives the parts their names. The log is the last one, so it is there only with a database.
    fn publish(&self) -> io::Result<()> {
        if self.part("rows.new").try_exists()? {
            fs::rename(self.part("rows.new"), self.part("rows"))?;
            sync_directory(&self.path)?;
        }
        fs::rename(self.part("log.new"), self.log())?;
        sync_directory(&self.path)
    }

    /// Replaces a store whose log is gone by an empty one. What is left is kept aside.
    fn begin_anew(&self) -> Result<(), OpenError> {
        let io = |source| OpenError::Io { path: self.path.clone(), source };
        loss::note(&self.path).map_err(io)?;
        self.make_unfinished().map_err(io)?;
        let rows = self.part("rows");
        if rows.try_exists().map_err(io)? {
            let aside = keep_aside(&rows).map_err(io)?;
            fs::rename(&rows, &aside).map_err(io)?;
            tracing::warn!(rows = %aside.display(), "the database is kept as it was");
        }
        self.publish().map_err(io)?;
        tracing::error!(
            store = %self.path.display(),
            missing = %self.log().display(),
            "all records are lost with what is missing; all their operations may run again"
        );
        Ok(())
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
