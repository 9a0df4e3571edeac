//! Appends groups to the newest segment.
//!
//! With `durability = "sync"` a group is synced before the next one is written, so at most one is
//! unsynced. With `"os"` groups are synced when somebody asks, and before a segment has a successor.
//! The first group of a segment is synced together with the header, whatever the setting.
//!
//! After a failed write or sync nobody knows what is on disk, and a later sync says nothing of what
//! an earlier one failed to write (`fsync(2)` in the Linux manual, under EIO). So the log is
//! suspended, and goes on in a new segment. The header of that one says where the earlier segment
//! ends, so the failed group never counts, whether it is on disk or not.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::{Mutex, MutexGuard};

use super::ahead::{Ahead, Job, NewFile};
use super::disk::{Disk, DiskFile};
use super::group::{Group, GroupBytes, GroupHead, RowRef, Stamp};
use super::note::Note;
use super::read::Segments;
use super::scan::{OpenSettings, Scan, Scanned};
use super::segment::{self, FIRST, Header, Kind, NONE, STARTING_BYTES, Segment};
use super::{AppendError, AppendedAt, Position};
use crate::store::embedded::open_error::OpenError;
use crate::store::embedded::settings::Durability;

/// The number of the first segment of a log.
pub(super) const FIRST_NUMBER: u64 = 1;
/// The number of the first group of a log.
pub(super) const FIRST_GROUP: u64 = 1;

/// The log, open for appending.
#[derive(Debug)]
pub(in crate::store::embedded) struct Log<D: Disk> {
    newest: Segment<D::File>,
    next_group: u64,
    /// The latest time of a group.
    time: u64,
    durability: Durability,
    /// Whether the next group begins a new segment.
    is_sealed: bool,
    /// The segments whose first write failed. The note may name a group in one of them, until the
    /// log is restored.
    given_up: Vec<u64>,
    segments: Arc<Segments<D>>,
    ahead: Ahead<D>,
}

/// How a log grows.
#[derive(Clone, Copy)]
struct Growth {
    durability: Durability,
    segment_bytes: u64,
}

/// How far the newest segment is synced.
#[derive(Debug)]
pub(super) struct SyncState<F> {
    file: Arc<F>,
    note: Arc<Note<F>>,
    /// All before this is synced.
    until: Position,
    /// Whether a write or a sync has failed.
    is_suspended: bool,
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

    fn sync_until(&mut self, position: Position) -> io::Result<()> {
        match self.unsynced(position)? {
            Some(file) => self.synced(position, file.sync()),
            None => Ok(()),
        }
    }
}

impl<D: Disk> Log<D> {
    /// Makes an empty log in an empty folder, durably.
    pub(in crate::store::embedded) fn create(disk: &D, folder: &Path) -> io::Result<()> {
        let header = Header {
            kind: Kind::Main,
            number: FIRST_NUMBER,
            salt: disk.random()?,
            previous: NONE,
            previous_end: 0,
            first_group: FIRST_GROUP,
            made_at: 0,
            bytes: FIRST,
        };
        let file = Arc::new(disk.create(&segment::path(folder, header.number))?);
        Segment::begin(Arc::clone(&file), header)?;
        file.sync()?;
        Note::begin(disk, folder, FIRST_GROUP - 1)?;
        disk.sync_folder(folder)
    }

