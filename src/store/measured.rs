//! Times every call to a store.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

use super::{Concern, Error, Listed, Listing, Store, Swept, Watch};
use crate::clock::Clock;
use crate::operation::state::{
    Advanced, ClaimRequest, Claimed, Conclusion, Decided, Renewed, Resolution, Settled, Settlement,
    StepEnd,
};
use crate::operation::{Asked, ClaimId, Operation, OperationId};
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
    fn recall(&self, asked: &Asked) -> Option<Claimed> {
        let start = self.clock.moment();
        let told = self.store.recall(asked)?;
        self.metrics.store_call(StoreCall::Claim, start.until(self.clock.moment()));
        Some(told)
    }

    async fn claim(&self, request: &ClaimRequest) -> Result<Claimed, Error> {
        self.timed(StoreCall::Claim, self.store.claim(request)).await
    }

    async fn renew(
        &self,
        id: OperationId,
        claim_id: ClaimId,
        lease: Duration,
    ) -> Result<Renewed, Error> {
        self.timed(StoreCall::Renew, self.store.renew(id, claim_id, lease)).await
    }

    async fn settle(&self, settlement: &Settlement) -> Result<Settled, Error> {
        self.timed(StoreCall::Settle, self.store.settle(settlement)).await
    }

    async fn advance(&self, end: &StepEnd) -> Result<Advanced, Error> {
        self.timed(StoreCall::Settle, self.store.advance(end)).await
    }

    async fn conclude(&self, conclusion: &Conclusion) -> Result<Claimed, Error> {
        self.timed(StoreCall::Conclude, self.store.conclude(conclusion)).await
    }

    async fn withdraw(
        &self,
        id: OperationId,
        claim_id: ClaimId,
        retention: Duration,
    ) -> Result<(), Error> {
        // A withdrawal is a settle, as never sent.
        self.timed(StoreCall::Settle, self.store.withdraw(id, claim_id, retention)).await
    }

    async fn get(&self, id: OperationId) -> Result<Option<Operation>, Error> {
        self.timed(StoreCall::Get, self.store.get(id)).await
    }

    async fn resolve(&self, id: OperationId, resolution: &Resolution) -> Result<Decided, Error> {
        self.timed(StoreCall::Resolve, self.store.resolve(id, resolution)).await
    }

    async fn forget(&self, id: OperationId, by: &str, reason: &str) -> Result<Decided, Error> {
        self.timed(StoreCall::Forget, self.store.forget(id, by, reason)).await
    }

    async fn watch(&self, id: OperationId) -> Result<Watch, Error> {
        self.store.watch(id).await
    }

    async fn uncertain(&self) -> Result<u64, Error> {
        self.store.uncertain().await
    }

    async fn list(&self, listing: &Listing) -> Result<Listed, Error> {
        self.timed(StoreCall::List, self.store.list(listing)).await
    }

    async fn sweep(&self, limit: usize) -> Result<Swept, Error> {
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
