//! Appends groups to the newest segment.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::disk::Disk;
use super::group::{GroupBytes, GroupHead, RowRef};
use super::read::Segments;
use super::{AppendError, AppendedAt, Position};
use crate::store::embedded::open_error::OpenError;
use crate::store::embedded::settings::{Durability, IfDamaged};

/// How a log is opened.
pub(in crate::store::embedded) struct OpenSettings<'a> {
    /// The store's directory, for messages.
    pub(in crate::store::embedded) store: PathBuf,
    pub(in crate::store::embedded) durability: Durability,
    pub(in crate::store::embedded) if_damaged: IfDamaged,
    /// No segment gets a lower number than this.
    pub(in crate::store::embedded) numbers_from: u64,
    /// Is told of each damaged part whose loss is accepted, before the part is mended.
    pub(in crate::store::embedded) lose: &'a mut dyn FnMut(&LostPart<'_>) -> io::Result<()>,
}

/// A damaged part of the log, whose loss is accepted.
#[derive(Debug)]
pub(in crate::store::embedded) struct LostPart<'a> {
    pub(in crate::store::embedded) path: &'a Path,
    pub(in crate::store::embedded) offset: u64,
    pub(in crate::store::embedded) bytes: u64,
    /// The rows in it, as far as they can be read. They are only good to name what is lost.
    pub(in crate::store::embedded) rows: Vec<RowRef<'a>>,
}

/// The log, open for appending.
#[derive(Debug)]
pub(in crate::store::embedded) struct Log<D: Disk> {
    segments: Arc<Segments<D>>,
}

impl<D: Disk> Log<D> {
    /// Makes an empty log in an empty folder, durably.
    pub(in crate::store::embedded) fn create(disk: &D, folder: &Path) -> io::Result<()> {
        let _built = (disk, folder);
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Opens the log, hands over the rows of the groups from a place on, and begins a new segment.
    pub(in crate::store::embedded) fn open(
        disk: D,
        folder: &Path,
        from: Option<Position>,
        settings: OpenSettings<'_>,
        visit: &mut dyn FnMut(&GroupHead, RowRef<'_>),
    ) -> Result<Self, OpenError> {
        let _built = (disk, from, visit);
        let source = io::ErrorKind::Unsupported.into();
        let _settings = settings;
        Err(OpenError::Io { path: folder.to_owned(), source })
    }

    /// Writes a group, and syncs it with [`Durability::Sync`]. After [`AppendError::Failed`]
    /// nothing of the group counts, and the log is suspended until [`Self::restore`] succeeds.
    /// Afterwards, [`GroupBytes::rows`] gives the rows with their places.
    pub(in crate::store::embedded) fn append(
        &mut self,
        group: &mut GroupBytes,
        time: u64,
    ) -> Result<AppendedAt, AppendError> {
        let _built = (group, time);
        Err(AppendError::Suspended)
    }

    /// Begins a new segment after a failed write. Its header says where the earlier one ends, so
    /// the failed group never counts.
    pub(in crate::store::embedded) fn restore(&mut self) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Whether the next segment is ready or being made. If not, the disk is full, and only calls
    /// that end something may write.
    pub(in crate::store::embedded) fn has_room(&self) -> bool {
        false
    }

    /// Lets the next group begin a new segment.
    pub(in crate::store::embedded) fn seal(&mut self) {}

    /// Returns the place behind the last group.
    pub(in crate::store::embedded) fn position(&self) -> Position {
        Position { segment: 0, offset: 0, group: 0 }
    }

    /// Takes the number of a kept segment.
    pub(in crate::store::embedded) fn next_number(&self) -> u64 {
        0
    }

    pub(in crate::store::embedded) const fn segments(&self) -> &Arc<Segments<D>> {
        &self.segments
    }

    /// Syncs all groups, and notes that. Nothing is written afterwards.
    pub(in crate::store::embedded) fn close(self) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
}
