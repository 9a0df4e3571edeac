//! The body of an answer on its way to the sender.

use std::error::Error as _;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Frame, SizeHint};
use tokio::sync::mpsc;

use crate::budget::{BytesGuard, Reserved, guard_bytes};
use crate::operation::Reason;

/// The most chunks of a streamed body that wait for the sender.
const CHUNKS_MAX: usize = 4;

/// Why a body did not come to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BodyError {
    /// The connection ended before the body did.
    #[error("the answer broke off before its end")]
    Incomplete,
    /// The chunked coding is malformed.
    #[error("the chunks of the answer cannot be read")]
    Malformed,
}

impl BodyError {
    /// The reason for the attempt log.
    pub const fn reason(self) -> Reason {
        match self {
            Self::Incomplete => Reason::AnswerBrokeOff,
            Self::Malformed => Reason::AnswerBodyMalformed,
        }
    }

    /// Reads hyper's error.
    ///
    /// hyper reports malformed chunks as an `io::Error` of kind `InvalidData` or `InvalidInput`
    /// (its `src/proto/h1/decode.rs`) and has no method that tells them from other body errors.
    pub(super) fn of(error: &hyper::Error) -> Self {
        let source = error.source().and_then(|source| source.downcast_ref::<io::Error>());
        // An `io::Error` that wraps a TLS error has the same kind, but it means that the connection
        // broke.
        let kind = source
            .filter(|source| source.get_ref().is_none_or(|inner| !inner.is::<rustls::Error>()));
        match kind.map(io::Error::kind) {
            Some(io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput) => Self::Malformed,
            Some(_) | None => Self::Incomplete,
        }
    }
}

/// The body of a response to the sender: it is in memory, or it still comes from the upstream.
#[derive(Debug)]
pub struct ResponseBody {
    source: Source,
    /// Set for a streamed body only. It is kept until the last chunk was handed on.
    guard: Option<BytesGuard>,
}

#[derive(Debug)]
enum Source {
    Whole(Bytes),
    Streamed(mpsc::Receiver<Chunk>),
    Ended,
}

/// A chunk of a streamed body, or its end.
#[derive(Debug)]
pub enum Chunk {
    /// Some bytes, with their memory.
    Data(Bytes, Reserved),
    /// The body is complete. If the channel closes without this, the body broke off.
    End,
}

impl ResponseBody {
    /// A body in memory.
    pub const fn whole(bytes: Bytes) -> Self {
        Self { source: Source::Whole(bytes), guard: None }
    }

    /// A body in memory. `memory` is released when the sender has all of it.
    pub fn accounted(bytes: Bytes, memory: Reserved) -> Self {
        Self::whole(guard_bytes(bytes, BytesGuard { memory: Some(memory), place: None }))
    }

    /// A streamed body, and the channel that its chunks are sent into.
    pub fn streaming() -> (mpsc::Sender<Chunk>, Self) {
        let (chunks, streamed) = mpsc::channel(CHUNKS_MAX);
        (chunks, Self { source: Source::Streamed(streamed), guard: None })
    }

    /// The same body. `guard` is dropped when the sender has all of it.
    #[must_use]
    pub fn guarded_by(self, guard: BytesGuard) -> Self {
        match self.source {
            Source::Whole(bytes) => Self::whole(guard_bytes(bytes, guard)),
            source @ (Source::Streamed(_) | Source::Ended) => Self { source, guard: Some(guard) },
        }
    }
}

impl http_body::Body for ResponseBody {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        match &mut self.source {
            Source::Whole(bytes) if bytes.is_empty() => Poll::Ready(None),
            Source::Whole(bytes) => Poll::Ready(Some(Ok(Frame::data(std::mem::take(bytes))))),
            Source::Streamed(chunks) => match ready!(chunks.poll_recv(cx)) {
                Some(Chunk::Data(bytes, memory)) => {
                    let guard = BytesGuard { memory: Some(memory), place: None };
                    Poll::Ready(Some(Ok(Frame::data(guard_bytes(bytes, guard)))))
                }
                Some(Chunk::End) => {
                    self.source = Source::Ended;
                    self.guard = None;
                    Poll::Ready(None)
                }
                // The body broke off. The error makes hyper reset the stream or close the
                // connection. Without the error the sender would take a part of the body for the
                // whole.
                None => Poll::Ready(Some(Err(BodyError::Incomplete))),
            },
            Source::Ended => Poll::Ready(None),
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.source {
            Source::Whole(bytes) => bytes.is_empty(),
            Source::Streamed(_) => false,
            Source::Ended => true,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.source {
            Source::Whole(bytes) => SizeHint::with_exact(bytes.len() as u64),
            Source::Streamed(_) => SizeHint::default(),
            Source::Ended => SizeHint::with_exact(0),
        }
    }
}
