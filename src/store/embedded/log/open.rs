//! Opens a log: finds its segments, reads what lies behind a position, and begins a new segment.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::append::{Active, Begin, Log};
use super::disk::Disk;
use super::group::WholeGroup;
use super::note::SyncedNote;
use super::read::{Content, Segments};
use super::scan::{Expected, LossKind, LostPart, scan};
use super::segment::{self, End, Header, Kind};
use super::spare::Spare;
use super::{Position, SECTOR, SEGMENT_BYTES};
use crate::store::embedded::settings::Durability;

/// What is wrong with a log.
#[derive(Debug)]
pub(in crate::store::embedded) enum Fault {
    /// A file is not there.
    Missing(PathBuf),
    /// A part of a segment is damaged.
    Damaged { segment: PathBuf, lost: LostPart },
    /// The log does not reach the group up to which it was synced.
    Short { segment: PathBuf, offset: u64 },
    /// The disk failed.
    Io(io::Error),
}

impl From<io::Error> for Fault {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// Reads a log.
pub(in crate::store::embedded) trait Visitor {
    /// A segment that is read.
    fn segment(&mut self, segment: u64);
    /// A whole group, in a segment.
    fn group(&mut self, segment: u64, group: &WholeGroup<'_>);
    /// Whether to go on without what is damaged or missing. What is dropped because it was never
    /// synced is only told.
    fn fault(&mut self, fault: &Fault) -> bool;
    /// A part that is dropped because it was never synced.
    fn dropped(&mut self, segment: &Path, lost: &LostPart);
}

/// How a log is opened.
#[derive(Debug)]
pub(in crate::store::embedded) struct Opened {
    pub(in crate::store::embedded) disk: Arc<dyn Disk>,
    pub(in crate::store::embedded) folder: PathBuf,
    pub(in crate::store::embedded) durability: Durability,
    /// The position from which to read; none to read all.
    pub(in crate::store::embedded) from: Option<Position>,
    pub(in crate::store::embedded) time: u64,
}

impl Opened {
    /// Makes an empty log in an empty folder, durably.
    pub(in crate::store::embedded) fn create(disk: &dyn Disk, folder: &Path) -> io::Result<()> {
        let file = segment::prepare(disk, folder, 0, SECTOR as u64)?;
        Active::begin(file, None, Begin { number: 0, group: 1, time: 0 })?.file.sync()?;
        SyncedNote::begin(disk, folder, 0).map(drop)
    }

