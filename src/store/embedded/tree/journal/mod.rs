//! Checks the journals before the database reads them, and decides which parts of a damaged journal
//! may be dropped.
//!
//! When the database cannot read a part of a journal, it takes that part for an unfinished last
//! write. It cuts the file off there, and so loses all acknowledged groups behind that place. Or it
//! refuses a whole file for one group whose checksum is wrong. So this module first checks every
//! group. The database only gets files in which every group is whole.
//!
//! Only a group that was never synced may be dropped. With `durability = "sync"` none of its calls
//! got a reply, and it is the last one of the newest journal, because a group is written only after
//! the one before it was synced. With `durability = "os"` several groups may be unsynced, and their
//! calls got their replies: a loss of power may undo them. Two signs distinguish an unsynced group
//! from damage:
//!
//! * The file ends inside the group. The process was killed or the machine stopped while the group
//!   was written.
//! * A whole sector of the group is missing. A disk writes a sector of 512 bytes wholly or not at
//!   all, and it writes sectors in any order. After a loss of power, a sector has either its part
//!   of the group or its earlier bytes. A journal is only appended to, and is cut off behind its
//!   last whole group. So the earlier bytes are zeros, perhaps behind the end of earlier groups.
//!
//! Nothing else looks like a missing sector: no group has that many zeros in a row (see
//! `stuffing`), and a flipped bit does not make so many. Bytes that are wrong in any other way had
//! been written, and may have been acknowledged. Then the store does not open, unless a person
//! tells it to go on without these bytes. The same holds for a missing journal, and for a journal
//! that does not reach as far as noted elsewhere. The notes are in `contents`, and in `synced` for
//! the newest journal.
//!
//! Each start writes the last group once more. If the sync of that group failed, the operating
//! system may no longer try to write it but still have it in memory. The group then reads as whole,
//! but only until the machine stops (`fsync(2)` in the Linux manual, under EIO).

mod examine;
pub(super) mod files;
pub(super) mod group;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use self::examine::{Examined, LossKind, LostPart, examine};
use self::files::{content, path};
use super::contents::{self, Contents, FIRST_JOURNAL};
use super::filesystem::{keep_aside, replace_file};
use super::loss;
use super::open_error::OpenError;
use super::settings::{Durability, IfDamaged};
use super::synced::{self, SyncedNote};

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

impl Journals {
    /// Checks every group of every journal. Groups that were never synced are cut off. A damaged
    /// part is an error or is taken out, as the settings say.
    pub(super) fn check(
        store: &Path,
        records: &Path,
        contents: Option<&Contents>,
        durability: Durability,
        if_damaged: IfDamaged,
    ) -> Result<Self, OpenError> {
        let io = |source| OpenError::Io { path: store.to_owned(), source };
        contents.map_or(Ok(()), |contents| contents.put_back(records)).map_err(io)?;
        let journals = files::numbers(records).map_err(io)?;
        if let Some(missing) = missing(&journals, contents).map(|number| path(records, number)) {
            if if_damaged == IfDamaged::Refuse {
                return Err(OpenError::Missing { store: store.to_owned(), missing });
            }
            loss::note(store).map_err(io)?;
            tracing::error!(
                journal = %missing.display(),
                "a journal is missing; the operations in it may run again"
            );
        }
        let synced = synced_until(store, records, contents, if_damaged)?;
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
            if (is_without_any && !may_be_empty(number, is_newest, contents))
                || noted.zip(examined.last).is_some_and(|(noted, last)| last < noted)
            {
                examined.mark_all_damaged();
            }
            if let Some(damage) = examined.damaged().next() {
                if if_damaged == IfDamaged::Refuse {
                    let store = store.to_owned();
                    let offset = damage.range.start as u64;
                    return Err(OpenError::DamagedJournal { store, journal: path, offset });
                }
                loss::note(store).map_err(io)?;
            }
            examined.lost.iter().for_each(|lost| log_loss(&path, lost));
            let end = mend(store, &path, &bytes, &examined).map_err(io)?;
            if is_newest {
                write_again(&path, &bytes, &examined).map_err(io)?;
            }
            checked.push(CheckedJournal { path, number, end, reaches: examined.last });
        }
        let full = checked.iter().map(|journal| journal.number).filter(|n| Some(*n) != newest);
        contents::name_again(records, full).map_err(io)?;
        Ok(Self(checked))
    }

    /// Returns the journals that hold a group, each with the sequence number of its last group.
    pub(super) fn used(&self) -> BTreeMap<u64, u64> {
        let used = self.0.iter().filter(|journal| journal.end > 0);
        used.filter_map(|journal| Some((journal.number, journal.reaches?))).collect()
    }

    /// Returns the sequence number of the last group of all journals, or 0 if there is no group.
    pub(super) fn reach(&self) -> u64 {
        self.0.last().and_then(|journal| journal.reaches).unwrap_or(0)
    }

    /// Returns a journal that the database has cut off although every group was whole. If a journal
    /// is gone, the database no longer needed it.
    pub(super) fn cut_off(&self) -> io::Result<Option<&Path>> {
        for CheckedJournal { path, end, .. } in &self.0 {
            match fs::metadata(path) {
                Ok(metadata) if metadata.len() < *end => return Ok(Some(path)),
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
        Ok(None)
    }
}

/// Returns the sequence number up to which all groups were synced. A store of an older version has
/// none, because that version did not note it.
fn synced_until(
    store: &Path,
    records: &Path,
    contents: Option<&Contents>,
    if_damaged: IfDamaged,
) -> Result<Option<u64>, OpenError> {
    if !contents.is_some_and(Contents::notes_synced) {
        return Ok(None);
    }
    match SyncedNote::read(records) {
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

/// Returns the number of a missing journal. The database begins journals one after the other and
/// removes the oldest ones. So their numbers have no gaps, and there is always a journal.
fn missing(journals: &[u64], contents: Option<&Contents>) -> Option<u64> {
    let oldest = journals.first().copied();
    let mut expected = oldest.min(contents.and_then(Contents::oldest_full_journal).or(oldest));
    for number in journals {
        if expected != Some(*number) {
            return expected;
        }
        expected = number.checked_add(1);
    }
    let newest = contents.map_or(FIRST_JOURNAL, Contents::newest_journal);
    match journals.last() {
        None => Some(newest),
        Some(last) => expected.filter(|_| contents.is_some() && *last < newest),
    }
}

/// Whether a journal may have no whole group. When a journal is full, the database begins the next
/// one before it has anything to write.
fn may_be_empty(number: u64, is_newest: bool, contents: Option<&Contents>) -> bool {
    match contents {
        Some(contents) if number <= contents.newest_journal() => contents.is_empty(number),
        Some(_) | None => is_newest,
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

/// Writes the last whole group once more, in the same place, and syncs it.
fn write_again(path: &Path, bytes: &[u8], examined: &Examined) -> io::Result<()> {
    // A journal that was just mended has been written and synced as a whole.
    if examined.damaged().next().is_some() {
        return Ok(());
    }
    let Some(last) = examined.whole.last() else {
        return Ok(());
    };
    let journal = File::options().write(true).open(path)?;
    let group = bytes.get(last.clone()).unwrap_or_default();
    journal.write_all_at(group, last.start as u64)?;
    journal.sync_all()
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
