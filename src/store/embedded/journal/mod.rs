//! Reads the journals before the database does, and decides what of a damaged one may be dropped.
//!
//! The database takes whatever it cannot read in a journal for the end of its last write and cuts
//! the file off there, with all that was acknowledged behind it; or it refuses a whole file for one
//! group whose checksum is wrong. So every group is checked here first, and the database is only
//! given files in which every group is whole.
//!
//! What may be dropped is what nobody was told of: a group that was never synced. It is the last one
//! of the newest journal, because no group is written before the one before it was synced (with
//! `durability = "os"` it may be several). Two things tell it from damage:
//!
//! * The file ends inside it. The process was killed while it wrote, or the machine stopped.
//! * A whole sector of it is missing. A disk writes sectors of 512 bytes as a whole or not at all
//!   and in any order, so after a loss of power a sector of the group is there, or it is what stood
//!   there before. A journal is only ever appended to, and cut off where its last whole group ends,
//!   so what stood there before is zeros, behind whatever of earlier groups the sector holds.
//!
//! A missing sector cannot be mistaken for anything else: no group has as many zeros in a row (see
//! `stuffing`), and a flipped bit does not make them. Bytes that are wrong in any other way were
//! written, so they may have been acknowledged: then the store does not open, unless it is told to
//! go on without them. The same is true of a journal that is not there or does not reach as far as
//! is noted elsewhere: see `contents`, and `synced` for the newest one.
//!
//! The last group is written once more at each start. If a sync of it failed, the operating system
//! may have given up to write it to the disk and have it in memory all the same, so that it reads
//! as whole until the machine stops (`fsync(2)` in the Linux manual, under EIO).

mod examine;
mod group;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

pub(super) use self::group::{END_MARK, LABEL_KEY, Label};

use self::examine::{Examined, Lost, LostKind, examine};
use super::contents::{self, Contents, FIRST_JOURNAL};
use super::directory::{OpenError, keep_aside, sync_directory};
use super::synced::{self, Synced};
use super::{Durability, IfDamaged};

/// The journals as they are when the database opens them: where the last group of each ends.
#[derive(Debug)]
pub(super) struct Journals(Vec<Checked>);

#[derive(Debug)]
struct Checked {
    path: PathBuf,
    number: u64,
    end: u64,
    /// The sequence number of the last group in it or before it.
    reaches: Option<u64>,
}

/// A journal, before it is read.
struct Journal {
    path: PathBuf,
    /// They are numbered in the order in which they were begun.
    number: u64,
}

impl Journals {
    /// Checks every group of every journal. What was never synced is cut off; what is damaged is
    /// taken out, or an error.
    pub(super) fn check(
        store: &Path,
        records: &Path,
        contents: Option<&Contents>,
        durability: Durability,
        if_damaged: IfDamaged,
    ) -> Result<Self, OpenError> {
        let io = |source| OpenError::Io { path: store.to_owned(), source };
        contents.map_or(Ok(()), |contents| contents.put_back(records)).map_err(io)?;
        let journals = journals(records).map_err(io)?;
        if let Some(missing) = missing(&journals, contents).map(|number| path(records, number)) {
            if if_damaged == IfDamaged::Refuse {
                return Err(OpenError::Missing { store: store.to_owned(), missing });
            }
            tracing::error!(
                journal = %missing.display(),
                "a journal is missing; the operations in it may run again"
            );
        }
        let synced = synced_until(store, records, contents, if_damaged)?;
        let newest = journals.last().map(|journal| journal.number);
        let mut checked: Vec<Checked> = Vec::new();
        for Journal { path, number } in journals {
            let bytes = content(&path).map_err(io)?;
            let is_newest = newest == Some(number);
            let last = checked.last().and_then(|journal| journal.reaches);
            let mut examined = examine(&bytes, is_newest.then_some(durability), last);
            let noted = if is_newest { synced } else { contents.and_then(|c| c.reaches(number)) };
            let is_without_any = examined.whole.is_empty();
            if (is_without_any && !may_be_empty(number, is_newest, contents))
                || noted.zip(examined.last).is_some_and(|(noted, last)| last < noted)
            {
                examined.has_lost_groups();
            }
            if if_damaged == IfDamaged::Refuse
                && let Some(damage) = examined.damaged().next()
            {
                let store = store.to_owned();
                let offset = damage.range.start as u64;
                return Err(OpenError::DamagedJournal { store, journal: path, offset });
            }
            examined.lost.iter().for_each(|lost| tell(&path, lost));
            let end = mend(store, &path, &bytes, &examined).map_err(io)?;
            if is_newest {
                write_again(&path, &bytes, &examined).map_err(io)?;
            }
            checked.push(Checked { path, number, end, reaches: examined.last });
        }
        let full = checked.iter().map(|journal| journal.number).filter(|n| Some(*n) != newest);
        contents::name_again(records, full).map_err(io)?;
        Ok(Self(checked))
    }