    /// Opens the log.
    pub(in crate::store::embedded) fn open(self, visitor: &mut dyn Visitor) -> Result<Log, Fault> {
        let Self { disk, folder, durability, from, time } = self;
        let segments = Arc::new(Segments::new(disk, &folder));
        let disk = &*segments.disk;
        let synced = synced(disk, &folder, visitor)?;
        let Found { main, newest_number } = find(disk, &folder, from, visitor)?;
        let mut end = None;
        let mut next = from.map_or(1, |from| from.group);
        let mut last_whole = None;
        for (index, header) in main.iter().enumerate() {
            let content = content(&segments, header.number)?;
            let successor = main.get(index + 1);
            let is_first = index == 0;
            let at = from.filter(|_| is_first).map_or(SECTOR as u64, |from| from.offset);
            let expected = Expected {
                from: usize::try_from(at).map_err(io::Error::other)?,
                group: if is_first { next } else { header.first_group },
                end: successor
                    .and_then(|header| header.previous)
                    .and_then(|end| usize::try_from(end.offset).ok()),
                may_be_several: durability == Durability::Os,
            };
            let path = segment::path(&folder, header.number);
            let scanned = scan(&content, expected);
            let mut is_cut = false;
            for lost in scanned.lost {
                if lost.kind == LossKind::Damaged {
                    let fault = Fault::Damaged { segment: path.clone(), lost };
                    if !visitor.fault(&fault) {
                        return Err(fault);
                    }
                } else {
                    visitor.dropped(&path, &lost);
                    is_cut = true;
                }
            }
            visitor.segment(header.number);
            scanned.groups.iter().for_each(|group| visitor.group(header.number, group));
            next = scanned.next;
            end = Some(End { segment: header.number, offset: scanned.end as u64 });
            if let Some(group) = scanned.groups.last() {
                last_whole = Some((header.number, group.begin as u64, group.end as u64));
            }
            if is_cut {
                // What was never synced is dropped with all that came after it.
                break;
            }
        }
        if next <= synced
            && let Some(end) = end
        {
            let fault =
                Fault::Short { segment: segment::path(&folder, end.segment), offset: end.offset };
            if !visitor.fault(&fault) {
                return Err(fault);
            }
        }
        let kept_from = end.map_or(0, |end| end.segment);
        for header in main.iter().filter(|header| header.number > kept_from) {
            segments.remove(header.number)?;
        }
        // If the sync of the last group failed, the operating system may no longer try to write it
        // but still have it in memory. It then reads as whole, but only until the machine stops.
        if let Some((number, begin, end)) = last_whole {
            write_again(&segments, number, begin..end)?;
        }
        // Numbers of groups are not used again either, so a group that is dropped never fits.
        let next = next.max(synced + 1);
        let number = newest_number + 1;
        let file = segment::prepare(disk, &folder, number, SEGMENT_BYTES)?;
        let active = Active::begin(file, end, Begin { number, group: next, time })?;
        active.file.sync()?;
        let note = SyncedNote::begin(disk, &folder, next - 1)?;
        let spare = Spare::start(&segments, number + 1)?;
        Ok(Log {
            segments,
            durability,
            active,
            next_group: next,
            next_segment: number + 2,
            spare,
            note,
            is_suspended: false,
        })
    }
}

/// The segments of a log.
struct Found {
    /// The main segments from the position on, in their order.
    main: Vec<Header>,
    /// The highest number that any segment has.
    newest_number: u64,
}

/// Finds the segments that must be read, and removes those that were never begun.
fn find(
    disk: &dyn Disk,
    folder: &Path,
    from: Option<Position>,
    visitor: &mut dyn Visitor,
) -> Result<Found, Fault> {
    let numbers = segment::numbers(disk, folder)?;
    let first = from.map_or(0, |from| from.segment);
    let mut main: Vec<Header> = Vec::new();
    let mut headless = Vec::new();
    for number in &numbers {
        match segment::header(disk, folder, *number)? {
            Some(header) if header.kind == Kind::Main && *number >= first => main.push(header),
            Some(_) => {}
            None => headless.push(*number),
        }
    }
    // Every main segment names the one before it, so a missing one is noticed.
    let mut last = None;
    for header in &main {
        let named = header.previous.map(|end| end.segment);
        let missing = match (last, from) {
            (Some(last), _) => named.filter(|named| *named != last),
            (None, Some(from)) => Some(from.segment).filter(|first| *first != header.number),
            (None, None) => named,
        };
        if let Some(missing) = missing {
            let fault = missing_segment(segment::path(folder, missing), headless.contains(&missing));
            if !visitor.fault(&fault) {
                return Err(fault);
            }
        }
        last = Some(header.number);
    }
    if main.is_empty() {
        let fault = Fault::Missing(segment::path(folder, first));
        if !visitor.fault(&fault) {
            return Err(fault);
        }
    }
    for number in headless {
        // A segment that was made ahead. A copy that a person made of the folder may lack it.
        disk.remove(&segment::path(folder, number))?;
    }
    Ok(Found { main, newest_number: numbers.last().copied().unwrap_or(first) })
}

/// Says what is wrong with a segment that others name.
fn missing_segment(segment: PathBuf, is_headless: bool) -> Fault {
    if is_headless {
        let range = 0..SECTOR as u64;
        let lost = LostPart { range, kind: LossKind::Damaged, rows: Vec::new() };
        return Fault::Damaged { segment, lost };
    }
    Fault::Missing(segment)
}

/// Returns the number of the group up to which the log was synced.
fn synced(disk: &dyn Disk, folder: &Path, visitor: &mut dyn Visitor) -> Result<u64, Fault> {
    let fault = match SyncedNote::read(disk, folder) {
        Ok(synced) => return Ok(synced),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            Fault::Missing(super::note::path(folder))
        }
        Err(error) => Fault::Io(error),
    };
    if visitor.fault(&fault) { Ok(0) } else { Err(fault) }
}

fn content(segments: &Segments, number: u64) -> io::Result<Content> {
    segments.content(number)?.ok_or_else(|| io::Error::other("the header has changed"))
}

/// Writes the last group once more, in the same place, and syncs it.
fn write_again(segments: &Segments, number: u64, range: std::ops::Range<u64>) -> io::Result<()> {
    let file = segments.disk.open(&segment::path(&segments.folder, number))?;
    let length = usize::try_from(range.end - range.start).map_err(io::Error::other)?;
    let mut bytes = vec![0; length];
    file.read_at(&mut bytes, range.start)?;
    file.write_at(&bytes, range.start)?;
    file.sync()
}
