//! Reads values and rows of segments. Threads share it.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::{Mutex, MutexGuard};

use super::append::SyncState;
use super::disk::{Disk, DiskFile};
use super::group::{Group, GroupHead, RECORD_CRC, RowRef, is_zeros, record_crc};
use super::segment::{self, Header, SECTOR};
use super::{Place, Position, tail};

/// The most files that are kept open for reading.
const OPEN_MAX: usize = 64;

/// The segments of a log.
#[derive(Debug)]
pub(in crate::store::embedded) struct Segments<D: Disk> {
    pub(super) disk: D,
    pub(super) folder: PathBuf,
    numbers: Arc<AtomicU64>,
    state: Mutex<SyncState<D::File>>,
    /// Held while the newest segment is synced for others, and while another becomes the newest. The
    /// operating system tells of a failed sync only once. Locked before `state`.
    sync_alone: Mutex<()>,
    /// The files that are open for reading, the one that was used last at the end.
    open: Mutex<Vec<OpenFile<D::File>>>,
}

#[derive(Debug)]
struct OpenFile<F> {
    number: u64,
    file: Arc<F>,
}

impl<D: Disk> Segments<D> {
    pub(super) fn new(
        disk: D,
        folder: PathBuf,
        numbers: Arc<AtomicU64>,
        state: SyncState<D::File>,
    ) -> Self {
        Self {
            disk,
            folder,
            numbers,
            state: Mutex::new(state),
            sync_alone: Mutex::default(),
            open: Mutex::default(),
        }
    }

    pub(super) fn state(&self) -> MutexGuard<'_, SyncState<D::File>> {
        self.state.lock()
    }

    pub(super) fn sync_alone(&self) -> MutexGuard<'_, ()> {
        self.sync_alone.lock()
    }

    /// Reads the value of a record. The bytes are those that were written for this key. If they are
    /// not, it is an error of the kind [`io::ErrorKind::InvalidData`].
    pub(in crate::store::embedded) fn read(&self, key: &[u8], place: Place) -> io::Result<Vec<u8>> {
        let Place { segment, offset, length } = place;
        let damaged = || {
            let path = segment::path(&self.folder, segment);
            let says = format!("`{}` is damaged at byte {offset}", path.display());
            io::Error::new(io::ErrorKind::InvalidData, says)
        };
        let file = self.file(segment)?;
        let start = u64::from(offset).checked_sub(RECORD_CRC as u64).ok_or_else(damaged)?;
        let mut read = vec![0; RECORD_CRC + length as usize];
        file.read_at(&mut read, start).map_err(|error| {
            if error.kind() == io::ErrorKind::UnexpectedEof { damaged() } else { error }
        })?;
        let value = read.split_off(RECORD_CRC);
        if read != record_crc(key, &value).to_le_bytes() {
            return Err(damaged());
        }
        Ok(value)
    }

    /// Makes all groups before a place survive a loss of power.
    pub(in crate::store::embedded) fn sync_until(&self, position: Position) -> io::Result<()> {
        let _alone = self.sync_alone();
        // Groups can be appended meanwhile.
        let file = self.state().unsynced(position)?;
        match file {
            Some(file) => {
                let synced = file.sync();
                self.state().synced(position, synced)
            }
            None => Ok(()),
        }
    }

    /// Hands over the rows of a segment. Returns the place of the first damaged part, if there is
    /// one. The rows of whole groups behind it are handed over too.
    pub(in crate::store::embedded) fn rows_of(
        &self,
        number: u64,
        visit: &mut dyn FnMut(&GroupHead, RowRef<'_>),
    ) -> io::Result<Option<u64>> {
        let bytes = segment::content(&*self.file(number)?)?;
        let Some(Header { salt, .. }) = Header::from_start(&bytes) else {
            return Ok(Some(0));
        };
        let mut damaged = None;
        let mut at = SECTOR;
        while let Some(rest) = bytes.get(at..).filter(|rest| !is_zeros(rest)) {
            let Some(Group { head, end, rows }) = Group::at(&bytes, at, salt, number) else {
                damaged = damaged.or(Some(at as u64));
                let next = tail::next_whole(&bytes, at + SECTOR, salt, 0);
                at = next.unwrap_or(at + rest.len());
                continue;
            };
            rows.for_each(|row| visit(&head, row));
            at = end;
        }
        Ok(damaged)
    }

    /// Returns the numbers of all segments, lowest first.
    pub(in crate::store::embedded) fn numbers(&self) -> io::Result<Vec<u64>> {
        let names = self.disk.names(&self.folder)?;
        let mut numbers: Vec<_> =
            names.iter().filter_map(|name| segment::number_of(name, "log")).collect();
        numbers.sort_unstable();
        Ok(numbers)
    }

    /// Takes the number of a new segment.
    pub(in crate::store::embedded) fn next_number(&self) -> u64 {
        self.numbers.fetch_add(1, Ordering::Relaxed)
    }

    /// Returns the number of bytes of a segment.
    pub(in crate::store::embedded) fn bytes_of(&self, number: u64) -> io::Result<u64> {
        self.file(number)?.bytes()
    }

    /// Removes a segment that no record and no mark points into. After a loss of power it may be
    /// there again.
    pub(in crate::store::embedded) fn remove(&self, number: u64) -> io::Result<()> {
        self.open.lock().retain(|open| open.number != number);
        self.disk.remove(&segment::path(&self.folder, number))
    }

    fn file(&self, number: u64) -> io::Result<Arc<D::File>> {
        let mut open = self.open.lock();
        let found = open.iter().rposition(|open| open.number == number);
        let used = if let Some(found) = found {
            open.remove(found)
        } else {
            if open.len() >= OPEN_MAX {
                open.remove(0);
            }
            let file = self.disk.open(&segment::path(&self.folder, number))?;
            OpenFile { number, file: Arc::new(file) }
        };
        let file = Arc::clone(&used.file);
        open.push(used);
        Ok(file)
    }
}
