//! Measures how long the calls to a store take.

use std::sync::Arc;

use async_trait::async_trait;

use super::{Concern, Error, ListPage, ListQuery, RuleCall, Store, SweepReport, Watch};
use crate::clock::Clock;
use crate::operation::state::ReportedState;
use crate::operation::{Operation, OperationId, Subject};
use crate::telemetry::{Metrics, StoreCall};

/// A store whose calls are timed.
#[derive(Debug)]
pub struct Measured {
    store: Arc<dyn Store>,
    clock: Clock,
    metrics: Arc<Metrics>,
}

impl Measured {
    /// Times the calls to `store`.
    pub fn new(store: Arc<dyn Store>, clock: Clock, metrics: Arc<Metrics>) -> Self {
        Self { store, clock, metrics }
    }

    async fn timed<T>(&self, call: StoreCall, work: impl Future<Output = T>) -> T {
        let start = self.clock.moment();
        let result = work.await;
        self.metrics.store_call(call, start.until(self.clock.moment()));
        result
    }
}

#[async_trait]
impl Store for Measured {
    async fn call(&self, call: Arc<dyn RuleCall>) -> Result<(), Error> {
        self.timed(call.name().into(), self.store.call(call)).await
    }

    fn recall(&self, subject: &Subject) -> Option<ReportedState> {
        let start = self.clock.moment();
        let known = self.store.recall(subject)?;
        // This reply takes the place of a claim, so it counts as one. If nothing is known, a real
        // claim follows, and that claim is counted.
        self.metrics.store_call(StoreCall::Claim, start.until(self.clock.moment()));
        Some(known)
    }

    async fn get(&self, id: OperationId) -> Result<Option<Operation>, Error> {
        self.timed(StoreCall::Get, self.store.get(id)).await
    }

    // A watch asks no server, so its time would say nothing.
    async fn watch(&self, id: OperationId) -> Result<Watch, Error> {
        self.store.watch(id).await
    }

    async fn uncertain(&self) -> Result<u64, Error> {
        self.store.uncertain().await
    }

    async fn list(&self, query: &ListQuery) -> Result<ListPage, Error> {
        self.timed(StoreCall::List, self.store.list(query)).await
    }

    async fn sweep(&self, limit: usize) -> Result<SweepReport, Error> {
        self.timed(StoreCall::Sweep, self.store.sweep(limit)).await
    }

    async fn concerns(&self) -> Result<Vec<Concern>, Error> {
        self.store.concerns().await
    }

    async fn acknowledge(&self) -> Result<bool, Error> {
        self.store.acknowledge().await
    }

    async fn probe(&self) -> Result<(), Error> {
        self.store.probe().await
    }

    async fn close(&self) {
        self.store.close().await;
    }
}
