//! What one process gives to all requests together: memory, and places.
//!
//! Memory is counted by what is allocated for it. Lengths say too little: a buffer that grows by
//! doubling holds up to twice what is in it, and a field of one byte in a head takes a hundred.

mod buffer;
mod places;

pub use buffer::Buffer;
pub use places::{PeerLimit, Place, Places, Settings as PlaceSettings, Share, network};

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use prometheus_client::metrics::gauge::Gauge;

use crate::telemetry::{Limit, Metrics};

/// The memory for requests and answers: `server.limits.buffered_bytes_max`.
#[derive(Debug, Clone)]
pub struct Budget(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    used: AtomicUsize,
    bytes_max: usize,
    gauge: Gauge,
    metrics: Arc<Metrics>,
}

/// There is no memory left.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("`buffered_bytes_max` is reached")]
pub struct Exhausted;

impl Budget {
    /// Room for `bytes_max` bytes.
    pub fn new(bytes_max: usize, metrics: Arc<Metrics>) -> Self {
        let gauge = metrics.buffered_bytes.clone();
        Self(Arc::new(Shared { used: AtomicUsize::new(0), bytes_max, gauge, metrics }))
    }

    /// Room for the control plane, which must be usable while the data plane has none left. It is
    /// no part of `onceward_buffered_bytes`.
    pub fn of_the_control_plane(bytes_max: usize, metrics: Arc<Metrics>) -> Self {
        let gauge = Gauge::default();
        Self(Arc::new(Shared { used: AtomicUsize::new(0), bytes_max, gauge, metrics }))
    }

    /// Nothing yet; it grows with what it is for.
    pub fn reserve_none(&self) -> Reserved {
        Reserved { budget: self.clone(), bytes: 0 }
    }

    /// Memory for `bytes` bytes.
    pub fn reserve(&self, bytes: usize) -> Result<Reserved, Exhausted> {
        let mut reserved = self.reserve_none();
        reserved.grow(bytes)?;
        Ok(reserved)
    }
}

/// Memory that is in use, given back when this is dropped.
#[derive(Debug)]
pub struct Reserved {
    budget: Budget,
    bytes: usize,
}

impl Reserved {
    /// Takes `bytes` more that are there already, whether or not there is room: what comes next is
    /// refused instead.
    pub fn take_over(&mut self, bytes: usize) {
        let Shared { used, gauge, .. } = &*self.budget.0;
        used.fetch_add(bytes, Ordering::Relaxed);
        self.bytes += bytes;
        gauge.inc_by(signed(bytes));
    }

    /// Takes `bytes` more.
    pub fn grow(&mut self, bytes: usize) -> Result<(), Exhausted> {
        let Shared { used, bytes_max, gauge, metrics } = &*self.budget.0;
        let taken = used.try_update(Ordering::Relaxed, Ordering::Relaxed, |used| {
            used.checked_add(bytes).filter(|used| used <= bytes_max)
        });
        if taken.is_err() {
            metrics.limit_reached(Limit::BufferedBytes);
            return Err(Exhausted);
        }
        self.bytes += bytes;
        gauge.inc_by(signed(bytes));
        Ok(())
    }

    /// Gives `bytes` of it back.
    pub fn give_back(&mut self, bytes: usize) {
        let bytes = bytes.min(self.bytes);
        let Shared { used, gauge, .. } = &*self.budget.0;
        used.fetch_sub(bytes, Ordering::Relaxed);
        self.bytes -= bytes;
        gauge.dec_by(signed(bytes));
    }

    /// Takes over what another one holds.
    pub fn absorb(&mut self, mut other: Self) {
        if Arc::ptr_eq(&self.budget.0, &other.budget.0) {
            self.bytes += std::mem::take(&mut other.bytes);
        } else {
            self.take_over(other.bytes);
        }
    }

    /// How much it is.
    pub const fn bytes(&self) -> usize {
        self.bytes
    }
}

impl Drop for Reserved {
    fn drop(&mut self) {
        self.give_back(self.bytes);
    }
}

fn signed(bytes: usize) -> i64 {
    i64::try_from(bytes).unwrap_or(i64::MAX)
}

/// What is held for as long as some bytes are in memory.
#[derive(Debug)]
pub struct Held {
    /// Their memory.
    pub memory: Option<Reserved>,
    /// The place of the request whose answer they are.
    pub place: Option<Place>,
}

/// The same bytes, holding this until the last of them is dropped. Pieces of them wait in the
/// buffers of hyper and h2, long after the body that they came from has ended.
pub fn holding(bytes: Bytes, held: Held) -> Bytes {
    if bytes.is_empty() {
        return bytes;
    }
    Bytes::from_owner(Holding { bytes, _held: held })
}

struct Holding {
    bytes: Bytes,
    _held: Held,
}

impl AsRef<[u8]> for Holding {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn budget(bytes_max: usize) -> Budget {
        Budget::new(bytes_max, Arc::new(Metrics::new()))
    }

    #[test]
    fn what_is_dropped_is_given_back_and_the_limit_is_never_passed() {
        let budget = budget(10);
        let mut first = budget.reserve_none();
        first.grow(6).unwrap();
        let mut second = budget.reserve_none();
        assert_eq!(second.grow(5), Err(Exhausted));
        second.grow(4).unwrap();
        drop(first);
        second.grow(6).unwrap();
        assert_eq!(second.grow(1), Err(Exhausted));
        second.give_back(3);
        assert_eq!((second.bytes(), second.grow(3)), (7, Ok(())));
    }

    #[test]
    fn what_is_absorbed_is_given_back_once() {
        let budget = budget(10);
        let mut all = budget.reserve(4).unwrap();
        all.absorb(budget.reserve(6).unwrap());
        assert_eq!((all.bytes(), budget.reserve(1).unwrap_err()), (10, Exhausted));
        drop(all);
        assert_eq!(budget.reserve(10).unwrap().bytes(), 10);
    }

    #[test]
    fn memory_is_held_by_the_last_piece_of_the_bytes() {
        let budget = budget(10);
        let held = Held { memory: Some(budget.reserve(10).unwrap()), place: None };
        let mut bytes = holding(Bytes::from_static(b"0123456789"), held);
        let piece = bytes.split_to(1);
        drop(bytes);
        assert!(budget.reserve(1).is_err());
        drop(piece);
        assert!(budget.reserve(10).is_ok());
    }
}
