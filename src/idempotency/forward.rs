//! Sends a request once, and says what is known of it.

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, StatusCode};
use tokio::time::{Instant, timeout_at};
use tokio_util::sync::CancellationToken;

use super::lease::Lease;
use crate::budget::Reserved;
use crate::operation::Reason;
use crate::upstream::{
    AnswerStream, Handler, Progress, Reading, Request, Sent, Upstream, answer_headers,
};

/// What one attempt got from the upstream.
#[derive(Debug)]
pub(super) enum Exchange {
    /// It is over.
    Ended(End),
    /// An answer that is longer than what is kept; the rest is still to come.
    TooLong(TooLong),
}

/// The beginning of an answer that is longer than what is kept.
#[derive(Debug)]
pub(super) struct TooLong {
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
    pub(super) begun: Bytes,
    pub(super) rest: AnswerStream,
    pub(super) memory: Reserved,
}

/// How an exchange ended.
#[derive(Debug)]
pub(super) enum End {
    /// With a complete answer.
    Answered { status: StatusCode, headers: HeaderMap, body: Bytes, memory: Reserved },
    /// No byte left this machine.
    NeverSent(Reason),
    /// A byte may have left, and no complete answer came.
    Unanswered { reason: Reason, status: Option<StatusCode> },
}

impl From<End> for Exchange {
    fn from(end: End) -> Self {
        Self::Ended(end)
    }
}

/// What bounds an exchange in time.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bounds<'a> {
    /// The end of the attempt.
    pub(super) ends: Instant,
    /// The lease of the attempt, if it has one.
    pub(super) lease: Option<&'a Lease>,
    /// The end of the process.
    pub(super) stop: &'a CancellationToken,
}

impl Bounds<'_> {
    /// How long the attempt may still take.
    pub(super) fn left(&self) -> Duration {
        self.ends.saturating_duration_since(Instant::now())
    }

    /// Whether the first byte may be sent now.
    async fn may_send(&self) -> Result<(), Reason> {
        if let Some(lease) = self.lease
            && !lease.has_room().await
        {
            return Err(Reason::LeaseLost);
        }
        // A request whose sending began now would be cut off.
        if self.stop.is_cancelled() {
            return Err(Reason::ShutDown);
        }
        Ok(())
    }

    /// Waits for `work`; dropping it closes its connection.
    pub(super) async fn hold<T>(&self, work: impl Future<Output = T>) -> Result<T, Reason> {
        tokio::select! {
            biased;
            done = timeout_at(self.ends, work) => done.map_err(|_| Reason::TimedOut),
            () = self.stop.cancelled() => Err(Reason::ShutDown),
        }
    }
}

/// Forwards a request and reads the answer, up to `body_bytes_max` bytes of it.
pub(super) async fn exchange(
    upstream: &Upstream,
    request: Request,
    bounds: &Bounds<'_>,
    body_bytes_max: usize,
    memory: Reserved,
) -> Exchange {
    let progress = Progress::default();
    let head_only = request.method == http::Method::HEAD;
    let mut status = None;
    let work = async {
        let answer = match send(upstream, request, bounds, &progress).await {
            Sent::Answered(answer) => answer,
            Sent::HandedBack(_) => return End::NeverSent(Reason::NothingWritten).into(),
            Sent::NeverSent(reason) => return End::NeverSent(reason).into(),
            Sent::Unanswered(reason) => return End::Unanswered { reason, status: None }.into(),
        };
        status = Some(answer.status);
        let mut rest = answer.stream;
        match rest.read(body_bytes_max, memory).await {
            Ok(Reading::Whole(body, memory)) => {
                let headers = answer_headers(answer.headers, head_only);
                End::Answered { status: answer.status, headers, body, memory }.into()
            }
            Ok(Reading::TooLong(begun, memory)) => {
                let headers = answer_headers(answer.headers, true);
                let status = answer.status;
                Exchange::TooLong(TooLong { status, headers, begun, rest, memory })
            }
            Err(broke) => End::Unanswered { reason: broke.reason(), status }.into(),
        }
    };
    match bounds.hold(work).await {
        Ok(exchange) => exchange,
        // The connection is closed by now: the count is final.
        Err(reason) if progress.byte_written() => End::Unanswered { reason, status }.into(),
        Err(reason) => End::NeverSent(reason).into(),
    }
}

/// Sends a request on connection after connection until one has taken a byte of it: only while the
/// process does not end, and with a lease only while that has room.
pub(super) async fn send(
    upstream: &Upstream,
    mut request: Request,
    bounds: &Bounds<'_>,
    progress: &Progress,
) -> Sent {
    if let Some(handler) = request.extensions.remove::<Handler>() {
        return match bounds.may_send().await {
            Ok(()) => handler.call(request, progress).await,
            Err(reason) => Sent::NeverSent(reason),
        };
    }
    loop {
        let connection = match upstream.connect().await {
            Ok(connection) => connection,
            Err(reason) => return Sent::NeverSent(reason),
        };
        if let Err(reason) = bounds.may_send().await {
            return Sent::NeverSent(reason);
        }
        match connection.send(request, progress).await {
            Sent::HandedBack(unsent) => request = unsent,
            sent @ (Sent::Answered(_) | Sent::NeverSent(_) | Sent::Unanswered(_)) => return sent,
        }
    }
}
