//! How many bytes of bodies may be in memory at a time, over all requests.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::telemetry::{Limit, Metrics};

/// The memory for bodies: `server.limits.buffered_bytes_max`.
#[derive(Debug, Clone)]
pub struct Budget(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    used: AtomicUsize,
    bytes_max: usize,
    metrics: Arc<Metrics>,
}

/// There is no memory left for a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("`buffered_bytes_max` is reached")]
pub struct Exhausted;

impl Budget {
    /// Room for `bytes_max` bytes.
    pub fn new(bytes_max: usize, metrics: Arc<Metrics>) -> Self {
        Self(Arc::new(Shared { used: AtomicUsize::new(0), bytes_max, metrics }))
    }

    /// Nothing yet; it grows with the body.
    pub fn reserve_none(&self) -> Reserved {
        Reserved { budget: self.clone(), bytes: 0 }
    }
}

/// Memory for one body, given back when it is dropped.
#[derive(Debug)]
pub struct Reserved {
    budget: Budget,
    bytes: usize,
}

impl Reserved {
    /// Takes `bytes` more that are there already, whether or not there is room: what comes next is
    /// refused instead.
    pub fn take_over(&mut self, bytes: usize) {
        let Shared { used, metrics, .. } = &*self.budget.0;
        used.fetch_add(bytes, Ordering::Relaxed);
        self.bytes += bytes;
        metrics.buffered_bytes.inc_by(i64::try_from(bytes).unwrap_or(i64::MAX));
    }

    /// Takes `bytes` more.
    pub fn grow(&mut self, bytes: usize) -> Result<(), Exhausted> {
        let Shared { used, bytes_max, metrics } = &*self.budget.0;
        let taken = used.try_update(Ordering::Relaxed, Ordering::Relaxed, |used| {
            used.checked_add(bytes).filter(|used| used <= bytes_max)
        });
        if taken.is_err() {
            metrics.limit_reached(Limit::BufferedBytes);
            return Err(Exhausted);
        }
        self.bytes += bytes;
        metrics.buffered_bytes.inc_by(i64::try_from(bytes).unwrap_or(i64::MAX));
        Ok(())
    }
}

impl Drop for Reserved {
    fn drop(&mut self) {
        let Shared { used, metrics, .. } = &*self.budget.0;
        used.fetch_sub(self.bytes, Ordering::Relaxed);
        metrics.buffered_bytes.dec_by(i64::try_from(self.bytes).unwrap_or(i64::MAX));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_dropped_is_given_back_and_the_limit_is_never_passed() {
        let budget = Budget::new(10, Arc::new(Metrics::new()));
        let mut first = budget.reserve_none();
        first.grow(6).unwrap();
        let mut second = budget.reserve_none();
        assert_eq!(second.grow(5), Err(Exhausted));
        second.grow(4).unwrap();
        drop(first);
        second.grow(6).unwrap();
        assert_eq!(second.grow(1), Err(Exhausted));
    }
}
