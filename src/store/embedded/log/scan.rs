//! Reads the log at a start: which segments belong to it, and which groups count.
//!
//! Each main segment names the one before it, so the log is read from the newest segment backwards.
//! A main segment that none names was begun after a failed write and given up: nothing in it was
//! acknowledged. A segment without a header is one that was made ahead, or whose first write did not
//! come to its end.
//!
//! In a segment with a successor, whole groups reach exactly to the byte that the successor names.
//! Behind the last whole group of the newest one, [`tail`](super::tail) decides.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::append::{FIRST_GROUP, FIRST_NUMBER};
use super::disk::{Disk, DiskFile};
use super::group::{Group, GroupHead, RowRef, Rows};
use super::mend::Loss;
use super::segment::{self, FIRST, Header, Kind, NONE, SECTOR, Segment};
use super::tail::{self, Fate};
use super::{Position, note};
use crate::store::embedded::open_error::OpenError;
use crate::store::embedded::settings::{Durability, IfDamaged};

/// How a log is opened.
pub(in crate::store::embedded) struct OpenSettings<'a> {
    /// The store's directory. Copies of damaged segments are kept there.
    pub(in crate::store::embedded) store: PathBuf,
    pub(in crate::store::embedded) durability: Durability,
    pub(in crate::store::embedded) if_damaged: IfDamaged,
    /// The bytes of a segment.
    pub(in crate::store::embedded) segment_bytes: u64,
    /// No new segment gets a lower number than this.
    pub(in crate::store::embedded) numbers_from: u64,
    /// Is told of each damaged part whose loss is accepted, before anything is changed.
    pub(in crate::store::embedded) lose: &'a mut dyn FnMut(&LostPart<'_>) -> io::Result<()>,
}

/// A damaged part of the log, whose loss is accepted.
#[derive(Debug)]
pub(in crate::store::embedded) struct LostPart<'a> {
    /// The segment.
    pub(in crate::store::embedded) path: &'a Path,
    /// The byte at which the part begins.
    pub(in crate::store::embedded) offset: u64,
    pub(in crate::store::embedded) bytes: u64,
    /// The records that were put there, as far as they can be read. They may be wrong.
    pub(in crate::store::embedded) records: Vec<RowRef<'a>>,
}

/// A log that is being read.
pub(super) struct Scan<'a, D: Disk> {
    pub(super) disk: D,
    pub(super) folder: PathBuf,
    pub(super) settings: OpenSettings<'a>,
    pub(super) from: Option<Position>,
    pub(super) files: Files,
    /// The number of the last group that is known to have been synced.
    synced: u64,
    /// The damaged segments of which a copy is kept.
    pub(super) copied: Vec<u64>,
}

/// What was found of a log.
#[derive(Debug)]
pub(super) struct Scanned<D: Disk> {
    /// The newest segment. It ends behind the last group that counts.
    pub(super) newest: Segment<D::File>,
    /// The last bytes of the newest segment, which may be unsynced.
    again: Vec<u8>,
    pub(super) next_group: u64,
    /// The time of the last group.
    pub(super) time: u64,
    /// A number that no segment has, as all above it.
    pub(super) free_number: u64,
    /// The files that were given up.
    pub(super) leftovers: Vec<PathBuf>,
}

/// The segments from the first one that is read on.
#[derive(Debug, Default)]
pub(super) struct Files {
    pub(super) main: BTreeMap<u64, Header>,
    /// Segments without a whole header, which may have held something acknowledged.
    broken: Vec<u64>,
    pub(super) leftovers: Vec<PathBuf>,
    pub(super) highest: u64,
}

/// The place up to which the log was read, and who gets the rows.
struct Reading<'a> {
    next_group: u64,
    time: u64,
    visit: &'a mut dyn FnMut(&GroupHead, RowRef<'_>),
}

