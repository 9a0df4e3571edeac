//! Why a store cannot be opened.

use std::error::Error;
use std::io;
use std::path::{Path, PathBuf};

/// Why a store cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Another process has the store open.
    #[error("another process is using the store in `{}`", path.display())]
    InUse {
        /// The store's directory.
        path: PathBuf,
    },
    /// The directory holds files that do not belong to a store.
    #[error("`{}` is not empty and is not a store of onceward", path.display())]
    NotOurs {
        /// The directory.
        path: PathBuf,
    },
    /// A newer version of this program wrote the store.
    #[error("the store in `{}` has a format that this version does not know: {found:?}", path.display())]
    OtherFormat {
        /// The store's directory.
        path: PathBuf,
        /// The beginning of its file `format`.
        found: String,
    },
    /// Files of several formats are in the directory, as no crash leaves them.
    #[error("the store in `{}` is a mixture of formats: `{}` does not belong beside the other files; nothing was changed; move away what is not part of the store that you want to keep", path.display(), foreign.display())]
    Mixed {
        /// The store's directory.
        path: PathBuf,
        /// The file or folder that does not belong there.
        foreign: PathBuf,
    },
    /// The directory belongs to a store, but the store's records are gone.
    #[error("the records of the store in `{}` are gone; restore them (what was recorded after the copy may run again), or, to begin with an empty store (all may), remove the directory or start once with `--accept-damaged-store`", path.display())]
    RecordsGone {
        /// The store's directory.
        path: PathBuf,
    },
    /// A file or folder of the database is missing.
    #[error(
        "`{}` is missing: operations that were recorded may be forwarded again; put it back as it was in `{}`, or start once with `--accept-damaged-store` to go on without it; an older copy of the store lacks all that was recorded after it",
        missing.display(), store.display()
    )]
    Missing {
        /// The store's directory.
        store: PathBuf,
        /// The file or folder.
        missing: PathBuf,
    },
    /// Records that had been acknowledged were lost with a damaged journal.
    #[error(
        "a journal of the store in `{}` was damaged, and operations are lost: copies of them would be forwarded again; start once with `--accept-damaged-store` to go on without them; an older copy of the store lacks all that was recorded after it",
        path.display()
    )]
    Damaged {
        /// The store's directory.
        path: PathBuf,
    },
    /// The bytes of a journal have changed since they were written, or some are missing.
    #[error(
        "the journal `{}` is damaged at byte {offset}: operations that were recorded there would be forwarded again; put the journal back as it was in `{}`, or start once with `--accept-damaged-store` to go on without what is damaged; an older copy of the store lacks all that was recorded after it",
        journal.display(), store.display()
    )]
    DamagedJournal {
        /// The store's directory.
        store: PathBuf,
        /// The damaged file.
        journal: PathBuf,
        /// The byte at which the damaged group begins.
        offset: u64,
    },
    /// A file or directory cannot be read or written.
    #[error("the store in `{}` cannot be opened", path.display())]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// The error of the file system.
        source: io::Error,
    },
    /// The database cannot be opened.
    #[error("the database of the store in `{}` cannot be opened", path.display())]
    Database {
        /// The store's directory.
        path: PathBuf,
        /// The database's error.
        source: Box<dyn Error + Send + Sync>,
    },
}

impl OpenError {
    pub(super) fn database(path: &Path, source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self::Database { path: path.to_owned(), source: source.into() }
    }
}
