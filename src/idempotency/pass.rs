//! Forwards what is not deduplicated: no key, no record, nothing cached.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::disposition::{Disposition, Forwarded};
use super::flow::Flow;
use super::forward::{Bounds, send};
use super::{Executor, PendingReply, RouteHandler};
use crate::budget::Reserved;
use crate::operation::Reason;
use crate::upstream::{AnswerBody, Progress, Request, Sent, answer_headers};

impl Executor {
    /// Forwards a request as it is. Dropping the future interrupts nothing.
    pub async fn pass(
        self: &Arc<Self>,
        request: Request,
        memory: Reserved,
        arrived: Instant,
        handler: &Arc<RouteHandler>,
    ) -> Disposition {
        let Some(slot) = handler.slot() else {
            return self.overloaded();
        };
        let deadline = handler.policy.answer_within.map(|within| arrived + within);
        let (reply, answer) = PendingReply::new(deadline);
        let executor = Arc::clone(self);
        let handler = Arc::clone(handler);
        self.running.spawn(async move {
            executor.pass_on(request, &handler, reply).await;
            drop((slot, memory));
        });
        let lost = Forwarded::Broken { reason: Reason::HolderEnded, ends_in: Duration::ZERO };
        answer.await.unwrap_or(Disposition::Passed(lost))
    }

    /// Sends a request and streams the answer.
    pub(super) async fn pass_on(
        &self,
        request: Request,
        handler: &RouteHandler,
        reply: PendingReply,
    ) {
        let ends = Instant::now() + handler.policy.terms.attempt_timeout;
        let bounds = Bounds { ends, lease: None, stop: &self.stop };
        let forward = async {
            let progress = Progress::default();
            let sent =
                bounds.hold(send(handler.receivers.passes_to(), request, &bounds, &progress)).await;
            let end = match sent {
                Ok(Sent::Answered(answer)) => {
                    let (pieces, body) = AnswerBody::streaming();
                    let headers = answer_headers(answer.headers, true);
                    let end = Forwarded::Answered { status: answer.status, headers, body };
                    reply.send(Disposition::Passed(end));
                    let begun = None;
                    let patience = Duration::MAX;
                    let budget = self.budget.clone();
                    let rest = answer.stream;
                    let pieces = Some(pieces);
                    let flow = Flow { begun, rest, pieces, budget, patience };
                    // The sender sees where it broke off.
                    let _broke_off = bounds.hold(flow.run()).await;
                    return;
                }
                Ok(Sent::HandedBack(_)) => {
                    Forwarded::Unreachable { reason: Reason::NothingWritten }
                }
                Ok(Sent::NeverSent(reason)) => Forwarded::Unreachable { reason },
                Err(reason) if !progress.byte_written() => Forwarded::Unreachable { reason },
                Err(Reason::TimedOut) => Forwarded::TimedOut,
                Ok(Sent::Unanswered(reason)) | Err(reason) => {
                    Forwarded::Broken { reason, ends_in: Duration::ZERO }
                }
            };
            reply.send(Disposition::Passed(end));
        };
        tokio::select! {
            biased;
            () = forward => {}
            never = reply.remind(|| Disposition::Passed(Forwarded::TimedOut)) => match never {},
        }
    }
}
