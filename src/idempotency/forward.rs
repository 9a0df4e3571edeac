//! Forwards a request once. No layer sends it again after one byte of it was written.

use std::pin::{Pin, pin};
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use tokio::time::{Instant, timeout_at};
use tokio_util::sync::CancellationToken;

use super::executor::{Context, Executor};
use super::lease::OwnLease;
use super::receiver::Receiver;
use crate::budget::Reserved;
use crate::clock::Moment;
use crate::operation::{OperationId, Reason};
use crate::telemetry::Limit;
use crate::upstream::{
    AnswerStream, BodyRead, Progress, Request, SendResult, Upstream, UpstreamAnswer, answer_headers,
};

const OPERATION: HeaderName = HeaderName::from_static("onceward-operation");
const ATTEMPT: HeaderName = HeaderName::from_static("onceward-attempt");

/// The answer of the upstream in one exchange.
#[derive(Debug)]
pub(super) enum Exchange {
    /// The answer is complete.
    Complete(CompleteAnswer),
    /// The answer is too long to keep, and the rest of it is still to come.
    TooLong(LongAnswer),
}

/// A complete answer.
#[derive(Debug)]
pub(super) struct CompleteAnswer {
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
    pub(super) memory: Reserved,
}

/// The beginning of an answer that is too long to keep, and the stream of the rest.
#[derive(Debug)]
pub(super) struct LongAnswer {
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
    pub(super) begun: Bytes,
    pub(super) rest: AnswerStream,
    pub(super) memory: Reserved,
}

/// Why an exchange has no complete answer.
#[derive(Debug, Clone, Copy)]
pub(super) enum NoAnswer {
    /// No byte of the request was sent.
    NeverSent(Reason),
    /// A byte may have been sent, and no complete answer came.
    Unanswered { reason: Reason, status: Option<StatusCode> },
}

impl NoAnswer {
    /// The end of an exchange that was dropped for this reason. Its connection is closed, so the
    /// count of written bytes does not change any more.
    pub(super) fn dropped(reason: Reason, progress: &Progress, status: Option<StatusCode>) -> Self {
        if progress.byte_written() {
            Self::Unanswered { reason, status }
        } else {
            Self::NeverSent(reason)
        }
    }
}

/// The bounds of an exchange in time.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bounds<'a> {
    /// When the attempt ends at the latest.
    pub(super) ends: Instant,
    /// The lease of the attempt, if it has one.
    pub(super) lease: Option<&'a OwnLease>,
    /// Cancelled when the attempts in flight must end.
    pub(super) stop: &'a CancellationToken,
}

impl<'a> Bounds<'a> {
    /// The bounds of an attempt, or of a step, that began at `began_at`.
    pub(super) fn of_attempt(
        executor: &'a Executor,
        receiver: &Receiver,
        lease: &'a OwnLease,
        began_at: Moment,
    ) -> Self {
        let spent = began_at.until(executor.clock.moment());
        let left = receiver.attempt_timeout.saturating_sub(spent);
        Self { ends: Instant::now() + left, lease: Some(lease), stop: &executor.stop }
    }

    /// How long the attempt may still take.
    pub(super) fn left(&self) -> Duration {
        self.ends.saturating_duration_since(Instant::now())
    }

    /// Whether the first byte may be sent now, or why not.
    async fn may_send(&self) -> Result<(), Reason> {
        // Connecting may have taken long, or the process may have been paused. After the end of the
        // lease another process may have the operation.
        if let Some(lease) = self.lease
            && !lease.has_time_to_send().await
        {
            return Err(Reason::LeaseLost);
        }
        // A request that begins now would be cut off in the middle, and its operation would be
        // uncertain.
        if self.stop.is_cancelled() {
            return Err(Reason::ShutDown);
        }
        Ok(())
    }

