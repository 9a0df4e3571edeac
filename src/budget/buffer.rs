//! A body while it comes in.

use bytes::{BufMut as _, Bytes, BytesMut};

use super::{Budget, Exhausted, Reserved};

/// The first segment of a body whose length is not known, at least.
const SEGMENT_BYTES_MIN: usize = 1024;
/// The first segment of a body that says how long it will be, at most: who only announces a body
/// takes no memory away.
const FIRST_BYTES_MAX: usize = 16 * 1024;
/// Every other segment, at most.
const SEGMENT_BYTES_MAX: usize = 64 * 1024;

/// A body that grows, counted by its capacity.
///
/// It grows by segments and not by moving: an allocation that was left for a larger one stays with
/// the allocator for a while, and bodies that grow at the same time would take twice their memory.
#[derive(Debug)]
pub struct Buffer {
    full: Vec<BytesMut>,
    last: BytesMut,
    length: usize,
    memory: Reserved,
    expected: Option<usize>,
}

impl Buffer {
    /// An empty one. `expected` is how long the body says that it will be.
    pub fn new(budget: &Budget, expected: Option<usize>) -> Self {
        Self::counted_in(budget.reserve_none(), expected)
    }

    /// The same, counted in memory that is there already.
    pub fn counted_in(memory: Reserved, expected: Option<usize>) -> Self {
        Self { full: Vec::new(), last: BytesMut::new(), length: 0, memory, expected }
    }

    /// How much is in it.
    pub const fn len(&self) -> usize {
        self.length
    }

    /// Whether nothing is in it.
    pub const fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// Adds a piece, the whole or nothing of it.
    pub fn append(&mut self, piece: &[u8]) -> Result<(), Exhausted> {
        let missing = piece.len().saturating_sub(self.room());
        if missing == 0 {
            self.fill(piece);
            return Ok(());
        }
        let capacity = self.next_capacity(missing, piece.len());
        self.memory.grow(capacity)?;
        let rest = self.fill(piece);
        self.add_segment(capacity);
        self.fill(rest);
        Ok(())
    }

    /// Adds a piece that is there already, whether or not there is room.
    pub fn append_anyway(&mut self, piece: &[u8]) {
        let mut left = self.fill(piece);
        if !left.is_empty() {
            self.memory.take_over(left.len());
            self.add_segment(left.len());
            left = self.fill(left);
        }
        debug_assert!(left.is_empty(), "a segment has room for what it was made for");
    }

    /// The whole, in one allocation, and its memory.
    pub fn finish(mut self) -> (Bytes, Reserved) {
        if self.full.is_empty() {
            return (self.last.freeze(), self.memory);
        }
        // For a moment there are two of them. What is allocated next is refused instead.
        let before = self.memory.bytes();
        self.memory.take_over(self.length);
        let mut whole = BytesMut::with_capacity(self.length);
        for segment in self.full.drain(..).chain([self.last]) {
            whole.put_slice(&segment);
        }
        self.memory.give_back(before);
        (whole.freeze(), self.memory)
    }

    fn room(&self) -> usize {
        self.last.capacity() - self.last.len()
    }

    /// Segments double, up to a limit, but hold no more than the body says that it will be.
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
        // The allocator may have given more than was asked for.
        self.memory.take_over(segment.capacity().saturating_sub(capacity));
        let full = std::mem::replace(&mut self.last, segment);
        if !full.is_empty() {
            self.full.push(full);
        }
    }

    /// Fills the last segment. Gives what did not fit.
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
