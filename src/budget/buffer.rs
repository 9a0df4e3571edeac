//! A buffer for a body that comes in, counted in the budget as it grows.

use bytes::{BufMut as _, Bytes, BytesMut};

use super::memory::{Budget, Exhausted, Reserved};

/// The first segment of a body of unknown length, at least.
const SEGMENT_BYTES_MIN: usize = 1024;
/// The first segment of a body of known length, at most. A peer that announces a large body and
/// sends nothing must not take memory from others.
const FIRST_BYTES_MAX: usize = 16 * 1024;
/// Every later segment, at most.
const SEGMENT_BYTES_MAX: usize = 64 * 1024;

/// A body that grows, counted by its capacity.
///
/// It grows by adding segments, and does not move to larger allocations. An allocation that was
/// left stays with the allocator for a while, so many bodies that grow at the same time would take
/// twice the memory that is counted.
#[derive(Debug)]
pub struct Buffer {
    /// All segments but the last, each full.
    full: Vec<BytesMut>,
    last: BytesMut,
    length: usize,
    memory: Reserved,
    expected: Option<usize>,
}

impl Buffer {
    /// An empty buffer. `expected`: the length that the body announces, in bytes.
    pub fn new(budget: &Budget, expected: Option<usize>) -> Self {
        Self::counted_in(budget.reserve_none(), expected)
    }

    /// An empty buffer that is counted in an existing reservation.
    pub fn counted_in(memory: Reserved, expected: Option<usize>) -> Self {
        Self { full: Vec::new(), last: BytesMut::new(), length: 0, memory, expected }
    }

    /// Its length in bytes.
    pub const fn len(&self) -> usize {
        self.length
    }

    /// Whether it is empty.
    pub const fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// Appends the whole piece, or nothing of it if the budget has no room.
    pub fn append(&mut self, piece: &[u8]) -> Result<(), Exhausted> {
        let missing = piece.len().saturating_sub(self.room());
        if missing == 0 {
            self.fill(piece);
            return Ok(());
        }
        let capacity = self.next_capacity(missing, piece.len());
        // Reserved before anything is filled in: if there is no room, the buffer stays as it was.
        self.memory.grow(capacity)?;
        let rest = self.fill(piece);
        self.add_segment(capacity);
        self.fill(rest);
        Ok(())
    }

    /// Appends a piece that is in memory already, even beyond the limit of the budget.
    pub fn append_anyway(&mut self, piece: &[u8]) {
        let mut left = self.fill(piece);
        if !left.is_empty() {
            self.memory.grow_past_limit(left.len());
            self.add_segment(left.len());
            left = self.fill(left);
        }
        debug_assert!(left.is_empty(), "a segment has room for what it was made for");
    }

    /// The whole body in one allocation, with its memory.
    pub fn finish(mut self) -> (Bytes, Reserved) {
        if self.full.is_empty() {
            return (self.last.freeze(), self.memory);
        }
        // While it is copied the body is in memory twice. Both copies are counted, even beyond the
        // limit: a body that has come in completely must not be refused for that.
        let before = self.memory.bytes();
        self.memory.grow_past_limit(self.length);
        let mut whole = BytesMut::with_capacity(self.length);
        for segment in self.full.drain(..).chain([self.last]) {
            whole.put_slice(&segment);
        }
        self.memory.shrink(before);
        (whole.freeze(), self.memory)
    }

    fn room(&self) -> usize {
        self.last.capacity() - self.last.len()
    }

    /// The capacity of the next segment. Segments double up to a limit; if the body announced its
    /// length, they hold no more than the rest of it.
    fn next_capacity(&self, missing: usize, piece: usize) -> usize {
        let length = self.length + piece - missing;
        let wanted = match self.expected.and_then(|expected| expected.checked_sub(length)) {
            Some(left) if self.length == 0 => left.min(FIRST_BYTES_MAX),
            Some(left) => left.min(SEGMENT_BYTES_MAX),
            None if self.length == 0 => SEGMENT_BYTES_MIN,
            None => self.last.capacity().saturating_mul(2).min(SEGMENT_BYTES_MAX),
        };
        wanted.max(missing)
    }

    fn add_segment(&mut self, capacity: usize) {
        let segment = BytesMut::with_capacity(capacity);
        // `with_capacity` may allocate more than it was asked for.
        self.memory.grow_past_limit(segment.capacity().saturating_sub(capacity));
        let full = std::mem::replace(&mut self.last, segment);
        if !full.is_empty() {
            self.full.push(full);
        }
    }

    /// Fills the last segment. Returns what did not fit.
    fn fill<'p>(&mut self, piece: &'p [u8]) -> &'p [u8] {
        let fits = piece.len().min(self.room());
        let (fits, rest) = piece.split_at_checked(fits).unwrap_or((piece, &[]));
        self.last.put_slice(fits);
        self.length += fits.len();
        rest
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::telemetry::Metrics;

    fn budget(bytes_max: usize) -> Budget {
        Budget::new(bytes_max, Arc::new(Metrics::new()))
    }

    #[test]
    fn a_body_of_a_known_length_takes_exactly_that() {
        let mut buffer = Buffer::new(&budget(10_000_000), Some(530_000));
        for _ in 0..53 {
            buffer.append(&[b'x'; 10_000]).unwrap();
            assert!(buffer.memory.bytes() < buffer.len() + SEGMENT_BYTES_MAX);
        }
        assert_eq!(buffer.memory.bytes(), 530_000);
        let (bytes, memory) = buffer.finish();
        assert_eq!((bytes.len(), memory.bytes()), (530_000, 530_000));
    }

    #[test]
    fn an_announced_length_takes_no_memory_before_it_comes() {
        let mut buffer = Buffer::new(&budget(10_000_000), Some(1_000_000));
        buffer.append(b"x").unwrap();
        assert_eq!(buffer.memory.bytes(), FIRST_BYTES_MAX);
    }

    #[test]
    fn what_is_put_in_comes_out_in_its_order() {
        for expected in [None, Some(3), Some(200_000)] {
            let mut buffer = Buffer::new(&budget(1_000_000), expected);
            let pieces: Vec<u8> = (0..200_000_u32).map(|n| n.to_le_bytes()[0]).collect();
            for piece in pieces.chunks(7_777) {
                buffer.append(piece).unwrap();
            }
            assert_eq!((buffer.len(), buffer.is_empty()), (200_000, false));
            let (bytes, memory) = buffer.finish();
            assert!(bytes == pieces && memory.bytes() == 200_000);
        }
    }

    #[test]
    fn what_is_allocated_is_counted_and_given_back() {
        let budget = budget(100_000);
        let mut buffer = Buffer::new(&budget, None);
        let filled = (0..100).take_while(|_| buffer.append(&[b'x'; 1_000]).is_ok()).count();
        assert!((50..=100).contains(&filled), "{filled}");
        assert!(buffer.memory.bytes() >= buffer.len());
        buffer.append_anyway(&vec![b'y'; 150_000]);
        assert!(buffer.memory.bytes() >= 150_000);
        let (bytes, memory) = buffer.finish();
        assert_eq!((bytes.last(), memory.bytes()), (Some(&b'y'), bytes.len()));
        drop(memory);
        assert!(budget.reserve(100_000).is_ok());
    }
}
