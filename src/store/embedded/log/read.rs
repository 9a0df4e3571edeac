//! Reads the segments. The threads of a store share it.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;

use super::disk::{Disk, DiskFile};
use super::segment::{self, Header, Kind};
use super::{Place, Position, SECTOR, group};
use crate::store::embedded::log::group::WholeGroup;

/// The most segments that are kept open for reading.
const OPEN_MAX: usize = 64;

/// The segments of a log.
#[derive(Debug)]
pub(in crate::store::embedded) struct Segments {
    pub(super) disk: Arc<dyn Disk>,
    pub(super) folder: PathBuf,
    open: Mutex<BTreeMap<u64, Arc<dyn DiskFile>>>,
}

impl Segments {
    pub(super) fn new(disk: Arc<dyn Disk>, folder: &Path) -> Self {
        Self { disk, folder: folder.to_owned(), open: Mutex::default() }
    }

    /// Reads the bytes at a place.
    pub(in crate::store::embedded) fn read(&self, place: Place) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; place.length as usize];
        self.file(place.segment)?.read_at(&mut bytes, place.offset.into())?;
        Ok(bytes)
    }

    fn file(&self, number: u64) -> io::Result<Arc<dyn DiskFile>> {
        let mut open = self.open.lock();
        if let Some(file) = open.get(&number) {
            return Ok(Arc::clone(file));
        }
        let file = self.disk.open(&segment::path(&self.folder, number))?;
        // Old segments are read least.
        if open.len() >= OPEN_MAX {
            open.pop_first();
        }
        open.insert(number, Arc::clone(&file));
        Ok(file)
    }

    /// Removes a segment in which nothing is needed any more.
    pub(in crate::store::embedded) fn remove(&self, number: u64) -> io::Result<()> {
        self.open.lock().remove(&number);
        match self.disk.remove(&segment::path(&self.folder, number)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            removed => removed,
        }
    }

    /// The numbers of all segments, in ascending order.
    pub(in crate::store::embedded) fn numbers(&self) -> io::Result<Vec<u64>> {
        segment::numbers(&*self.disk, &self.folder)
    }

    /// Makes all groups before a position durable, from this segment on.
    pub(in crate::store::embedded) fn sync(&self, from: u64, until: Position) -> io::Result<()> {
        let numbers = self.numbers()?;
        let synced = numbers.into_iter().filter(|number| (from..=until.segment).contains(number));
        synced.into_iter().try_for_each(|number| self.file(number)?.sync())
    }

    /// Reads a segment. None: it has no header yet.
    pub(in crate::store::embedded) fn content(&self, number: u64) -> io::Result<Option<Content>> {
        let bytes = segment::content(&*self.disk, &self.folder, number)?;
        let header = bytes.get(..SECTOR).and_then(Header::from_bytes);
        Ok(header.filter(|header| header.number == number).map(|header| Content { header, bytes }))
    }
}

/// The bytes of a segment.
#[derive(Debug)]
pub(in crate::store::embedded) struct Content {
    pub(super) header: Header,
    pub(super) bytes: Vec<u8>,
}

impl Content {
    pub(in crate::store::embedded) const fn kind(&self) -> Kind {
        self.header.kind
    }

    /// The whole groups from the beginning, until something else comes.
    pub(in crate::store::embedded) fn groups(&self) -> impl Iterator<Item = WholeGroup<'_>> {
        let mut at = SECTOR;
        let mut number = self.header.first_group;
        std::iter::from_fn(move || {
            let group = group::read(&self.bytes, at, self.header.salt)?;
            at = group.end;
            let is_next = group.label.number == number;
            number += 1;
            is_next.then_some(group)
        })
    }
}