    /// Opens the log, hands over the rows of the groups from a place on, or of all groups, and
    /// begins a new segment. What is not whole is dropped if it was never acknowledged. Otherwise it
    /// is an error, or is left out, as the settings say.
    pub(in crate::store::embedded) fn open(
        disk: D,
        folder: &Path,
        from: Option<Position>,
        settings: OpenSettings<'_>,
        visit: &mut dyn FnMut(&GroupHead, RowRef<'_>),
    ) -> Result<Self, OpenError> {
        let OpenSettings { durability, segment_bytes, .. } = settings;
        let store = settings.store.clone();
        let scanned = Scan::begin(&disk, folder, from, settings)?.read(visit)?;
        let begun = Self::begin(disk, folder, scanned, Growth { durability, segment_bytes });
        begun.map_err(|source| OpenError::Io { path: store, source })
    }

    /// Makes what was read durable, and begins a new segment behind it.
    fn begin(disk: D, folder: &Path, scanned: Scanned<D>, growth: Growth) -> io::Result<Self> {
        let Growth { durability, segment_bytes } = growth;
        scanned.write_again()?;
        let Scanned { newest: full, next_group, time, free_number, leftovers, .. } = scanned;
        let last = Position { segment: full.number, offset: full.end, group: next_group };
        let note = Arc::new(Note::begin(&disk, folder, next_group.saturating_sub(1))?);
        for path in leftovers {
            // The disk may be full. What stays is removed by the next start.
            let _best_effort = disk.remove(&path);
        }
        let numbers = Arc::new(AtomicU64::new(free_number));
        let number = numbers.fetch_add(1, Ordering::Relaxed);
        let bytes = segment_bytes.min(STARTING_BYTES);
        let file = segment::make(&disk, folder, number, bytes)?;
        let newest = begin_segment(&disk, NewFile { number, file, bytes }, last, time)?;
        newest.file.sync()?;
        let state = SyncState {
            file: Arc::clone(&newest.file),
            note: Arc::clone(&note),
            until: Position { segment: number, offset: newest.end, group: next_group },
            is_suspended: false,
        };
        let folder = folder.to_owned();
        let ahead = disk.clone();
        let ahead = Ahead::begin(ahead, folder.clone(), segment_bytes, Arc::clone(&numbers))?;
        ahead.order(Job::Finish { full, note });
        let segments = Arc::new(Segments::new(disk, folder, numbers, state));
        let is_sealed = false;
        let given_up = Vec::new();
        Ok(Self { newest, next_group, time, durability, is_sealed, given_up, segments, ahead })
    }

    /// Writes a group, and syncs it with [`Durability::Sync`]. Afterwards, [`GroupBytes::rows`]
    /// gives its rows with their places. After [`AppendError::Failed`] nothing of the group counts,
    /// and every call is refused until [`Self::restore`] has succeeded.
    pub(in crate::store::embedded) fn append(
        &mut self,
        group: &mut GroupBytes,
        time: u64,
    ) -> Result<AppendedAt, AppendError> {
        group.complete()?;
        let taken = group.taken();
        let is_full = self.is_sealed || !self.newest.has_room(taken);
        let segments = Arc::clone(&self.segments);
        let _alone = is_full.then(|| segments.sync_alone());
        let mut state = segments.state();
        if state.is_suspended {
            return Err(AppendError::Suspended);
        }
        let new = is_full.then(|| self.ahead.take(FIRST + taken as u64)).transpose();
        let new = new.map_err(AppendError::NoRoom)?;
        self.time = self.time.max(time);
        let new_number = new.as_ref().map(|new| new.number);
        let appended = self.write(group, new, &mut state);
        if appended.is_err() {
            state.is_suspended = true;
            self.given_up.extend(new_number);
        }
        appended.map_err(AppendError::Failed)
    }

    fn write(
        &mut self,
        group: &mut GroupBytes,
        new: Option<NewFile<D::File>>,
        state: &mut MutexGuard<'_, SyncState<D::File>>,
    ) -> io::Result<AppendedAt> {
        let number = self.next_group;
        let is_new = new.is_some();
        let new = new
            .map(|new| {
                // A segment with a successor must be whole.
                state.sync_until(self.position())?;
                begin_segment(&self.segments.disk, new, self.position(), self.time)
            })
            .transpose()?;
        let segment = new.as_ref().unwrap_or(&self.newest);
        let is_synced = self.durability == Durability::Sync;
        let stamp = Stamp { number, time: self.time, is_synced };
        let bytes = group.stamped(segment.salt, stamp);
        let offset = u32::try_from(segment.end).map_err(io::Error::other)?;
        segment.file.write_at(bytes, segment.end)?;
        if is_synced || is_new {
            segment.file.sync()?;
            state.note.write(number)?;
        }
        let appended = AppendedAt { segment: segment.number, offset, number };
        let end = segment.end + bytes.len() as u64;
        self.next_group += 1;
        if let Some(new) = new {
            let full = std::mem::replace(&mut self.newest, new);
            self.is_sealed = false;
            state.file = Arc::clone(&self.newest.file);
            self.ahead.order(Job::Finish { full, note: Arc::clone(&state.note) });
        }
        self.newest.end = end;
        if is_synced || is_new {
            state.until = self.position();
        }
        Ok(appended)
    }

    /// Goes on in a new segment after a failed write.
    pub(in crate::store::embedded) fn restore(&mut self) -> io::Result<()> {
        let segments = Arc::clone(&self.segments);
        let _alone = segments.sync_alone();
        let mut state = segments.state();
        if !state.is_suspended {
            return Ok(());
        }
        let last = self.position();
        self.write_again(state.until)?;
        // The note may name the failed group, which is about to be given up.
        state.note.write(last.group.saturating_sub(1))?;
        state.note.sync()?;
        let new = self.ahead.take(0)?;
        let number = new.number;
        let begun = begin_segment(&segments.disk, new, last, self.time);
        let begun = begun.and_then(|new| new.file.sync().map(|()| new));
        let new = begun.inspect_err(|_| self.given_up.push(number))?;
        let full = std::mem::replace(&mut self.newest, new);
        self.is_sealed = false;
        self.ahead.order(Job::Finish { full, note: Arc::clone(&state.note) });
        state.file = Arc::clone(&self.newest.file);
        state.until = self.position();
        state.is_suspended = false;
        for number in self.given_up.drain(..) {
            // If it stays, the next start removes it.
            let _best_effort = segments.remove(number);
        }
        Ok(())
    }

    /// Writes the unsynced groups once more, and syncs them. Their sync may have failed.
    fn write_again(&self, from: Position) -> io::Result<()> {
        let Segment { number, salt, file, end, .. } = &self.newest;
        let mut bytes = vec![0; usize::try_from(end - from.offset).map_err(io::Error::other)?];
        if bytes.is_empty() {
            return Ok(());
        }
        file.read_at(&mut bytes, from.offset)?;
        let mut at = 0;
        while at < bytes.len() {
            let Some(group) = Group::at(&bytes, at, *salt, *number) else {
                let says = "what was written is gone: the disk failed to write it";
                return Err(io::Error::new(io::ErrorKind::InvalidData, says));
            };
            at = group.end;
        }
        file.write_at(&bytes, from.offset)?;
        file.sync()
    }

    /// Whether the next segment is ready or being made. If not, the disk is full, and only calls
    /// that end something may write.
    pub(in crate::store::embedded) fn has_room(&self) -> bool {
        self.ahead.has_room()
    }

    /// Whether a write has failed. Then the log must be restored.
    pub(in crate::store::embedded) fn is_suspended(&self) -> bool {
        self.segments.state().is_suspended
    }

    /// Lets the next group begin a new segment.
    pub(in crate::store::embedded) const fn seal(&mut self) {
        self.is_sealed = self.newest.end > FIRST;
    }

    /// Returns the place behind the last group.
    pub(in crate::store::embedded) const fn position(&self) -> Position {
        Position { segment: self.newest.number, offset: self.newest.end, group: self.next_group }
    }

    /// Returns what reads the segments.
    pub(in crate::store::embedded) const fn segments(&self) -> &Arc<Segments<D>> {
        &self.segments
    }

    /// Syncs all groups, and notes that.
    pub(in crate::store::embedded) fn close(self) -> io::Result<()> {
        self.segments.sync_until(self.position())?;
        let state = self.segments.state();
        // After a failed write, the note must not name the failed group.
        if !state.is_suspended {
            state.note.sync()?;
        }
        drop(state);
        self.ahead.end();
        Ok(())
    }
}

/// Makes a file the next segment. The header is not synced.
fn begin_segment<D: Disk>(
    disk: &D,
    NewFile { number, file, bytes }: NewFile<D::File>,
    last: Position,
    made_at: u64,
) -> io::Result<Segment<D::File>> {
    let header = Header {
        kind: Kind::Main,
        number,
        salt: disk.random()?,
        previous: last.segment,
        previous_end: last.offset,
        first_group: last.group,
        made_at,
        bytes,
    };
    Segment::begin(Arc::new(file), header)
}