impl Reading<'_> {
    /// Whether this is the next group. Behind a gap, some numbers may be left out.
    const fn is_next(&self, head: &GroupHead) -> bool {
        head.number == self.next_group || head.is_gap && head.number > self.next_group
    }

    fn visit(&mut self, head: &GroupHead, mut rows: Rows<'_>) -> io::Result<()> {
        rows.by_ref().for_each(|row| (self.visit)(head, row));
        if !rows.are_done() {
            return Err(io::Error::other("the log has rows of another version"));
        }
        self.next_group = head.number + 1;
        self.time = self.time.max(head.time);
        Ok(())
    }
}

/// A segment that is being read.
struct Part<F> {
    header: Header,
    successor: Option<Header>,
    file: F,
    bytes: Vec<u8>,
    /// Whether the file is shorter than it was made.
    is_cut: bool,
    /// Whether the loss of all that is behind the groups was accepted.
    is_end_lost: bool,
}

/// What stops the way from the newest segment to the first one.
pub(super) struct Break {
    pub(super) number: u64,
    pub(super) successor: Option<Header>,
}

impl<'a, D: Disk> Scan<'a, D> {
    /// Finds the segments.
    pub(super) fn begin(
        disk: &D,
        folder: &Path,
        from: Option<Position>,
        settings: OpenSettings<'a>,
    ) -> Result<Self, OpenError> {
        let io = |source| OpenError::Io { path: settings.store.clone(), source };
        let synced = match note::read(disk, folder) {
            Ok(synced) => synced,
            Err(error) if settings.if_damaged == IfDamaged::Accept => {
                tracing::error!(%error, "it is not known how far the log was synced");
                0
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let missing = note::path(folder);
                return Err(OpenError::Missing { store: settings.store, missing });
            }
            Err(error) => return Err(io(error)),
        };
        let files = Files::find(disk, folder, from.map_or(0, |from| from.segment)).map_err(io)?;
        let disk = disk.clone();
        let folder = folder.to_owned();
        Ok(Self { disk, folder, settings, from, files, synced, copied: Vec::new() })
    }

