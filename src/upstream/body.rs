//! The body of an answer on its way to the sender.

use std::error::Error as _;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Frame, SizeHint};
use tokio::sync::mpsc;

use crate::budget::{Held, Reserved, holding};
use crate::operation::Reason;

/// Pieces of a streamed body that wait for the sender.
const PIECES_MAX: usize = 4;

/// The body has no end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BrokeOff {
    /// The connection ended first.
    #[error("the answer broke off before its end")]
    Early,
    /// What came is not a body.
    #[error("the chunks of the answer cannot be read")]
    Malformed,
}

impl BrokeOff {
    /// The same for the attempt log.
    pub const fn reason(self) -> Reason {
        match self {
            Self::Early => Reason::AnswerBrokeOff,
            Self::Malformed => Reason::AnswerBodyMalformed,
        }
    }

    /// What an error of hyper's means that a body ended with.
    pub(super) fn of(error: &hyper::Error) -> Self {
        let source = error.source().and_then(|source| source.downcast_ref::<io::Error>());
        let kind = source
            .filter(|source| source.get_ref().is_none_or(|inner| !inner.is::<rustls::Error>()));
        match kind.map(io::Error::kind) {
            Some(io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput) => Self::Malformed,
            Some(_) | None => Self::Early,
        }
    }
}

/// A body that is in memory, or one that is still coming in.
#[derive(Debug)]
pub struct AnswerBody {
    source: Source,
    /// What an answer that comes in pieces holds until the last was handed on.
    held: Option<Held>,
}

#[derive(Debug)]
enum Source {
    Whole(Bytes),
    Streamed(mpsc::Receiver<Piece>),
    Ended,
}

/// A piece of a body that is still coming in.
#[derive(Debug)]
pub enum Piece {
    /// Some bytes, and their memory.
    Data(Bytes, Reserved),
    /// The body is complete. A channel that closes without it has broken off.
    End,
}

impl AnswerBody {
    /// A body in memory.
    pub const fn whole(bytes: Bytes) -> Self {
        Self { source: Source::Whole(bytes), held: None }
    }

    /// A body in memory that was accounted for, until the sender has all of it.
    pub fn accounted(bytes: Bytes, memory: Reserved) -> Self {
        Self::whole(holding(bytes, Held { memory: Some(memory), place: None }))
    }

    /// A body that comes in pieces, and where they are put in.
    pub fn streaming() -> (mpsc::Sender<Piece>, Self) {
        let (pieces, coming) = mpsc::channel(PIECES_MAX);
        (pieces, Self { source: Source::Streamed(coming), held: None })
    }

    /// The same, holding this until the sender has all of it.
    #[must_use]
    pub fn holding(self, held: Held) -> Self {
        match self.source {
            Source::Whole(bytes) => Self::whole(holding(bytes, held)),
            source @ (Source::Streamed(_) | Source::Ended) => Self { source, held: Some(held) },
        }
    }
}

impl http_body::Body for AnswerBody {
    type Data = Bytes;
    type Error = BrokeOff;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BrokeOff>>> {
        match &mut self.source {
            Source::Whole(bytes) if bytes.is_empty() => Poll::Ready(None),
            Source::Whole(bytes) => Poll::Ready(Some(Ok(Frame::data(std::mem::take(bytes))))),
            Source::Streamed(pieces) => match ready!(pieces.poll_recv(cx)) {
                Some(Piece::Data(bytes, memory)) => {
                    let held = Held { memory: Some(memory), place: None };
                    Poll::Ready(Some(Ok(Frame::data(holding(bytes, held)))))
                }
                Some(Piece::End) => {
                    self.source = Source::Ended;
                    self.held = None;
                    Poll::Ready(None)
                }
                None => Poll::Ready(Some(Err(BrokeOff::Early))),
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
