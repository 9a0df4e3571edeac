//! Reads values and rows of segments. Threads share it.

use std::io;

use super::disk::Disk;
use super::group::{GroupHead, RowRef};
use super::{Place, Position};

/// The segments of a log.
#[derive(Debug)]
pub(in crate::store::embedded) struct Segments<D: Disk> {
    disk: D,
}

impl<D: Disk> Segments<D> {
    /// Reads the value of a record. The bytes are those that were written for this key, or the
    /// answer is an error of the kind [`io::ErrorKind::InvalidData`].
    pub(in crate::store::embedded) fn read(&self, key: &[u8], place: Place) -> io::Result<Vec<u8>> {
        let _built = (key, place, &self.disk);
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Makes all groups before a place survive a loss of power. With `Durability::Sync` they do.
    pub(in crate::store::embedded) fn sync_until(&self, position: Position) -> io::Result<()> {
        let _built = position;
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Hands over the rows of a segment. Returns the place of the first damaged part, if there is
    /// one; the rows behind it are handed over too.
    pub(in crate::store::embedded) fn rows_of(
        &self,
        number: u64,
        visit: &mut dyn FnMut(&GroupHead, RowRef<'_>),
    ) -> io::Result<Option<u64>> {
        let _built = (number, visit);
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Returns the numbers of all segments, main and kept ones, lowest first.
    pub(in crate::store::embedded) fn numbers(&self) -> io::Result<Vec<u64>> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Returns the bytes that a segment takes.
    pub(in crate::store::embedded) fn bytes_of(&self, number: u64) -> io::Result<u64> {
        let _built = number;
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Removes a segment that no record and no mark points into.
    pub(in crate::store::embedded) fn remove(&self, number: u64) -> io::Result<()> {
        let _built = number;
        Err(io::ErrorKind::Unsupported.into())
    }
}
