//! The store in memory, under test.

use std::sync::Arc;
use std::time::Duration;

use onceward::clock::Clock;
use onceward::operation::Timestamp;
use onceward::store::Store;
use onceward::store::memory::Memory;

use super::Harness;

pub(super) struct InMemory {
    store: Arc<Memory>,
    clock: Clock,
}

impl Harness for InMemory {
    async fn start() -> Self {
        let clock = Clock::manual(Timestamp(1_800_000_000_000));
        Self { store: Arc::new(Memory::new(clock.clone())), clock }
    }

    fn store(&self) -> Arc<dyn Store> {
        Arc::<Memory>::clone(&self.store)
    }

    async fn pass(&self, time: Duration) {
        self.clock.advance(time);
    }
}
