//! Steps that run at the same time.

use std::sync::Arc;

use futures_util::stream::{FuturesUnordered, StreamExt as _};

use super::super::Executor;
use super::super::disposition::Disposition;
use super::run::Work;

impl Executor {
    /// Runs all steps that have begun. The outcome of each is recorded when it is known.
    pub(super) async fn at_once(
        &self,
        work: Work<'_>,
        begun: Vec<Arc<str>>,
    ) -> Option<Disposition> {
        let lease = work.claim.lease();
        let mut running: FuturesUnordered<_> =
            begun.into_iter().map(|step| self.run_step(work, step, work.claim.asked_at)).collect();
        let all = async {
            let mut ran = Vec::new();
            while let Some(one) = running.next().await {
                ran.extend(one);
            }
            ran
        };
        let ran = tokio::select! {
            biased;
            ran = all => ran,
            never = lease.heartbeat() => match never {},
        };
        if ran.is_empty() { None } else { Some(self.answer(work, ran).await) }
    }
}
