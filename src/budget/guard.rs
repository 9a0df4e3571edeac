//! Ties a reservation to the bytes that it is for.

use bytes::Bytes;

use super::memory::Reserved;
use super::places::Place;

/// What is released when some bytes leave memory.
#[derive(Debug)]
pub struct BytesGuard {
    /// The memory of the bytes.
    pub memory: Option<Reserved>,
    /// The place of the request whose answer the bytes are.
    pub place: Option<Place>,
}

/// The same bytes, keeping `guard` until the last slice of them is dropped.
///
/// The end of a body is too early to release its memory: slices of it wait in the buffers of hyper
/// and h2 until a slow reader has taken them.
pub fn guard_bytes(bytes: Bytes, guard: BytesGuard) -> Bytes {
    // Nobody keeps a slice of nothing: the guard is dropped at once.
    if bytes.is_empty() {
        return bytes;
    }
    Bytes::from_owner(GuardedBytes { bytes, _guard: guard })
}

struct GuardedBytes {
    bytes: Bytes,
    _guard: BytesGuard,
}

impl AsRef<[u8]> for GuardedBytes {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::budget::Budget;
    use crate::telemetry::Metrics;

    #[test]
    fn memory_is_held_by_the_last_piece_of_the_bytes() {
        let budget = Budget::new(10, Arc::new(Metrics::new()));
        let guard = BytesGuard { memory: Some(budget.reserve(10).unwrap()), place: None };
        let mut bytes = guard_bytes(Bytes::from_static(b"0123456789"), guard);
        let piece = bytes.split_to(1);
        drop(bytes);
        assert!(budget.reserve(1).is_err());
        drop(piece);
        assert!(budget.reserve(10).is_ok());
    }
}
