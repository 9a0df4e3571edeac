//! The directory of an embedded store: whose it is, and in which format.
//!
//! ```text
//! lock              held by the process that has the store open
//! format            names us, and the format of what is beside it
//! records/          the database, and in it what it must contain, see `contents`
//! records.damaged/  one that was incomplete, put aside when that was accepted
//! N.jnl.damaged     a journal as it was, put aside when its damage was accepted
//! ```
//!
//! What is put aside a second time is called `.damaged.2`, and so on: nothing is overwritten.
//!
//!
//! `records/` gets its name when it is complete, so that a crash while it is made leaves nothing
//! that could be taken for a store.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::{self, File, TryLockError};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use super::contents::Contents;
use super::synced::Synced;
use super::{IfDamaged, tables};

/// The whole content of `format`.
const FORMAT: &str = "onceward embedded store, format 1\n";

/// What a crash may leave of a directory in which no store was complete.
const UNFINISHED: [&str; 3] = ["lock", "format.new", "records.new"];

/// The store cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Another process has it open.
    #[error("another process is using the store in `{}`", path.display())]
    InUse {
        /// The store's directory.
        path: PathBuf,
    },
    /// There are files, and no store.
    #[error("`{}` is not empty and is not a store of onceward", path.display())]
    NotOurs {
        /// The directory.
        path: PathBuf,
    },
    /// A version wrote it that this one does not know.
    #[error("the store in `{}` has a format that this version does not know: {found:?}", path.display())]
    OtherFormat {
        /// The store's directory.
        path: PathBuf,
        /// What stands in its file `format`.
        found: String,
    },
    /// A store was here, and its records are not.
    #[error("the records of the store in `{}` are gone; restore them, or, to begin with an empty one, remove the directory or start once with `--accept-damaged-store`", path.display())]
    RecordsGone {
        /// The store's directory.
        path: PathBuf,
    },
    /// A file or folder of the database is not there.
    #[error(
        "`{}` is missing: operations that were recorded may be forwarded again; restore the store in `{}`, or start once with `--accept-damaged-store` to go on without it",
        missing.display(), store.display()
    )]
    Missing {
        /// The store's directory.
        store: PathBuf,
        /// The file or folder.
        missing: PathBuf,
    },
    /// Records were cut off that had been acknowledged.
    #[error(
        "a journal of the store in `{}` was damaged, and operations are lost: copies of them would be forwarded again; restore the store, or start once with `--accept-damaged-store` to go on without them",
        path.display()
    )]
    Damaged {
        /// The store's directory.
        path: PathBuf,
    },
    /// The bytes of a journal are not those that were written.
    #[error(
        "the journal `{}` is damaged at byte {offset}: operations that were recorded there would be forwarded again; restore the store in `{}`, or start once with `--accept-damaged-store` to go on without what is damaged",
        journal.display(), store.display()
    )]
    DamagedJournal {
        /// The store's directory.
        store: PathBuf,
        /// The file.
        journal: PathBuf,
        /// Where in the file the damaged group begins.
        offset: u64,
    },
    /// A file or directory cannot be used.
    #[error("the store in `{}` cannot be opened", path.display())]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The database fails.
    #[error("the database of the store in `{}` cannot be opened", path.display())]
    Database {
        /// The store's directory.
        path: PathBuf,
        /// Why.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

/// A store's directory that this process alone uses, for as long as this value lives.
#[derive(Debug)]
pub(super) struct Directory {
    path: PathBuf,
    _lock: File,
}

impl Directory {
    /// Takes the directory; makes it, and an empty database in it, where there is none.
    pub(super) fn take(path: &Path, if_damaged: IfDamaged) -> Result<Self, OpenError> {
        let io = |source| OpenError::Io { path: path.to_owned(), source };
        fs::create_dir_all(path).map_err(io)?;
        if !path.join("format").try_exists().map_err(io)? && !is_unfinished(path).map_err(io)? {
            return Err(OpenError::NotOurs { path: path.to_owned() });
        }
        let lock = File::create(path.join("lock")).map_err(io)?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(OpenError::InUse { path: path.to_owned() });
            }
            Err(TryLockError::Error(source)) => return Err(io(source)),
        }
        let taken = Self { path: path.to_owned(), _lock: lock };
        taken.check_format()?;
        if taken.damaged().try_exists().map_err(io)? {
            match if_damaged {
                IfDamaged::Refuse => return Err(OpenError::Damaged { path: path.to_owned() }),
                IfDamaged::Accept => fs::remove_file(taken.damaged()).map_err(io)?,
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
                // They are complete.
                taken.publish_records().map_err(io)?;
            } else if if_damaged == IfDamaged::Accept {
                taken.begin_anew(&taken.records())?;
            } else {
                return Err(OpenError::RecordsGone { path: path.to_owned() });
            }
        } else if taken.unfinished().try_exists().map_err(io)? {
            // Made to take the place of damaged records, and then not needed. Left there, they
            // would be taken for the store should its records ever be lost.
            fs::remove_dir_all(taken.unfinished()).map_err(io)?;
        }
        Ok(taken)
    }

    /// What the database must contain, as far as it says. One that lacks a table is an error, or is
    /// put aside: the database would delete what it could not make sense of any more.
    pub(super) fn contents(&self, if_damaged: IfDamaged) -> Result<Option<Contents>, OpenError> {
        let io = |source| OpenError::Io { path: self.path.clone(), source };
        let records = self.records();
        let contents = match Contents::read(&records) {
            Err(error)
                if error.kind() == io::ErrorKind::InvalidData
                    && if_damaged == IfDamaged::Accept =>
            {
                tracing::error!(%error, "the list of what the store contains is left out");
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

    /// Puts the database aside, if there is one, and an empty one in its place.
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

    /// Where the database is.
    pub(super) fn records(&self) -> PathBuf {
        self.path.join("records")
    }

    /// Where a database is until it is complete.
    fn unfinished(&self) -> PathBuf {
        self.path.join("records.new")
    }

    /// The file that says that records were lost: nothing is opened while it is there.
    fn damaged(&self) -> PathBuf {
        self.path.join("damaged")
    }

    /// Says, for good, that a journal has lost complete writes.
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

    /// An empty database, all of it or nothing.
    fn make_records(&self) -> Result<(), OpenError> {
        let io = |source| OpenError::Io { path: self.path.clone(), source };
        self.make_unfinished()?;
        self.write_format().map_err(io)?;
        self.publish_records().map_err(io)?;
        // the directory's own entry may be new as well; a parent that we may not read, or that was
        // there before, is not ours to sync
        let _best_effort = self.path.parent().map(sync_directory);
        Ok(())
    }

    /// An empty database that does not have its name yet.
    fn make_unfinished(&self) -> Result<(), OpenError> {
        let io = |source| OpenError::Io { path: self.path.clone(), source };
        let unfinished = self.unfinished();
        if unfinished.try_exists().map_err(io)? {
            fs::remove_dir_all(&unfinished).map_err(io)?;
        }
        tables::create(&unfinished).map_err(|source| OpenError::Database {
            path: self.path.clone(),
            source: Box::new(source),
        })?;
        Synced::begin(&unfinished, 0).map_err(io)?;
        let contents = Contents::of(&unfinished, &BTreeMap::new());
        contents.and_then(|contents| contents.write(&unfinished)).map_err(io)
    }

    fn publish_records(&self) -> io::Result<()> {
        fs::rename(self.unfinished(), self.records())?;
        sync_directory(&self.path)
    }

    fn write_format(&self) -> io::Result<()> {
        let unfinished = self.path.join("format.new");
        let mut file = File::create(&unfinished)?;
        file.write_all(FORMAT.as_bytes())?;
        file.sync_all()?;
        fs::rename(&unfinished, self.path.join("format"))?;
        // records without a format would be somebody else's
        sync_directory(&self.path)
    }
}

/// Whether there is nothing in it but what an interrupted start may have left.
fn is_unfinished(path: &Path) -> io::Result<bool> {
    for entry in fs::read_dir(path)? {
        let name = entry?.file_name();
        if !UNFINISHED.iter().any(|left| name == OsStr::new(left)) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// A name under which something damaged can be kept: nothing has it yet.
pub(super) fn keep_aside(path: &Path) -> io::Result<PathBuf> {
    let mut name = path.as_os_str().to_owned();
    name.push(".damaged");
    let mut free = PathBuf::from(&name);
    let mut number = 2_u32;
    while free.try_exists()? {
        let mut numbered = name.clone();
        numbered.push(format!(".{number}"));
        free = numbered.into();
        number = number.saturating_add(1);
    }
    Ok(free)
}

#[cfg(unix)]
pub(super) fn sync_directory(path: &Path) -> io::Result<()> {
    // the parent of a lone name is the current directory
    let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
    File::open(path)?.sync_all()
}

/// Elsewhere directories cannot be synced.
#[cfg(not(unix))]
pub(super) fn sync_directory(_path: &Path) -> io::Result<()> {
    Ok(())
}