    /// Those that hold a group, and the sequence number of the last one.
    pub(super) fn used(&self) -> BTreeMap<u64, u64> {
        let used = self.0.iter().filter(|journal| journal.end > 0);
        used.filter_map(|journal| Some((journal.number, journal.reaches?))).collect()
    }

    /// The sequence number of the last group, 0 if there is none.
    pub(super) fn reach(&self) -> u64 {
        self.0.last().and_then(|journal| journal.reaches).unwrap_or(0)
    }

    /// A journal that the database has cut off all the same. One that is gone was not needed any
    /// more.
    pub(super) fn cut_off(&self) -> io::Result<Option<&Path>> {
        for Checked { path, end, .. } in &self.0 {
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

/// The sequence number up to which all groups were synced, if that is noted.
fn synced_until(
    store: &Path,
    records: &Path,
    contents: Option<&Contents>,
    if_damaged: IfDamaged,
) -> Result<Option<u64>, OpenError> {
    if !contents.is_some_and(Contents::notes_synced) {
        return Ok(None);
    }
    match Synced::read(records) {
        Ok(synced) => Ok(Some(synced)),
        Err(error) if if_damaged == IfDamaged::Accept => {
            tracing::error!(%error, "how far the journals were synced is not known");
            Ok(None)
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            Err(OpenError::Missing { store: store.to_owned(), missing: synced::path(records) })
        }
        Err(source) => Err(OpenError::Io { path: store.to_owned(), source }),
    }
}

/// The number of a journal that must be there and is not. The database begins them one after the
/// other and removes the oldest; it is never without one.
fn missing(journals: &[Journal], contents: Option<&Contents>) -> Option<u64> {
    let oldest = journals.first().map(|oldest| oldest.number);
    let mut expected = oldest.min(contents.and_then(Contents::oldest_full_journal).or(oldest));
    for journal in journals {
        if expected != Some(journal.number) {
            return expected;
        }
        expected = journal.number.checked_add(1);
    }
    let newest = contents.map_or(FIRST_JOURNAL, Contents::newest_journal);
    match journals.last() {
        None => Some(newest),
        Some(last) => expected.filter(|_| contents.is_some() && last.number < newest),
    }
}

/// Whether there may be no whole group in a journal: it is begun when the one before it is full.
fn may_be_empty(number: u64, is_newest: bool, contents: Option<&Contents>) -> bool {
    match contents {
        Some(contents) if number <= contents.newest_journal() => contents.is_empty(number),
        Some(_) | None => is_newest,
    }
}

/// Where a journal is.
pub(super) fn path(records: &Path, number: u64) -> PathBuf {
    records.join(format!("{number}.jnl"))
}

/// The journals of a database, oldest first.
fn journals(records: &Path) -> io::Result<Vec<Journal>> {
    let numbers = numbers(records)?.into_iter();
    Ok(numbers.map(|number| Journal { path: path(records, number), number }).collect())
}

/// The numbers of the journals, oldest first.
pub(super) fn numbers(records: &Path) -> io::Result<Vec<u64>> {
    numbers_of(records, "jnl")
}

/// The numbers that files with this extension have for names, lowest first. The database refuses
/// journals of any other name.
pub(super) fn numbers_of(records: &Path, extension: &str) -> io::Result<Vec<u64>> {
    let mut numbers = Vec::new();
    for entry in fs::read_dir(records)? {
        let path = entry?.path();
        if path.extension() == Some(OsStr::new(extension)) {
            numbers.extend(path.file_stem().and_then(|stem| stem.to_str()?.parse::<u64>().ok()));
        }
    }
    numbers.sort_unstable();
    Ok(numbers)
}

/// Whether anything was written to a journal that is being used.
pub(super) fn is_begun(path: &Path) -> io::Result<bool> {
    let mut first = [0];
    Ok(File::open(path)?.read_at(&mut first, 0)? == 1 && first == [group::START])
}

/// How much is looked at at a time for the end of a journal, which may have a long end of zeros.
const PIECE_BYTES: u64 = 1 << 20;

/// A journal without the zeros at its end: it is made with room for what will come.
fn content(path: &Path) -> io::Result<Vec<u8>> {
    let journal = File::open(path)?;
    let mut end = journal.metadata()?.len();
    let mut piece = Vec::new();
    while end > 0 {
        let start = end.saturating_sub(PIECE_BYTES);
        piece.resize(usize::try_from(end - start).map_err(io::Error::other)?, 0);
        journal.read_exact_at(&mut piece, start)?;
        if let Some(last) = piece.iter().rposition(|byte| *byte != 0) {
            end = start + last as u64 + 1;
            break;
        }
        end = start;
    }
    let mut content = vec![0; usize::try_from(end).map_err(io::Error::other)?];
    journal.read_exact_at(&mut content, 0)?;
    Ok(content)
}

/// Leaves in a journal only groups that are whole. Gives back where the last of them ends.
fn mend(store: &Path, path: &Path, bytes: &[u8], examined: &Examined) -> io::Result<u64> {
    let end = examined.whole.iter().map(|range| range.len() as u64).sum();
    if examined.damaged().next().is_some() {
        if let Some(name) = path.file_name() {
            let kept = keep_aside(&store.join(name))?;
            fs::copy(path, &kept)?;
            File::open(&kept)?.sync_all()?;
            tracing::warn!(journal = %kept.display(), "the damaged journal is kept as it was");
        }
        // the old one stays in place until the new one is complete
        let unfinished = path.with_extension("jnl.new");
        let mut file = File::create(&unfinished)?;
        let whole = examined.whole.iter().filter_map(|range| bytes.get(range.clone()));
        whole.into_iter().try_for_each(|groups| file.write_all(groups))?;
        file.sync_all()?;
        fs::rename(&unfinished, path)?;
        path.parent().map_or(Ok(()), sync_directory)?;
    } else if !examined.lost.is_empty() {
        let file = File::options().write(true).open(path)?;
        file.set_len(end)?;
        file.sync_all()?;
    }
    Ok(end)
}

/// Writes the last whole group to its place once more, and syncs it.
fn write_again(path: &Path, bytes: &[u8], examined: &Examined) -> io::Result<()> {
    // a mended journal was written as a whole
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

/// Operations of a damaged part that are named in the log.
const NAMED_MAX: usize = 20;

/// Says what is lost with a part of a journal.
fn tell(path: &Path, Lost { range, kind, changes, operations }: &Lost) {
    let journal = path.display();
    let offset = range.start;
    let bytes = range.len();
    let changes = changes.map_or_else(|| "unknown".to_owned(), |changes| changes.to_string());
    match kind {
        LostKind::Unfinished => tracing::info!(
            %journal, offset, bytes, changes,
            "a group of changes that was being written when the process or the machine stopped is \
             dropped; nobody was told of it"
        ),
        LostKind::Unsynced => tracing::warn!(
            %journal, offset, bytes, changes,
            "sectors are missing at the end of a journal: changes that had not been synced when \
             the machine stopped are dropped"
        ),
        LostKind::Damaged => {
            let named = operations.iter().take(NAMED_MAX).map(ToString::to_string);
            tracing::error!(
                %journal, offset, bytes, changes,
                operations = named.collect::<Vec<_>>().join(" "),
                "a damaged part of a journal is left out; its operations may run again"
            );
        }
    }
}
