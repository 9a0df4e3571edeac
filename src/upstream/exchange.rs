//! The answer of an upstream while it comes in.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{HeaderMap, StatusCode};
use http_body::{Body as _, Frame, SizeHint};
use hyper::body::Incoming;

use super::body::BrokeOff;
use super::handler::HandlerBody;
use super::pool::{Pool, Wire};
use super::standing::Standing;
use crate::budget::{Buffer, Reserved};

/// So much of an answer is read even if there is no memory left for bodies: without its body, an
/// acknowledgement would be remembered as an empty one for the whole retention. It is counted all
/// the same, so that other bodies are refused in its place.
const ALWAYS_READ_BYTES: usize = 16 * 1024;

/// The head of an answer, and its body to come.
#[derive(Debug)]
pub struct Answer {
    /// Its status.
    pub status: StatusCode,
    /// Its headers as they came.
    pub headers: HeaderMap,
    /// Its body.
    pub stream: AnswerStream,
}

/// The body of an answer. Dropped before its end, it closes its connection or drops its handler's work.
#[derive(Debug)]
pub struct AnswerStream(Source);

#[derive(Debug)]
enum Source {
    Connection(Box<ConnectionBody>),
    Handler(HandlerBody),
}

/// A body that drives the connection it comes from.
#[derive(Debug)]
struct ConnectionBody {
    body: Incoming,
    wire: Option<Wire>,
    home: Home,
}

/// Where a connection belongs.
#[derive(Debug)]
pub(super) struct Home {
    pub(super) pool: Arc<Pool>,
    /// That of the address it goes to.
    pub(super) standing: Arc<Standing>,
    /// Whether the server means to keep it open behind the answer.
    pub(super) stays_open: bool,
}

/// How far a body was read.
#[derive(Debug)]
pub enum Reading {
    /// To its end, and its memory.
    Whole(Bytes, Reserved),
    /// To the limit: what came so far, and its memory. The rest is still in the stream.
    TooLong(Bytes, Reserved),
}

impl AnswerStream {
    pub(super) fn of_connection(body: Incoming, wire: Option<Wire>, home: Home) -> Self {
        Self(Source::Connection(Box::new(ConnectionBody { body, wire, home })))
    }

    pub(super) const fn of_handler(body: HandlerBody) -> Self {
        Self(Source::Handler(body))
    }

    /// Reads the body to its end, or until it is longer than `bytes_max` or than there is memory.
    pub async fn read(&mut self, bytes_max: usize, memory: Reserved) -> Result<Reading, BrokeOff> {
        let expected = self.size_hint().exact().and_then(|bytes| bytes.try_into().ok());
        let expected = expected.map(|expected: usize| expected.min(bytes_max));
        let mut buffer = Buffer::counted_in(memory, expected);
        while let Some(chunk) = self.chunk().await? {
            let length = buffer.len().saturating_add(chunk.len());
            if length > bytes_max || buffer.append(&chunk).is_err() {
                buffer.append_anyway(&chunk);
                if length > ALWAYS_READ_BYTES.min(bytes_max) {
                    let (begun, memory) = buffer.finish();
                    return Ok(Reading::TooLong(begun, memory));
                }
            }
        }
        let (body, memory) = buffer.finish();
        Ok(Reading::Whole(body, memory))
    }

    /// The next piece of the body; none at its end, when the connection is given back.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, BrokeOff> {
        loop {
            match poll_fn(|cx| self.poll_frame(cx)).await.transpose()? {
                None => {
                    if let Source::Connection(body) = &mut self.0 {
                        body.give_back();
                    }
                    return Ok(None);
                }
                // Trailers end here: an answer's are not passed on.
                Some(frame) => {
                    if let Ok(data) = frame.into_data()
                        && !data.is_empty()
                    {
                        return Ok(Some(data));
                    }
                }
            }
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            Source::Connection(body) => body.body.size_hint(),
            Source::Handler(body) => body.size_hint(),
        }
    }

    fn poll_frame(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BrokeOff>>> {
        match &mut self.0 {
            Source::Connection(body) => body.poll_frame(cx),
            Source::Handler(body) => body.poll_frame(cx),
        }
    }
}

impl ConnectionBody {
    fn poll_frame(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BrokeOff>>> {
        self.drive(cx);
        Pin::new(&mut self.body).poll_frame(cx).map_err(|error| BrokeOff::of(&error))
    }

    /// Lets the connection work. One that has ended is dropped; what it read is in the body.
    fn drive(&mut self, cx: &mut Context<'_>) {
        if let Some(wire) = &mut self.wire
            && wire.connection.as_mut().poll(cx).is_ready()
        {
            self.wire = None;
        }
    }

    /// Keeps the connection if it is ready for another request this very moment: one whose request
    /// was answered before it was written, or that has more to say, is closed.
    fn give_back(&mut self) {
        let mut cx = Context::from_waker(std::task::Waker::noop());
        self.drive(&mut cx);
        let Home { pool, standing, stays_open } = &mut self.home;
        match self.wire.take() {
            Some(mut wire) => {
                let ready = matches!(wire.sender.poll_ready(&mut cx), Poll::Ready(Ok(())));
                if ready && !wire.witness.write_failed() {
                    pool.put(wire);
                }
            }
            None if *stays_open => standing.closed(pool.now()),
            None => {}
        }
        // The end of a body can be asked for again.
        *stays_open = false;
    }
}