    /// Runs `work` within the bounds. Work that exceeds the bounds is dropped. This closes its
    /// connection, so the upstream can see that nobody waits.
    pub(super) async fn run<T>(&self, work: impl Future<Output = T>) -> Result<T, Reason> {
        let mut work = pin!(work);
        tokio::select! {
            biased;
            done = timeout_at(self.ends, work.as_mut()) => match done {
                Ok(done) => Ok(done),
                Err(_) => last_look(work).await.ok_or(Reason::TimedOut),
            },
            () = self.stop.cancelled() => Err(Reason::ShutDown),
        }
    }
}

/// The turns of the runtime for which a complete answer may still be on its way through the process.
const TURNS: usize = 16;

/// Looks once more whether work is done, after its deadline. After a stall of the process the
/// deadline may be noticed before an answer that came in time, because another task reads the
/// connection.
async fn last_look<T>(mut work: Pin<&mut impl Future<Output = T>>) -> Option<T> {
    for _ in 0..TURNS {
        tokio::task::yield_now().await;
        if let Poll::Ready(done) = futures_util::poll!(work.as_mut()) {
            return Some(done);
        }
    }
    None
}

/// Forwards a request, and reads as much of the answer as the route keeps.
pub(super) async fn exchange(
    context: Context<'_>,
    receiver: &Receiver,
    request: Request,
    bounds: &Bounds<'_>,
) -> Result<Exchange, NoAnswer> {
    let Context { executor, handler, .. } = context;
    let body_bytes_max = handler.policy.body_bytes_max;
    let memory = executor.budget.reserve_none();
    let progress = Progress::default();
    let head_only = request.method == http::Method::HEAD;
    let mut seen = None;
    let work = async {
        let sent = send(&receiver.upstream, request, bounds, &progress).await?;
        let UpstreamAnswer { status, headers, stream: mut rest } = sent;
        seen = Some(status);
        match rest.read(body_bytes_max, memory).await {
            Ok(BodyRead::Whole(body, memory)) => {
                let headers = answer_headers(headers, head_only);
                Ok(Exchange::Complete(CompleteAnswer { status, headers, body, memory }))
            }
            Ok(BodyRead::TooLong(begun, memory)) => {
                let headers = answer_headers(headers, true);
                executor.metrics.limit_reached(Limit::ReplayBodyBytes);
                Ok(Exchange::TooLong(LongAnswer { status, headers, begun, rest, memory }))
            }
            Err(broke) => Err(NoAnswer::Unanswered { reason: broke.reason(), status: seen }),
        }
    };
    let bounded = bounds.run(work).await;
    bounded.unwrap_or_else(|reason| Err(NoAnswer::dropped(reason, &progress, seen)))
}

/// Sends a request on one connection after another, until a connection has taken a byte of the
/// request.
pub(super) async fn send(
    upstream: &Upstream,
    mut request: Request,
    bounds: &Bounds<'_>,
    progress: &Progress,
) -> Result<UpstreamAnswer, NoAnswer> {
    loop {
        let sent = if let Some(handler) = request.handler.take() {
            let handler = handler.ready().await.map_err(NoAnswer::NeverSent)?;
            bounds.may_send().await.map_err(NoAnswer::NeverSent)?;
            handler.send(request, progress).await
        } else {
            let connection = upstream.connect().await.map_err(NoAnswer::NeverSent)?;
            bounds.may_send().await.map_err(NoAnswer::NeverSent)?;
            connection.send(request, progress).await
        };
        match sent {
            SendResult::Answered(answer) => return Ok(answer),
            // The upstream has closed an idle connection at this moment. Nothing was written, so
            // another connection may take the request. A handler hands nothing back.
            SendResult::HandedBack(unsent) => request = unsent,
            SendResult::NeverSent(reason) => return Err(NoAnswer::NeverSent(reason)),
            SendResult::Unanswered(reason) => {
                return Err(NoAnswer::Unanswered { reason, status: None });
            }
        }
    }
}

/// Adds the headers that tell the upstream the operation id and the number of the attempt.
pub(super) fn name_attempt(headers: &mut HeaderMap, operation: OperationId, attempt: u32) {
    if let Ok(id) = HeaderValue::from_str(&operation.to_string()) {
        headers.insert(OPERATION, id);
    }
    headers.insert(ATTEMPT, attempt.into());
}
