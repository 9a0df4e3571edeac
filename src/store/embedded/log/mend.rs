//! Lets a log go on without a damaged part, if a person accepts the loss.
//!
//! Other parts keep their places, because rows elsewhere name these places. So a lost part stays
//! where it is, and gets the head of a *gap*. A missing segment is replaced by one that is a gap.

use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};

use super::disk::{Disk, DiskFile};
use super::group::{ChangeRef, GroupHead, RowRef, rows_of_damaged};
use super::scan::{Break, LostPart, Scan};
use super::segment::{self, FIRST, Header, Kind, NONE, SECTOR};
use super::{RECORDS, tail};
use crate::store::embedded::open_error::OpenError;
use crate::store::embedded::settings::IfDamaged;

/// A part that is no whole group, and that may have been acknowledged.
pub(super) struct Loss<'a> {
    pub(super) segment: u64,
    pub(super) salt: u64,
    /// The bytes of the segment.
    pub(super) bytes: &'a [u8],
    pub(super) range: Range<usize>,
}

impl<D: Disk> Scan<'_, D> {
    /// Accepts a loss, or refuses it.
    pub(super) fn lose(&mut self, loss: &Loss<'_>) -> Result<(), OpenError> {
        let Range { start, end } = loss.range;
        let path = segment::path(&self.folder, loss.segment);
        let offset = start as u64;
        if self.settings.if_damaged == IfDamaged::Refuse {
            let store = self.settings.store.clone();
            return Err(OpenError::DamagedJournal { store, journal: path, offset });
        }
        let records = loss.records();
        let bytes = (end - start) as u64;
        let part = LostPart { path: &path, offset, bytes, records };
        (self.settings.lose)(&part).map_err(|error| self.io(error))?;
        self.copy(loss.segment, &path).map_err(|error| self.io(error))
    }

    /// Accepts the loss of a whole segment, or refuses it.
    pub(super) fn lose_segment(&mut self, segment: u64) -> Result<(), OpenError> {
        let file = self.disk.open(&segment::path(&self.folder, segment));
        let bytes = file.and_then(|file| segment::content(&file)).map_err(|e| self.io(e))?;
        self.lose(&Loss { segment, salt: 0, bytes: &bytes, range: 0..bytes.len() })
    }

    /// Accepts that a segment is missing and puts a gap in its place, or refuses that.
    pub(super) fn replace(&mut self, broken: &Break) -> Result<(), OpenError> {
        let number = broken.number;
        let path = segment::path(&self.folder, number);
        let first = self.from.map_or(0, |from| from.segment);
        let is_reachable = (first..NONE).contains(&number);
        match self.disk.open(&path) {
            Ok(_) if is_reachable => self.lose_segment(number)?,
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(self.io(error)),
            Err(_) if is_reachable && self.settings.if_damaged == IfDamaged::Accept => {
                let part = LostPart { path: &path, offset: 0, bytes: 0, records: Vec::new() };
                (self.settings.lose)(&part).map_err(|error| self.io(error))?;
                tracing::error!(
                    segment = %path.display(),
                    "a segment of the log is missing; the operations in it may run again"
                );
            }
            Ok(_) | Err(_) => {
                // The way back from the newest segment does not lead to the first one.
                let missing = if is_reachable { path } else { segment::path(&self.folder, first) };
                return Err(OpenError::Missing { store: self.settings.store.clone(), missing });
            }
        }
        let header = self.write_gap(broken).map_err(|error| self.io(error))?;
        self.files.leftovers.retain(|leftover| *leftover != path);
        self.files.main.insert(number, header);
        self.files.highest = self.files.highest.max(number);
        Ok(())
    }

    /// Makes a segment that is a gap. The bytes of the broken segment stay, because rows may still
    /// name places in it.
    fn write_gap(&self, Break { number, successor }: &Break) -> io::Result<Header> {
        let from = self.from.filter(|from| from.segment == *number);
        let start = from.map_or(FIRST, |from| from.offset);
        let end = successor.map_or(start, |successor| successor.previous_end);
        let before = self.files.main.range(..*number).next_back().filter(|_| from.is_none());
        let before = before.map(|(_, before)| *before);
        let previous_end = before.map(|before| self.end_of(before)).transpose()?;
        // The segment before it may be missing too.
        let first = self.from.filter(|first| first.segment < *number);
        let previous = before.map(|before| before.number).or(first.map(|first| first.segment));
        let previous_end = previous_end.or(first.map(|first| first.offset));
        let first_group = successor.map_or(0, |successor| successor.first_group.saturating_sub(1));
        let header = Header {
            kind: Kind::Main,
            number: *number,
            salt: self.disk.random()?,
            previous: previous.unwrap_or(NONE),
            previous_end: previous_end.unwrap_or(0),
            first_group: from.map_or(first_group, |from| from.group.saturating_sub(1)),
            made_at: 0,
            bytes: end,
        };
        let path = segment::path(&self.folder, *number);
        let file = match self.disk.open(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => self.disk.create(&path)?,
            opened => opened?,
        };
        if file.bytes()? < end {
            file.set_bytes(end)?;
        }
        for (from, until, group) in [(FIRST, start, header.first_group), (start, end, first_group)]
        {
            let bytes = usize::try_from(until.saturating_sub(from)).map_err(io::Error::other)?;
            if bytes > 0 {
                file.write_at(&GroupHead::gap(group, bytes).to_bytes(header.salt), from)?;
            }
        }
        file.write_at(&header.to_sector(), 0)?;
        file.sync()?;
        self.disk.sync_folder(&self.folder)?;
        Ok(header)
    }

    /// Returns the place at which the whole groups of a segment end.
    fn end_of(&self, header: Header) -> io::Result<u64> {
        let bytes =
            segment::content(&self.disk.open(&segment::path(&self.folder, header.number))?)?;
        Ok(tail::end_of_whole(&bytes, header.salt) as u64)
    }

    /// Keeps a copy of a segment as it was, in the store's directory.
    fn copy(&mut self, number: u64, path: &Path) -> io::Result<()> {
        if self.copied.contains(&number) {
            return Ok(());
        }
        let store = &self.settings.store;
        let names = self.disk.names(store)?;
        let mut name = format!("{number}.log.damaged");
        let mut copies = 2_u32;
        while names.contains(&name) {
            name = format!("{number}.log.damaged.{copies}");
            copies = copies.saturating_add(1);
        }
        let kept: PathBuf = store.join(name);
        let copy = self.disk.create(&kept)?;
        copy.write_at(&segment::content(&self.disk.open(path)?)?, 0)?;
        copy.sync()?;
        self.disk.sync_folder(store)?;
        tracing::warn!(segment = %kept.display(), "the damaged segment is kept as it was");
        self.copied.push(number);
        Ok(())
    }
}

impl<'a> Loss<'a> {
    /// Returns the records that were put in the part, as far as they can be read.
    fn records(&self) -> Vec<RowRef<'a>> {
        let Self { segment, salt, bytes, range: Range { start, end } } = self;
        let mut records = Vec::new();
        for at in (*start..*end).step_by(SECTOR) {
            if at != *start && GroupHead::at(bytes, at, *salt).is_none() {
                continue;
            }
            // Zeros read as rows without a key.
            let rows = rows_of_damaged(bytes, at..*end, *segment);
            let rows = rows.take_while(|row| !row.key.is_empty());
            records.extend(
                rows.filter(|row| {
                    row.table == RECORDS && matches!(row.change, ChangeRef::Put { .. })
                }),
            );
        }
        records
    }
}
