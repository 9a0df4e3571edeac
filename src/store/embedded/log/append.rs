//! Appends groups to the log.

use std::io;
use std::sync::Arc;

use super::disk::DiskFile;
use super::group::{GroupBytes, Label};
use super::note::SyncedNote;
use super::segment::{End, Header, Kind};
use super::spare::{Prepared, Spare};
use super::{Position, SECTOR, SEGMENT_BYTES, Segments};
use crate::store::embedded::settings::Durability;
use crate::store::random;

/// An open log.
#[derive(Debug)]
pub(in crate::store::embedded) struct Log {
    pub(super) segments: Arc<Segments>,
    pub(super) durability: Durability,
    pub(super) active: Active,
    /// The number of the next group.
    pub(super) next_group: u64,
    /// The number of the next segment that is made.
    pub(super) next_segment: u64,
    pub(super) spare: Spare,
    pub(super) note: SyncedNote,
    /// Whether a write failed and no new segment was begun since.
    pub(super) is_suspended: bool,
}

/// The segment to which groups are appended.
#[derive(Debug)]
pub(super) struct Active {
    pub(super) number: u64,
    pub(super) salt: u64,
    pub(super) file: Arc<dyn DiskFile>,
    /// The byte at which the next group begins.
    pub(super) end: u64,
    /// The byte that groups may not pass, unless there is none before them.
    pub(super) capacity: u64,
}

/// Where a group was written.
#[derive(Debug, Clone, Copy)]
pub(in crate::store::embedded) struct Appended {
    pub(in crate::store::embedded) segment: u64,
    /// The byte at which the group begins.
    pub(in crate::store::embedded) begin: u64,
}

impl Log {
    /// Writes a group, and syncs it if the settings ask for it.
    ///
    /// # Errors
    /// Nobody knows then whether the group is on disk. The kernel may have dropped its pages, and
    /// may then report the next sync as a success (`fsync(2)` in the Linux manual, under EIO). So
    /// nothing more is written to this segment. Every call fails until [`Self::restore`] has begun
    /// another one, whose header says that the group does not count.
    pub(in crate::store::embedded) fn append(
        &mut self,
        group: &mut GroupBytes,
        time: u64,
    ) -> io::Result<Appended> {
        if self.is_suspended {
            return Err(io::Error::other("an earlier write failed"));
        }
        self.write(group, time).inspect_err(|_| self.is_suspended = true)
    }

    fn write(&mut self, group: &mut GroupBytes, time: u64) -> io::Result<Appended> {
        let is_synced = self.durability == Durability::Sync;
        let label = Label { number: self.next_group, time, is_synced };
        let length = group.length();
        if self.active.end + length > self.active.capacity && !self.active.is_empty() {
            self.begin_next(time)?;
        }
        let bytes = group.seal(self.active.salt, label);
        let begin = self.active.end;
        self.active.file.write_at(bytes, begin)?;
        if is_synced {
            self.active.file.sync()?;
            self.note.write(label.number)?;
        }
        self.active.end += length;
        self.next_group += 1;
        Ok(Appended { segment: self.active.number, begin })
    }

    /// Begins the next segment. Its header is synced together with its first group.
    fn begin_next(&mut self, time: u64) -> io::Result<()> {
        let end = End { segment: self.active.number, offset: self.active.end };
        let Prepared { number, file } = self.spare.take()?;
        let following = self.take_number();
        self.spare.make(following);
        let next = Active::begin(file, Some(end), Begin { number, group: self.next_group, time })?;
        let full = std::mem::replace(&mut self.active, next);
        self.spare.cut_off(full.file, full.end);
        Ok(())
    }

    /// Goes on after a failed write, in a new segment.
    pub(in crate::store::embedded) fn restore(&mut self, time: u64) -> io::Result<()> {
        if self.is_suspended {
            self.begin_next(time)?;
            self.active.file.sync()?;
            self.is_suspended = false;
        }
        Ok(())
    }

    /// Whether an earlier write failed.
    pub(in crate::store::embedded) const fn is_suspended(&self) -> bool {
        self.is_suspended
    }

    /// Whether the disk has room for another segment. If it has none, the rest of this segment and
    /// the one that is ready are room for calls that end something.
    pub(in crate::store::embedded) fn has_room(&self) -> bool {
        !self.spare.is_failing()
    }

    /// Begins a new segment, unless this one is empty.
    pub(in crate::store::embedded) fn begin_segment(&mut self, time: u64) -> io::Result<()> {
        if !self.active.is_empty() {
            self.begin_next(time)?;
            self.active.file.sync()?;
        }
        Ok(())
    }

    /// The position behind the last group.
    pub(in crate::store::embedded) const fn position(&self) -> Position {
        let Active { number: segment, end: offset, .. } = self.active;
        Position { segment, offset, group: self.next_group }
    }

    /// Returns a number for a segment.
    pub(in crate::store::embedded) const fn take_number(&mut self) -> u64 {
        let number = self.next_segment;
        self.next_segment += 1;
        number
    }

    pub(in crate::store::embedded) const fn segments(&self) -> &Arc<Segments> {
        &self.segments
    }

    /// Makes all that was written durable, whatever the settings ask for, and notes it.
    ///
    /// # Errors
    /// If a write failed earlier, or the disk fails now.
    pub(in crate::store::embedded) fn sync(&self) -> io::Result<()> {
        if self.is_suspended {
            return Err(io::Error::other("an earlier write failed"));
        }
        self.active.file.sync()?;
        self.note.write(self.next_group.saturating_sub(1))?;
        self.note.sync()
    }
}

/// What the header of a new segment says, beside the end of the one before it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Begin {
    pub(super) number: u64,
    /// The number of the first group.
    pub(super) group: u64,
    pub(super) time: u64,
}

impl Active {
    /// Writes the header of a segment that was made ahead. The caller syncs it.
    pub(super) fn begin(
        file: Arc<dyn DiskFile>,
        previous: Option<End>,
        Begin { number, group: first_group, time: made_at }: Begin,
    ) -> io::Result<Self> {
        let salt = u64::from_le_bytes(random().map_err(io::Error::other)?);
        let header = Header { kind: Kind::Main, number, salt, previous, first_group, made_at };
        file.write_at(&header.to_bytes(), 0)?;
        Ok(Self { number, salt, file, end: SECTOR as u64, capacity: SEGMENT_BYTES })
    }

    const fn is_empty(&self) -> bool {
        self.end == SECTOR as u64
    }
}
