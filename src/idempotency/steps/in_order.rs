//! Steps that run one after the other.

use std::sync::Arc;

use super::super::Executor;
use super::super::disposition::Disposition;
use super::run::{Ran, Work};
use crate::clock::Moment;
use crate::operation::state::Advanced;

impl Executor {
    /// Runs the step that has begun, and each one that begins with the end of the one before.
    pub(super) async fn in_order(&self, work: Work<'_>, first: Arc<str>) -> Option<Disposition> {
        let mut step = first;
        let mut began_at = work.claim.asked_at;
        let mut ran = Vec::new();
        loop {
            let one = self.run_leased(work, step, began_at).await?;
            began_at = one.recorded_at;
            let next = match &one.advanced {
                Some(Advanced::Next { step }) => Some(Arc::clone(step)),
                Some(
                    Advanced::Recorded
                    | Advanced::Ended { .. }
                    | Advanced::RecordLost
                    | Advanced::Superseded,
                )
                | None => None,
            };
            ran.push(one);
            match next {
                Some(next) => {
                    work.claim.lease().begins_anew(began_at);
                    step = next;
                }
                None => return Some(self.answer(work, ran).await),
            }
        }
    }

    /// Runs a step while the lease is kept. A lease that was lost before has a heart again.
    async fn run_leased(&self, work: Work<'_>, step: Arc<str>, began_at: Moment) -> Option<Ran> {
        let lease = work.claim.lease();
        tokio::select! {
            biased;
            ran = self.run_step(work, step, began_at) => ran,
            never = lease.heartbeat() => match never {},
        }
    }
}
