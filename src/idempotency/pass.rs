//! Forwards requests that are not deduplicated: they have no claim, and nothing is recorded.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::disposition::{Disposition, Forwarded};
use super::executor::{Context, Executor};
use super::flow::Flow;
use super::forward::{Bounds, NoAnswer, send};
use super::route_handler::RouteHandler;
use super::waiting_sender::WaitingSender;
use crate::budget::Reserved;
use crate::operation::RequestMode;
use crate::upstream::{Progress, Request, ResponseBody, answer_headers};

impl Executor {
    /// Forwards a request without a claim.
    ///
    /// # Cancel safety
    /// The work goes on if the future is dropped.
    pub async fn pass(
        self: &Arc<Self>,
        request: Request,
        memory: Reserved,
        arrived: Instant,
        handler: &Arc<RouteHandler>,
    ) -> Disposition {
        let Some(place) = handler.place() else {
            return self.overloaded();
        };
        let (sender, answer) = WaitingSender::new(handler.deadline(arrived), RequestMode::Enforce);
        let executor = Arc::clone(self);
        let handler = Arc::clone(handler);
        let work = async move {
            let context = Context { executor: &executor, handler: &handler, sender: &sender };
            context.pass_on(request).await;
            drop((place, memory));
        };
        self.work(work, answer).await.unwrap_or(Disposition::Passed(Forwarded::LOST))
    }
}

impl Context<'_> {
    /// Sends a request and streams the answer.
    pub(super) async fn pass_on(self, request: Request) {
        let Self { executor, handler, sender } = self;
        let ends = Instant::now() + handler.policy.durations.attempt_timeout;
        let bounds = Bounds { ends, lease: None, stop: &executor.stop };
        let forward = async {
            let progress = Progress::default();
            let sending = send(handler.receivers.passes_to(), request, &bounds, &progress);
            let sent = bounds.run(sending).await;
            let sent =
                sent.unwrap_or_else(|reason| Err(NoAnswer::dropped(reason, &progress, None)));
            let answer = match sent {
                Ok(answer) => answer,
                Err(no_answer) => {
                    let forwarded = Forwarded::of(no_answer, Duration::ZERO);
                    return sender.answer(Disposition::Passed(forwarded));
                }
            };
            let (pieces, body) = ResponseBody::streaming();
            let headers = answer_headers(answer.headers, true);
            let forwarded = Forwarded::Answered { status: answer.status, headers, body };
            sender.answer(Disposition::Passed(forwarded));
            let flow = Flow {
                begun: None,
                rest: answer.stream,
                pieces: Some(pieces),
                budget: executor.budget.clone(),
                patience: Duration::MAX,
            };
            // If the body breaks off, the sender sees that. There is nothing to record.
            let _broke_off = bounds.run(flow.run()).await;
        };
        sender.remind_during(pin!(forward), || Disposition::Passed(Forwarded::TimedOut)).await;
    }
}
