//! Checks the journals before the database reads them, and decides which parts of a damaged journal
//! may be dropped.
//!
//! When the database cannot read a part of a journal, it takes that part for an unfinished last
//! write. It cuts the file off there, and so loses all acknowledged groups behind that place. Or it
//! refuses a whole file for one group whose checksum is wrong. So this module first checks every
//! group. The database only gets files in which every group is whole.
//!
//! Only a group that was never synced may be dropped. With `durability = "sync"` none of its calls
//! got a reply, and it is the last one of the newest journal, because a group was written only
//! after the one before it was synced. With `durability = "os"` several groups may be unsynced, and
//! their calls got their replies: a loss of power may undo them. Two signs distinguish an unsynced
//! group from damage:
//!
//! * The file ends inside the group. The process was killed or the machine stopped while the group
//!   was written.
//! * A whole sector of the group is missing. A disk writes a sector of 512 bytes wholly or not at
//!   all, and it writes sectors in any order. After a loss of power, a sector has either its part
//!   of the group or its earlier bytes. A journal was only appended to, and was cut off behind its
//!   last whole group. So the earlier bytes are zeros, perhaps behind the end of earlier groups.
//!
//! Nothing else looks like a missing sector: no group has that many zeros in a row (see
//! `stuffing`), and a flipped bit does not make so many. Bytes that are wrong in any other way had
//! been written, and may have been acknowledged. Then the store does not open, unless a person
//! tells it to go on without these bytes. The same holds for a missing journal, and for a journal
//! that does not reach as far as noted elsewhere. The notes are in `contents`, and in `synced` for
//! the newest journal.

mod examine;
pub(super) mod files;
pub(super) mod group;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use self::examine::{Examined, LossKind, LostPart, examine};
use self::files::{content, path};
use super::contents::Contents;
use super::synced;
use crate::store::embedded::filesystem::{keep_aside, replace_file};
use crate::store::embedded::open_error::OpenError;
use crate::store::embedded::settings::{Durability, IfDamaged};

/// The journals as the database will find them.
#[derive(Debug)]
pub(super) struct Journals(Vec<CheckedJournal>);

#[derive(Debug)]
struct CheckedJournal {
    path: PathBuf,
    /// Journals are numbered in the order in which they were begun.
    number: u64,
    /// The byte at which its last group ends.
    end: u64,
    /// The sequence number of the last group in it or before it.
    reaches: Option<u64>,
}

/// A check of the journals of a store.
#[derive(Debug, Clone, Copy)]
pub(super) struct Check<'a> {
    pub(super) store: &'a Path,
    pub(super) records: &'a Path,
    pub(super) contents: Option<&'a Contents>,
    pub(super) durability: Durability,
    pub(super) if_damaged: IfDamaged,
}

impl Check<'_> {
    /// Checks every group of every journal. Groups that were never synced are cut off. A damaged
    /// part is an error or is taken out, as the settings say.
    pub(super) fn run(self) -> Result<Journals, OpenError> {
        let Self { store, records, contents, durability, if_damaged } = self;
        let io = |source| OpenError::Io { path: store.to_owned(), source };
        contents.map_or(Ok(()), |contents| contents.put_back(records)).map_err(io)?;
        let journals = files::numbers(records).map_err(io)?;
        let missing = Contents::missing_journal(contents, &journals);
        if let Some(missing) = missing.map(|number| path(records, number)) {
            if if_damaged == IfDamaged::Refuse {
                return Err(OpenError::Missing { store: store.to_owned(), missing });
            }
            tracing::error!(
                journal = %missing.display(),
                "a journal is missing; the operations in it may run again"
            );
        }
        let synced = self.synced_until()?;
        let newest = journals.last().copied();
        let mut checked: Vec<CheckedJournal> = Vec::new();
        for number in journals {
            let path = path(records, number);
            let bytes = content(&path).map_err(io)?;
            let is_newest = newest == Some(number);
            let last = checked.last().and_then(|journal| journal.reaches);
            let mut examined = examine(&bytes, is_newest.then_some(durability), last);
            let noted = if is_newest { synced } else { contents.and_then(|c| c.reaches(number)) };
            let is_without_any = examined.whole.is_empty();
            // Here the journal lacks groups that are known to have been synced.
            if (is_without_any && !Contents::may_be_empty(contents, number, is_newest))
                || noted.zip(examined.last).is_some_and(|(noted, last)| last < noted)
            {
                examined.mark_all_damaged();
            }
            if let Some(damage) = examined.damaged().next()
                && if_damaged == IfDamaged::Refuse
            {
                let store = store.to_owned();
                let offset = damage.range.start as u64;
                return Err(OpenError::DamagedJournal { store, journal: path, offset });
            }
            examined.lost.iter().for_each(|lost| log_loss(&path, lost));
            let end = mend(store, &path, &bytes, &examined).map_err(io)?;
            checked.push(CheckedJournal { path, number, end, reaches: examined.last });
        }
        let checked = Journals(checked);
        if let Some(contents) = contents
            && if_damaged == IfDamaged::Accept
        {
            checked.agree(records, contents).map_err(io)?;
        }
        Ok(checked)
    }

    /// Returns the sequence number up to which all groups were synced. A store of one of the oldest
    /// versions has none, because those versions did not note it.
    fn synced_until(self) -> Result<Option<u64>, OpenError> {
        let Self { store, records, contents, if_damaged, .. } = self;
        if !contents.is_some_and(Contents::notes_synced) {
            return Ok(None);
        }
        match synced::read(records) {
            Ok(synced) => Ok(Some(synced)),
            Err(error) if if_damaged == IfDamaged::Accept => {
                tracing::error!(%error, "it is not known how far the journals were synced");
                Ok(None)
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                Err(OpenError::Missing { store: store.to_owned(), missing: synced::path(records) })
            }
            Err(source) => Err(OpenError::Io { path: store.to_owned(), source }),
        }
    }
}

