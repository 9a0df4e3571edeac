//! Writes kept segments, to which long-lived records are copied.
//!
//! A kept segment gets its name when its header is synced. So a name never stands for a kept segment
//! without a header.

use std::io;
use std::sync::Arc;

use super::append::FIRST_GROUP;
use super::disk::{Disk, DiskFile};
use super::group::{GroupBytes, Stamp};
use super::segment::{self, FIRST, Header, Kind, NONE, Segment};
use super::{AppendError, AppendedAt, Segments};

/// A kept segment that is being written.
#[derive(Debug)]
pub(in crate::store::embedded) struct Kept<D: Disk> {
    segment: Segment<D::File>,
    next_group: u64,
}

impl<D: Disk> Kept<D> {
    /// Makes a segment without groups, durably.
    pub(in crate::store::embedded) fn begin(
        segments: &Segments<D>,
        made_at: u64,
    ) -> io::Result<Self> {
        let Segments { disk, folder, .. } = segments;
        let header = Header {
            kind: Kind::Kept,
            number: segments.next_number(),
            salt: disk.random()?,
            previous: NONE,
            previous_end: 0,
            first_group: FIRST_GROUP,
            made_at,
            bytes: FIRST,
        };
        let unfinished = segment::unfinished_path(folder, header.number);
        let segment = Segment::begin(Arc::new(disk.create(&unfinished)?), header)?;
        segment.file.sync()?;
        disk.rename(&unfinished, &segment::path(folder, header.number))?;
        disk.sync_folder(folder)?;
        Ok(Self { segment, next_group: FIRST_GROUP })
    }

    /// Writes a group. It counts once [`Self::sync`] has returned. After an error nothing more must
    /// be written to this segment.
    pub(in crate::store::embedded) fn append(
        &mut self,
        group: &mut GroupBytes,
        time: u64,
    ) -> Result<AppendedAt, AppendError> {
        group.complete()?;
        let Segment { number: segment, salt, file, end, .. } = &self.segment;
        let number = self.next_group;
        let offset = u32::try_from(*end).map_err(|_| AppendError::Unfit("its segment is full"))?;
        let bytes = group.stamped(*salt, Stamp { number, time, is_synced: false });
        file.write_at(bytes, *end).map_err(AppendError::Failed)?;
        let appended = AppendedAt { segment: *segment, offset, number };
        self.segment.end += bytes.len() as u64;
        self.next_group += 1;
        Ok(appended)
    }

    pub(in crate::store::embedded) const fn number(&self) -> u64 {
        self.segment.number
    }

    /// Makes all groups survive a loss of power.
    pub(in crate::store::embedded) fn sync(&self) -> io::Result<()> {
        self.segment.file.sync()
    }

    /// Returns the place behind the last group.
    pub(in crate::store::embedded) const fn end(&self) -> u64 {
        self.segment.end
    }
}
