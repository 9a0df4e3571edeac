//! How far the newest segment is synced, and whether that may be believed.

use std::io;
use std::sync::Arc;

use super::disk::DiskFile;
use super::note::Note;
use super::{AppendError, Position};

/// How far the newest segment is synced.
#[derive(Debug)]
pub(super) struct SyncState<F> {
    pub(super) file: Arc<F>,
    pub(super) note: Arc<Note<F>>,
    /// All before this is synced.
    pub(super) until: Position,
    /// Whether a write or a sync has failed.
    pub(super) is_suspended: bool,
}

impl<F: DiskFile> SyncState<F> {
    /// Returns the file to sync, so that all before a place is synced; none if it is.
    pub(super) fn unsynced(&self, position: Position) -> io::Result<Option<Arc<F>>> {
        if position.group <= self.until.group {
            return Ok(None);
        }
        if self.is_suspended {
            return Err(io::Error::other(AppendError::Suspended));
        }
        Ok(Some(Arc::clone(&self.file)))
    }

    /// Notes that the file was synced, or was not.
    pub(super) fn synced(&mut self, position: Position, synced: io::Result<()>) -> io::Result<()> {
        self.is_suspended |= synced.is_err();
        synced?;
        self.until = position;
        self.note.write(position.group.saturating_sub(1))
    }

    /// Syncs all that is before a place, while nobody else does.
    pub(super) fn sync_until(&mut self, position: Position) -> io::Result<()> {
        match self.unsynced(position)? {
            Some(file) => self.synced(position, file.sync()),
            None => Ok(()),
        }
    }
}