    /// Reads the groups, and hands over their rows.
    pub(super) fn read(
        mut self,
        visit: &mut dyn FnMut(&GroupHead, RowRef<'_>),
    ) -> Result<Scanned<D>, OpenError> {
        let mut links = self.links()?;
        let next_group = self.from.map_or(FIRST_GROUP, |from| from.group);
        let mut reading = Reading { next_group, time: 0, visit };
        for pair in links.windows(2) {
            if let [header, successor] = pair {
                self.read_segment(*header, Some(*successor), &mut reading)?;
            }
        }
        let newest = links.pop().ok_or_else(|| self.io(io::ErrorKind::NotFound.into()))?;
        let (segment, again) = self.read_segment(newest, None, &mut reading)?;
        let Reading { next_group, time, .. } = reading;
        let given_up = self.files.main.keys().filter(|number| {
            **number != newest.number && !links.iter().any(|link| link.number == **number)
        });
        let mut leftovers = self.files.leftovers;
        leftovers.extend(given_up.map(|number| segment::path(&self.folder, *number)));
        let free_number = self.files.highest.saturating_add(1).max(self.settings.numbers_from);
        Ok(Scanned { newest: segment, again, next_group, time, free_number, leftovers })
    }

    pub(super) fn io(&self, source: io::Error) -> OpenError {
        OpenError::Io { path: self.settings.store.clone(), source }
    }

    /// Returns the segments of the log, oldest first.
    fn links(&mut self) -> Result<Vec<Header>, OpenError> {
        let first = self.from.map(|from| from.segment);
        let newest = self.files.main.keys().last().copied().or(first);
        for number in self.files.broken.clone() {
            // A broken one before the newest is not missed, or is found missing below.
            if newest.is_none_or(|newest| number > newest) {
                self.lose_segment(number)?;
            }
        }
        loop {
            match self.files.chain(first) {
                Ok(links) => return Ok(links),
                Err(broken) => self.replace(&broken)?,
            }
        }
    }

    /// Reads the groups of a segment. Returns the segment as it is in the end, and the bytes at its
    /// end that may be unsynced.
    fn read_segment(
        &mut self,
        header: Header,
        successor: Option<Header>,
        reading: &mut Reading<'_>,
    ) -> Result<(Segment<D::File>, Vec<u8>), OpenError> {
        let Header { number, salt, .. } = header;
        let mut part = self.load(header, successor)?;
        let from = self.from.filter(|from| from.segment == number);
        let mut at = from.map_or(SECTOR, |from| usize::try_from(from.offset).unwrap_or(usize::MAX));
        // The header is synced together with the first group.
        let mut again_from = if at > SECTOR { at } else { 0 };
        while at < part.bytes.len() {
            let group = Group::at(&part.bytes, at, salt, number);
            if let Some(group) = group.filter(|group| reading.is_next(&group.head)) {
                let Group { head, end, rows } = group;
                reading.visit(&head, rows).map_err(|error| self.io(error))?;
                if head.number <= self.synced {
                    again_from = end;
                }
                at = end;
                continue;
            }
            let fate = match successor {
                None if !part.is_cut => tail::fate(&part.bytes, at, salt, reading.next_group),
                Some(_) | None => Fate::Damaged,
            };
            if fate != Fate::Damaged {
                self.log_dropped(number, at, fate);
                break;
            }
            let next = self.skip(&mut part, at, reading.next_group)?;
            let Some(Position { offset, group, .. }) = next else { break };
            at = usize::try_from(offset).unwrap_or(usize::MAX);
            reading.next_group = group;
        }
        let is_whole = match successor {
            Some(next) => at == part.bytes.len() && reading.next_group <= next.first_group,
            None => self.synced < reading.next_group,
        };
        if !is_whole && !part.is_end_lost {
            self.lose(&Loss { segment: number, salt, bytes: &part.bytes, range: at..at })?;
        }
        // Where a damaged end was given up, its numbers are left out.
        let behind = successor.map_or(self.synced + 1, |next| next.first_group);
        reading.next_group = reading.next_group.max(behind);
        let again = part.bytes.get(again_from.min(at)..at).unwrap_or_default().to_vec();
        let bytes = part.bytes.len() as u64;
        let file = Arc::new(part.file);
        Ok((Segment { number, salt, file, end: at as u64, bytes }, again))
    }

    /// Reads the bytes of a segment, as far as they belong to the log.
    fn load(&self, header: Header, successor: Option<Header>) -> Result<Part<D::File>, OpenError> {
        let opened = self.disk.open(&segment::path(&self.folder, header.number));
        let file = opened.map_err(|error| self.io(error))?;
        let mut bytes = segment::content(&file).map_err(|error| self.io(error))?;
        let found = bytes.len() as u64;
        // What is missing reads as zeros, which are no group.
        let until = successor.map_or(header.bytes.max(found), |next| next.previous_end);
        bytes.resize(usize::try_from(until).unwrap_or(usize::MAX), 0);
        let is_cut = successor.is_none() && found < header.bytes;
        Ok(Part { header, successor, file, bytes, is_cut, is_end_lost: false })
    }

    /// Leaves out a damaged part, if its loss is accepted. Returns where the log goes on, unless
    /// this is its end.
    fn skip(
        &mut self,
        part: &mut Part<D::File>,
        at: usize,
        next: u64,
    ) -> Result<Option<Position>, OpenError> {
        let Part { header: Header { number: segment, salt, .. }, successor, .. } = *part;
        let following = tail::next_whole(&part.bytes, at + SECTOR, salt, next + 1);
        let end = following.unwrap_or(part.bytes.len());
        self.lose(&Loss { segment, salt, bytes: &part.bytes, range: at..end })?;
        let behind = following.and_then(|start| GroupHead::at(&part.bytes, start, salt));
        let behind = behind.map(|head| head.number).or(successor.map(|next| next.first_group));
        let Some(group) = behind else {
            part.is_end_lost = true;
            return Ok(None);
        };
        let gap = GroupHead::gap(group.saturating_sub(1), end - at).to_bytes(salt);
        if let Some(start) = part.bytes.get_mut(at..).and_then(<[u8]>::first_chunk_mut) {
            *start = gap;
        }
        let written = part.file.write_at(&gap, at as u64).and_then(|()| part.file.sync());
        written.map_err(|error| self.io(error))?;
        Ok(Some(Position { segment, offset: end as u64, group }))
    }

    fn log_dropped(&self, number: u64, at: usize, fate: Fate) {
        let segment = segment::path(&self.folder, number);
        let segment = segment.display();
        match fate {
            Fate::End | Fate::Damaged => {}
            Fate::Unfinished => tracing::info!(
                %segment, offset = at,
                "an unfinished group of changes is dropped: the process or the machine stopped \
                 while the group was written; none of its calls was answered, unless durability is \
                 \"os\" and the machine stopped"
            ),
            Fate::Unsynced => tracing::warn!(
                %segment, offset = at,
                "sectors are missing at the end of the log: changes that had not been synced when \
                 the machine stopped are dropped"
            ),
        }
    }
}

impl<D: Disk> Scanned<D> {
    /// Writes once more what may be unsynced, in the same place, and syncs it. If an earlier sync
    /// failed, the operating system may no longer try to write it but still have it in memory. It
    /// then reads as whole, but only until the machine stops (`fsync(2)` in the Linux manual, under
    /// EIO).
    pub(super) fn write_again(&self) -> io::Result<()> {
        let Segment { file, end, .. } = &self.newest;
        if !self.again.is_empty() {
            file.write_at(&self.again, end - self.again.len() as u64)?;
        }
        file.sync()
    }
}

impl Files {
    /// Finds the segments from this number on.
    fn find<D: Disk>(disk: &D, folder: &Path, lowest: u64) -> io::Result<Self> {
        let mut found = Self::default();
        for name in disk.names(folder)? {
            let path = folder.join(&name);
            if let Some(number) = segment::number_of(&name, "new") {
                found.highest = found.highest.max(number);
                found.leftovers.push(path);
                continue;
            }
            let Some(number) = segment::number_of(&name, "log") else { continue };
            found.highest = found.highest.max(number);
            if number >= lowest {
                found.add(number, &disk.open(&path)?, path)?;
            }
        }
        Ok(found)
    }

