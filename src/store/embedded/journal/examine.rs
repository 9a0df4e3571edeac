//! Which groups of a journal are whole, and what the rest of it is.

use std::ops::Range;

use super::group::{Fault, Group, START, changes_at, ends_in, group_at, operations_in};
use crate::operation::OperationId;
use crate::store::embedded::Durability;
use crate::store::embedded::stuffing::ZEROS_MAX;

/// The smallest unit that a disk writes as a whole.
pub(super) const SECTOR: usize = 512;

/// More zeros than a group has in a row where it was written, with room to spare.
const MANY_ZEROS: usize = 2 * ZEROS_MAX;

/// A journal.
#[derive(Debug)]
pub(super) struct Examined {
    /// Where whole groups are, in order.
    pub(super) whole: Vec<Range<usize>>,
    /// What is between and behind them.
    pub(super) lost: Vec<Lost>,
    /// The last sequence number.
    pub(super) last: Option<u64>,
}

/// A part of a journal that is no whole group.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Lost {
    pub(super) range: Range<usize>,
    pub(super) kind: LostKind,
    /// How many records it changed; none if one of its groups does not say.
    pub(super) changes: Option<u64>,
    /// Operations that it was about, as far as they can be read.
    pub(super) operations: Vec<OperationId>,
}

/// How a part of a journal came to be no whole group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LostKind {
    /// It was not written to its end.
    Unfinished,
    /// Sectors of it were never written: it was not synced.
    Unsynced,
    /// Its bytes were written, and are not what was written.
    Damaged,
}

impl Examined {
    pub(super) fn damaged(&self) -> impl Iterator<Item = &Lost> {
        self.lost.iter().filter(|lost| lost.kind == LostKind::Damaged)
    }

    /// Groups were synced that are not in it. That is not what a crash leaves: no part that is lost
    /// was being written, and something is lost even if none can be seen.
    pub(super) fn has_lost_groups(&mut self) {
        self.lost.iter_mut().for_each(|lost| lost.kind = LostKind::Damaged);
        if self.lost.is_empty() {
            let end = self.whole.last().map_or(0, |last| last.end);
            let kind = LostKind::Damaged;
            self.lost.push(Lost { range: end..end, kind, changes: None, operations: Vec::new() });
        }
    }
}

/// Examines the bytes of a journal, without the zeros at its end. The newest one is as durable as it
/// is told; older ones were synced when they were sealed. `last` is the sequence number before it.
pub(super) fn examine(bytes: &[u8], newest: Option<Durability>, last: Option<u64>) -> Examined {
    let mut examined = Examined { whole: Vec::new(), lost: Vec::new(), last };
    let mut at = 0;
    let mut latest = None;
    while at < bytes.len() {
        match group_at(bytes, at, examined.last) {
            Ok(group) => {
                examined.whole.push(at..group.end);
                (examined.last, latest, at) = (Some(group.sequence), Some(group), group.end);
            }
            Err(fault) => {
                let tail = Tail { bytes, at, fault };
                let next = tail.next_whole(examined.last);
                let never_synced = newest.and_then(|durability| {
                    tail.never_synced(may_be_several(durability, latest), next)
                });
                let end = match (never_synced, next) {
                    (None, Some(next)) => next,
                    (Some(_), _) | (None, None) => bytes.len(),
                };
                examined.lost.push(tail.lost(end, never_synced.unwrap_or(LostKind::Damaged)));
                at = end;
            }
        }
    }
    examined
}

/// Whether several groups may have been written without a sync: by the latest one that says so.
fn may_be_several(durability: Durability, latest: Option<Group>) -> bool {
    let label = latest.and_then(|group| group.label);
    label.map_or(durability == Durability::Os, |label| !label.is_synced)
}

/// What is behind the last whole group.
struct Tail<'a> {
    bytes: &'a [u8],
    at: usize,
    fault: Fault,
}

impl Tail<'_> {
    /// Where the next whole group begins.
    fn next_whole(&self, last: Option<u64>) -> Option<usize> {
        // a whole group ends with a mark, so none begins behind the last mark
        let until = ends_in(self.bytes, self.at..self.bytes.len()).last()?;
        let is_whole = |at: &usize| group_at(self.bytes, *at, last).is_ok();
        (self.at + 1..until).find(is_whole)
    }

    /// How this part came to be no whole group, if nothing in it can have been acknowledged.
    fn never_synced(&self, may_be_several: bool, next: Option<usize>) -> Option<LostKind> {
        if next.is_some() && !may_be_several {
            return None;
        }
        let marked = ends_in(self.bytes, self.at..self.bytes.len()).next();
        if self.fault.is_cut && marked.is_none() {
            return Some(LostKind::Unfinished);
        }
        let end = self.fault.end.or(marked).unwrap_or(self.bytes.len());
        // the next group is written only after this one was synced
        let is_last = may_be_several || end == self.bytes.len();
        (is_last && self.misses_a_sector(end)).then_some(LostKind::Unsynced)
    }

    /// Whether a sector of the group is missing: all bytes that the group has in it are zeros. A
    /// sector may also have been written while the group was incomplete: then it holds the first
    /// entries, and zeros behind them.
    fn misses_a_sector(&self, end: usize) -> bool {
        let starts = (self.at / SECTOR * SECTOR..end).step_by(SECTOR);
        let misses_a_whole_one = starts.map(|start| start.max(self.at)).any(|start| {
            let zeros = self.zeros_at(start, end);
            // the group has one byte in this sector: its tag, which one flipped bit makes a zero
            let is_tag = start == self.at && zeros == Some(1) && self.is_whole_with_its_tag(end);
            zeros.is_some() && !is_tag
        });
        let is_inside = (self.at..end).contains(&self.fault.at);
        let rest = self.zeros_at(self.fault.at, end).filter(|_| is_inside);
        misses_a_whole_one || rest.is_some_and(|zeros| zeros >= MANY_ZEROS)
    }

    /// The number of bytes from here to the end of the sector or of the group, if all are zeros.
    fn zeros_at(&self, start: usize, end: usize) -> Option<usize> {
        let until = (start / SECTOR * SECTOR + SECTOR).min(end);
        let zeros = self.bytes.get(start..until).filter(|part| !part.is_empty())?;
        zeros.iter().all(|byte| *byte == 0).then_some(zeros.len())
    }

    fn is_whole_with_its_tag(&self, end: usize) -> bool {
        let mut group = self.bytes.get(self.at..end).unwrap_or_default().to_vec();
        if let Some(tag) = group.first_mut() {
            *tag = START;
        }
        group_at(&group, 0, None).is_ok()
    }

    fn lost(&self, end: usize, kind: LostKind) -> Lost {
        let bytes = self.bytes;
        let range = self.at..end;
        let behind = ends_in(bytes, range.clone()).filter(|at| *at < end);
        let groups = std::iter::once(self.at).chain(behind);
        let changes = groups.map(|at| changes_at(bytes, at).map(u64::from)).sum();
        let operations = operations_in(bytes, &range);
        Lost { range, kind, changes, operations }
    }
}
