//! Finds the whole groups of a journal, and the cause of every other part.

use std::ops::Range;

use super::group::{
    Fault, JournalGroup, RecordRow, START, changes_at, ends_in, group_at, records_in,
};
use crate::operation::OperationId;
use crate::store::embedded::settings::Durability;
use crate::store::embedded::stuffing::{ZEROS_MAX, unstuff};
use crate::store::{codec, probe};

/// The smallest unit that a disk writes as a whole.
pub(super) const SECTOR: usize = 512;

/// The number of zeros in a row that shows that bytes were never written. Records have at most
/// [`ZEROS_MAX`] zeros in a row, and the numbers between records add a few.
const MANY_ZEROS: usize = 2 * ZEROS_MAX;

/// The result of an examination of a journal.
#[derive(Debug)]
pub(super) struct Examined {
    /// The ranges of the whole groups, in order.
    pub(super) whole: Vec<Range<usize>>,
    /// The parts between and behind the whole groups.
    pub(super) lost: Vec<LostPart>,
    /// The sequence number of the last whole group.
    pub(super) last: Option<u64>,
}

/// A part of a journal that is not a whole group.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct LostPart {
    pub(super) range: Range<usize>,
    pub(super) kind: LossKind,
    /// The number of records that the part changed; none if one of its groups does not show it.
    pub(super) changes: Option<u64>,
    /// The operations of these records, as far as the rows can be read.
    pub(super) operations: Vec<OperationId>,
}

/// The reason why a part of a journal is not a whole group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LossKind {
    /// The part was not written to its end.
    Unfinished,
    /// Sectors of the part were never written, because it was not synced.
    Unsynced,
    /// The bytes of the part were written, and have changed since.
    Damaged,
}

impl Examined {
    /// Returns the parts whose loss no crash explains.
    pub(super) fn damaged(&self) -> impl Iterator<Item = &LostPart> {
        self.lost.iter().filter(|lost| lost.kind == LossKind::Damaged)
    }

    /// Notes that synced groups are missing. A crash does not cause that, so every lost part counts
    /// as damaged. Something is lost even if the journal shows no lost part.
    pub(super) fn mark_all_damaged(&mut self) {
        self.lost.iter_mut().for_each(|lost| lost.kind = LossKind::Damaged);
        if self.lost.is_empty() {
            let end = self.whole.last().map_or(0, |last| last.end);
            let kind = LossKind::Damaged;
            self.lost.push(LostPart {
                range: end..end,
                kind,
                changes: None,
                operations: Vec::new(),
            });
        }
    }
}

/// Examines the bytes of a journal. The zeros at its end must have been cut off.
///
/// For the newest journal, `newest` is the durability of the store. For an older journal it is
/// none, because an older journal was synced when it was full. `last` is the sequence number of the
/// last group before this journal.
pub(super) fn examine(bytes: &[u8], newest: Option<Durability>, last: Option<u64>) -> Examined {
    let mut examined = Examined { whole: Vec::new(), lost: Vec::new(), last };
    let mut at = 0;
    let mut latest = None;
    while at < bytes.len() {
        match group_at(bytes, at, examined.last) {
            Ok(group) => {
                examined.whole.push(at..group.end);
                examined.last = Some(group.sequence);
                at = group.end;
                latest = Some(group);
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
                examined.lost.push(tail.lost(end, never_synced.unwrap_or(LossKind::Damaged)));
                at = end;
            }
        }
    }
    examined
}

/// Whether several groups may have been written without a sync. The label of the latest whole group
/// decides, because the setting may have changed since. Without a label the setting decides.
fn may_be_several(durability: Durability, latest: Option<JournalGroup>) -> bool {
    let label = latest.and_then(|group| group.label);
    label.map_or(durability == Durability::Os, |label| !label.is_synced)
}

/// The bytes from a place at which a whole group should begin, but does not.
struct Tail<'a> {
    bytes: &'a [u8],
    at: usize,
    fault: Fault,
}

impl Tail<'_> {
    /// Returns the place at which the next whole group begins.
    fn next_whole(&self, last: Option<u64>) -> Option<usize> {
        // A whole group ends with a mark, so no whole group begins behind the last mark.
        let until = ends_in(self.bytes, self.at..self.bytes.len()).last()?;
        let is_whole = |at: &usize| group_at(self.bytes, *at, last).is_ok();
        (self.at + 1..until).find(is_whole)
    }

    /// Returns the cause of this part, if it was never synced. Returns none if it may have been
    /// acknowledged.
    fn never_synced(&self, may_be_several: bool, next: Option<usize>) -> Option<LossKind> {
        if next.is_some() && !may_be_several {
            return None;
        }
        let marked = ends_in(self.bytes, self.at..self.bytes.len()).next();
        if self.fault.is_cut && marked.is_none() {
            return Some(LossKind::Unfinished);
        }
        let end = self.fault.end.or(marked).unwrap_or(self.bytes.len());
        // If another group followed, this one would have been synced.
        let is_last = may_be_several || end == self.bytes.len();
        (is_last && self.misses_a_sector(end)).then_some(LossKind::Unsynced)
    }

    /// Whether a sector of the group is missing. In a missing sector, all bytes of the group are
    /// zeros. A sector may also have been written while the group was incomplete. Such a sector has
    /// the first rows, and zeros behind them.
    fn misses_a_sector(&self, end: usize) -> bool {
        let starts = (self.at / SECTOR * SECTOR..end).step_by(SECTOR);
        let misses_a_whole_one = starts.map(|start| start.max(self.at)).any(|start| {
            let zeros = self.zeros_at(start, end);
            // The group may have only one byte in its first sector: its tag, which is 1. One
            // flipped bit turns the tag into 0, and that is damage.
            let is_tag = start == self.at && zeros == Some(1) && self.is_whole_with_its_tag(end);
            zeros.is_some() && !is_tag
        });
        let is_inside = (self.at..end).contains(&self.fault.at);
        let rest = self.zeros_at(self.fault.at, end).filter(|_| is_inside);
        misses_a_whole_one || rest.is_some_and(|zeros| zeros >= MANY_ZEROS)
    }

    /// Returns the number of bytes from `start` to the end of the sector or of the group, if all of
    /// them are zeros.
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

    fn lost(&self, end: usize, kind: LossKind) -> LostPart {
        let bytes = self.bytes;
        let range = self.at..end;
        let behind = ends_in(bytes, range.clone()).filter(|at| *at < end);
        let groups = std::iter::once(self.at).chain(behind);
        let changes = groups.map(|at| changes_at(bytes, at).map(u64::from)).sum();
        let operations = operations_in(bytes, &range);
        LostPart { range, kind, changes, operations }
    }
}

/// Returns the operations whose records are in a range, as far as the rows can be read. The
/// throw-away operations of probes are left out, because no sender sent them.
fn operations_in(bytes: &[u8], range: &Range<usize>) -> Vec<OperationId> {
    let mut operations = Vec::new();
    for RecordRow { id, kept } in records_in(bytes, range) {
        let record = unstuff(kept).and_then(|record| codec::decode(&record));
        let is_probe = record.is_ok_and(|operation| probe::is_throw_away(&operation));
        if !is_probe && !operations.contains(&id) {
            operations.push(id);
        }
    }
    operations
}