    fn add(&mut self, number: u64, file: &impl DiskFile, path: PathBuf) -> io::Result<()> {
        let mut start = vec![0; usize::try_from(file.bytes()?.min(FIRST)).unwrap_or(SECTOR)];
        file.read_at(&mut start, 0)?;
        match Header::from_start(&start) {
            Some(header) if header.number == number => {
                if header.kind == Kind::Main {
                    self.main.insert(number, header);
                }
            }
            None if tail::is_first_write(&segment::content(file)?) => self.leftovers.push(path),
            Some(_) | None => self.broken.push(number),
        }
        Ok(())
    }

    /// Returns the segments from the first one to the newest one.
    fn chain(&self, first: Option<u64>) -> Result<Vec<Header>, Break> {
        let newest = self.main.keys().last().copied();
        let mut number = newest.or(first).unwrap_or(FIRST_NUMBER);
        let mut links: Vec<Header> = Vec::new();
        loop {
            let successor = links.last().copied();
            let Some(header) = self.main.get(&number) else {
                return Err(Break { number, successor });
            };
            links.push(*header);
            if Some(number) == first || header.previous == NONE && first.is_none() {
                links.reverse();
                return Ok(links);
            }
            // Numbers grow, so this is no way back.
            if header.previous >= number {
                return Err(Break { number: NONE, successor: None });
            }
            number = header.previous;
        }
    }
}
