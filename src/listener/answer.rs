//! An answer on its way to its reader.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};

use super::watch::{Mark, Watch};

/// The largest piece of an answer that HTTP/2 gets at a time. What it got counts as read, as do
/// the bytes in the kernel's buffer on HTTP/1.
const PIECE_BYTES_MAX: usize = 16 * 1024;

/// A request that is being served, from the end of its head until this is dropped.
#[derive(Debug)]
pub(super) struct Serving {
    watch: Arc<Watch>,
    /// On HTTP/2, where the connection may flow while this answer does not.
    stall: Option<Arc<Mark>>,
}

impl Serving {
    /// On HTTP/1, where one request is served at a time.
    pub(super) fn alone(watch: &Arc<Watch>) -> Self {
        watch.head_ended();
        watch.request_began();
        Self { watch: Arc::clone(watch), stall: None }
    }

    /// On HTTP/2.
    pub(super) fn among_others(watch: &Arc<Watch>) -> Self {
        watch.request_began();
        Self { watch: Arc::clone(watch), stall: Some(watch.add_answer()) }
    }

    /// Whether it is on HTTP/1.
    pub(super) const fn is_alone(&self) -> bool {
        self.stall.is_none()
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        if let Some(stall) = &self.stall {
            self.watch.remove_answer(stall);
        }
        self.watch.request_ended();
    }
}

/// The body of an answer, with an eye on whether it is taken.
#[derive(Debug)]
pub(super) struct Answer<B> {
    /// None of a refusal.
    body: Option<B>,
    rest: Bytes,
    serving: Serving,
}

impl<B> Answer<B> {
    pub(super) const fn new(body: B, serving: Serving) -> Self {
        Self { body: Some(body), rest: Bytes::new(), serving }
    }

    /// An answer that no service has given.
    pub(super) const fn refusal(rest: Bytes, serving: Serving) -> Self {
        Self { body: None, rest, serving }
    }
}

impl<B: Body<Data = Bytes> + Unpin> Answer<B> {
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

    /// The next frame, cut to a piece. Whoever asks for it has found room for the one before.
    fn poll_piece(
        &mut self,
        context: &mut Context<'_>,
        stall: &Mark,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        Watch::piece_taken(stall);
        if self.rest.is_empty() {
            let frame = ready!(self.poll_body(context));
            match frame.map(|frame| frame.map(Frame::into_data)) {
                Some(Ok(Ok(data))) => self.rest = data,
                Some(Ok(Err(other))) => return Poll::Ready(Some(Ok(other))),
                Some(Err(error)) => return Poll::Ready(Some(Err(error))),
                None => return Poll::Ready(None),
            }
        }
        self.serving.watch.piece_given(stall);
        let length = self.rest.len().min(PIECE_BYTES_MAX);
        Poll::Ready(Some(Ok(Frame::data(self.rest.split_to(length)))))
    }
}

impl<B: Body<Data = Bytes> + Unpin> Body for Answer<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        let this = self.get_mut();
        match this.serving.stall.clone() {
            Some(stall) => this.poll_piece(context, &stall),
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
