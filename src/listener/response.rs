//! An answer on its way to the peer, watched by the timer of its connection.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};

use super::timer::{ConnectionTimer, StartTime};

/// The largest chunk of an answer that h2 gets at a time. Bytes that h2 has taken count as read by
/// the peer, as do bytes in the kernel's buffer on HTTP/1. Small chunks keep that error small.
const CHUNK_BYTES_MAX: usize = 16 * 1024;

/// A request that is being served, from the end of its head until this is dropped.
#[derive(Debug)]
pub(super) struct ActiveRequest {
    timer: Arc<ConnectionTimer>,
    /// On HTTP/2: the time since which the peer gives no room for this answer. Other answers on the
    /// connection may flow at the same time.
    stall: Option<Arc<StartTime>>,
}

impl ActiveRequest {
    /// A request on HTTP/1, where one request is served at a time.
    pub(super) fn on_http1(timer: &Arc<ConnectionTimer>) -> Self {
        timer.head_ended();
        timer.request_began();
        Self { timer: Arc::clone(timer), stall: None }
    }

    /// A request on HTTP/2.
    pub(super) fn on_http2(timer: &Arc<ConnectionTimer>) -> Self {
        timer.request_began();
        Self { timer: Arc::clone(timer), stall: Some(timer.add_answer()) }
    }

    /// Whether the request is on HTTP/1.
    pub(super) const fn is_http1(&self) -> bool {
        self.stall.is_none()
    }
}

impl Drop for ActiveRequest {
    fn drop(&mut self) {
        if let Some(stall) = &self.stall {
            self.timer.remove_answer(stall);
        }
        self.timer.request_ended();
    }
}

/// The body of an answer. It tells the timer whether the peer takes it.
#[derive(Debug)]
pub(super) struct TimedBody<B> {
    /// None for a refusal, whose body is in `rest`.
    body: Option<B>,
    /// Bytes that come before the next frame of `body`.
    rest: Bytes,
    request: ActiveRequest,
}

impl<B> TimedBody<B> {
    pub(super) const fn new(body: B, request: ActiveRequest) -> Self {
        Self { body: Some(body), rest: Bytes::new(), request }
    }

    /// The body of an answer that comes from the listener and not from a service.
    pub(super) const fn refusal(rest: Bytes, request: ActiveRequest) -> Self {
        Self { body: None, rest, request }
    }
}

impl<B: Body<Data = Bytes> + Unpin> TimedBody<B> {
    fn poll_body(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        match &mut self.body {
            _ if !self.rest.is_empty() => {
                Poll::Ready(Some(Ok(Frame::data(std::mem::take(&mut self.rest)))))
            }
            Some(body) => Pin::new(body).poll_frame(context),
            None => Poll::Ready(None),
        }
    }

    /// The next frame, of at most [`CHUNK_BYTES_MAX`].
    fn poll_chunk(
        &mut self,
        context: &mut Context<'_>,
        stall: &StartTime,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        // h2 asks for a chunk only when the peer's window has room for it. So the chunk before was
        // taken.
        ConnectionTimer::chunk_taken(stall);
        if self.rest.is_empty() {
            let frame = ready!(self.poll_body(context));
            match frame.map(|frame| frame.map(Frame::into_data)) {
                Some(Ok(Ok(data))) => self.rest = data,
                Some(Ok(Err(other))) => return Poll::Ready(Some(Ok(other))),
                Some(Err(error)) => return Poll::Ready(Some(Err(error))),
                None => return Poll::Ready(None),
            }
        }
        self.request.timer.chunk_offered(stall);
        let length = self.rest.len().min(CHUNK_BYTES_MAX);
        Poll::Ready(Some(Ok(Frame::data(self.rest.split_to(length)))))
    }
}

impl<B: Body<Data = Bytes> + Unpin> Body for TimedBody<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        let this = self.get_mut();
        match this.request.stall.clone() {
            Some(stall) => this.poll_chunk(context, &stall),
            // On HTTP/1 the stream sees every write that blocks.
            None => this.poll_body(context),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty() && self.body.as_ref().is_none_or(Body::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        let rest = u64::try_from(self.rest.len()).unwrap_or(u64::MAX);
        let body = self.body.as_ref().map_or_else(|| SizeHint::with_exact(0), Body::size_hint);
        let mut hint = SizeHint::new();
        hint.set_lower(body.lower().saturating_add(rest));
        if let Some(upper) = body.upper() {
            hint.set_upper(upper.saturating_add(rest));
        }
        hint
    }
}
