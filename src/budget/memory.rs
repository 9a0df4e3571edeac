//! The budget of bytes that requests and answers may have in memory.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use prometheus_client::metrics::gauge::Gauge;

use crate::telemetry::{Limit, Metrics};

/// The memory for requests and answers: `server.limits.buffered_bytes_max`. Clones share it.
#[derive(Debug, Clone)]
pub struct Budget(Arc<Account>);

#[derive(Debug)]
struct Account {
    /// Metrics show this count itself.
    used: Gauge,
    bytes_max: usize,
    metrics: Arc<Metrics>,
}

/// The budget has no memory left.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("`buffered_bytes_max` is reached")]
pub struct Exhausted;

impl Budget {
    /// A budget of `bytes_max` bytes.
    pub fn new(bytes_max: usize, metrics: Arc<Metrics>) -> Self {
        let used = metrics.buffered_bytes.clone();
        Self(Arc::new(Account { used, bytes_max, metrics }))
    }

    /// A budget for the control plane, which must stay usable while the data plane has no memory
    /// left. It is not part of the metric `onceward_buffered_bytes`.
    pub fn for_control_plane(bytes_max: usize, metrics: Arc<Metrics>) -> Self {
        Self(Arc::new(Account { used: Gauge::default(), bytes_max, metrics }))
    }

    /// A reservation of nothing, which grows with what it is for.
    pub fn reserve_none(&self) -> Reserved {
        Reserved { budget: self.clone(), bytes: 0 }
    }

    /// Reserves `bytes` bytes.
    pub fn reserve(&self, bytes: usize) -> Result<Reserved, Exhausted> {
        let mut reserved = self.reserve_none();
        reserved.grow(bytes)?;
        Ok(reserved)
    }
}

/// Bytes of a budget that are in use. Dropping this returns them.
#[derive(Debug)]
pub struct Reserved {
    budget: Budget,
    bytes: usize,
}

impl Reserved {
    /// Adds `bytes` that are in memory already, even beyond the limit. Not to count them would be
    /// worse: so the next reservations are refused instead.
    pub fn grow_past_limit(&mut self, bytes: usize) {
        self.budget.0.used.inc_by(signed(bytes));
        self.bytes += bytes;
    }

    /// Adds `bytes`, or nothing if the budget has no room for all of them.
    pub fn grow(&mut self, bytes: usize) -> Result<(), Exhausted> {
        let Account { used, bytes_max, metrics } = &*self.budget.0;
        // Compared and added in one step: two threads must not both find the last bytes free.
        // `Relaxed` suffices: the count protects no other data.
        let taken = used.inner().try_update(Ordering::Relaxed, Ordering::Relaxed, |used| {
            used.checked_add(signed(bytes)).filter(|used| *used <= signed(*bytes_max))
        });
        if taken.is_err() {
            metrics.limit_reached(Limit::BufferedBytes);
            return Err(Exhausted);
        }
        self.bytes += bytes;
        Ok(())
    }

    /// Returns `bytes` of it to the budget.
    pub fn shrink(&mut self, bytes: usize) {
        let bytes = bytes.min(self.bytes);
        self.budget.0.used.dec_by(signed(bytes));
        self.bytes -= bytes;
    }

    /// Adds the bytes of another reservation to this one.
    pub fn absorb(&mut self, mut other: Self) {
        if Arc::ptr_eq(&self.budget.0, &other.budget.0) {
            self.bytes += std::mem::take(&mut other.bytes);
        } else {
            // Dropping `other` returns its bytes to its own budget.
            self.grow_past_limit(other.bytes);
        }
    }

    /// How many bytes it is.
    pub const fn bytes(&self) -> usize {
        self.bytes
    }
}

impl Drop for Reserved {
    fn drop(&mut self) {
        self.shrink(self.bytes);
    }
}

/// The gauge counts in `i64`.
fn signed(bytes: usize) -> i64 {
    i64::try_from(bytes).unwrap_or(i64::MAX)
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
        second.shrink(3);
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
}
