//! Makes a directory ready to be opened. A store that is not there is made, and one of format 1 is
//! carried over. A store that lacks a folder is refused, or goes on without it if that is accepted.

use std::fs;
use std::io;
use std::path::Path;
use std::sync::Arc;

use super::directory::{Directory, Folders, Stage};
use super::filesystem::{keep_aside, sync_directory};
use super::open_error::OpenError;
use super::settings::IfDamaged;
use super::tables::{self, Options};
use super::{loss, tree};
use crate::clock::Clock;

/// Makes a directory ready.
pub(super) fn prepare(
    directory: &Arc<Directory>,
    options: Options,
    clock: &Clock,
) -> Result<(), OpenError> {
    match directory.stage()? {
        Stage::Empty => make(directory),
        Stage::Older => match tree::open(directory.path(), options.durability, options.if_damaged)?
        {
            Some(older) => tree::carry_over(&older, directory, options, clock),
            None => make_anew(directory),
        },
        Stage::Present => complete(directory, options.if_damaged),
    }
}

/// Makes an empty store.
fn make(directory: &Directory) -> Result<(), OpenError> {
    directory.clear()?;
    tables::create(&directory.new_folders())?;
    directory.publish()
}

/// Makes an empty store in place of one that is lost. If a crash interrupts this, the next start
/// goes on without being told again that the loss is accepted.
fn make_anew(directory: &Directory) -> Result<(), OpenError> {
    directory.begin_anew()?;
    make(directory)
}

/// Sees to folders that are lost.
fn complete(directory: &Directory, if_damaged: IfDamaged) -> Result<(), OpenError> {
    let store = directory.path();
    let io = |source| OpenError::Io { path: store.to_owned(), source };
    let Folders { log, rows } = directory.folders();
    if !log.try_exists().map_err(io)? {
        if if_damaged == IfDamaged::Refuse {
            return Err(OpenError::RecordsGone { path: store.to_owned() });
        }
        tracing::error!(
            store = %store.display(),
            missing = %log.display(),
            "all records are lost with what is missing; all their operations may run again"
        );
        return make_anew(directory);
    }
    // The database would make an empty table in place of a missing one.
    let Some(missing) = tables::missing_rows(&rows).map_err(io)? else { return Ok(()) };
    if if_damaged == IfDamaged::Refuse {
        return Err(OpenError::Missing { store: store.to_owned(), missing });
    }
    tracing::error!(
        missing = %missing.display(),
        "the rows of the store are made anew from its log; what was removed comes back until it is \
         swept, so that nothing runs again"
    );
    make_rows_anew(directory)
}

/// Makes an empty database, and lets the start read the whole log into it.
fn make_rows_anew(directory: &Directory) -> Result<(), OpenError> {
    let store = directory.path();
    let io = |source| OpenError::Io { path: store.to_owned(), source };
    let Folders { log, rows } = directory.folders();
    // With the mark, the start after an interrupted one would read only the end of the log.
    tables::remove_mark(&log).and_then(|()| loss::note(store)).map_err(io)?;
    if rows.try_exists().map_err(io)? {
        let aside = keep_aside(&rows).and_then(|aside| fs::rename(&rows, &aside).map(|()| aside));
        let aside = aside.map_err(io)?;
        tracing::warn!(rows = %aside.display(), "the damaged rows are kept as they were");
    }
    let new = directory.new_folders().rows;
    tables::create_rows(&new)?;
    name(&new, &rows, store).map_err(io)
}

fn name(from: &Path, to: &Path, store: &Path) -> io::Result<()> {
    fs::rename(from, to)?;
    sync_directory(store)
}