impl Journals {
    /// Makes the notes about the journals agree with what is left of them. So the next start does
    /// not ask again whether the loss is accepted.
    fn agree(&self, records: &Path, contents: &Contents) -> io::Result<()> {
        let reaches = self.0.last().and_then(|journal| journal.reaches).unwrap_or(0);
        synced::write(records, reaches)?;
        let empty = self.0.iter().filter(|journal| journal.end == 0).map(|journal| journal.number);
        let newest = self.0.last().map_or(0, |journal| journal.number);
        contents.clone().agree(records, newest, empty.collect::<BTreeSet<_>>())
    }

    /// Returns a journal that the database has cut off although every group was whole.
    pub(super) fn cut_off(&self) -> io::Result<Option<&Path>> {
        for CheckedJournal { path, end, .. } in &self.0 {
            if fs::metadata(path)?.len() < *end {
                return Ok(Some(path));
            }
        }
        Ok(None)
    }
}

/// Leaves only whole groups in a journal. Returns the place at which the last group ends.
fn mend(store: &Path, path: &Path, bytes: &[u8], examined: &Examined) -> io::Result<u64> {
    let end = examined.whole.iter().map(|range| range.len() as u64).sum();
    if examined.damaged().next().is_some() {
        if let Some(name) = path.file_name() {
            let kept = keep_aside(&store.join(name))?;
            fs::copy(path, &kept)?;
            File::open(&kept)?.sync_all()?;
            tracing::warn!(journal = %kept.display(), "the damaged journal is kept as it was");
        }
        replace_file(path, examined.whole.iter().filter_map(|range| bytes.get(range.clone())))?;
    } else if !examined.lost.is_empty() {
        let file = File::options().write(true).open(path)?;
        file.set_len(end)?;
        file.sync_all()?;
    }
    Ok(end)
}

/// The most operations of a damaged part that the log names.
const NAMED_MAX: usize = 20;

/// Logs the loss of a part of a journal.
fn log_loss(path: &Path, LostPart { range, kind, changes, operations }: &LostPart) {
    let journal = path.display();
    let offset = range.start;
    let bytes = range.len();
    let changes = changes.map_or_else(|| "unknown".to_owned(), |changes| changes.to_string());
    match kind {
        LossKind::Unfinished => tracing::info!(
            %journal, offset, bytes, changes,
            "an unfinished group of changes is dropped: the process or the machine stopped while \
             the group was written; none of its calls was answered, unless durability is \"os\" and \
             the machine stopped"
        ),
        LossKind::Unsynced => tracing::warn!(
            %journal, offset, bytes, changes,
            "sectors are missing at the end of a journal: changes that had not been synced when \
             the machine stopped are dropped"
        ),
        LossKind::Damaged => {
            let named = operations.iter().take(NAMED_MAX).map(ToString::to_string);
            tracing::error!(
                %journal, offset, bytes, changes,
                operations = named.collect::<Vec<_>>().join(" "),
                "a damaged part of a journal is left out; its operations may run again"
            );
        }
    }
}
