//! The answer of an upstream while it comes in.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::{Bytes, BytesMut};
use http::{HeaderMap, StatusCode};
use http_body::Body as _;
use hyper::body::Incoming;

use super::body::BrokeOff;
use super::pool::{Pool, Wire};
use super::standing::Standing;
use crate::budget::Reserved;

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

/// The body of an answer. It drives its connection; dropped before its end, it closes it.
#[derive(Debug)]
pub struct AnswerStream {
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
    /// To its end.
    Whole(Bytes),
    /// To the limit: what came so far. The rest is still in the stream.
    TooLong(Bytes),
}

impl AnswerStream {
    pub(super) const fn new(body: Incoming, wire: Option<Wire>, home: Home) -> Self {
        Self { body, wire, home }
    }

    /// Reads the body to its end, or until it is longer than `bytes_max` or than there is memory.
    pub async fn read(
        &mut self,
        bytes_max: usize,
        memory: &mut Reserved,
    ) -> Result<Reading, BrokeOff> {
        let Some(first) = self.chunk().await? else { return Ok(Reading::Whole(Bytes::new())) };
        if first.len() > bytes_max || !has_room(memory, 0, first.len()) {
            return Ok(Reading::TooLong(first));
        }
        // Most answers are one chunk, which needs no copy.
        let Some(second) = self.chunk().await? else { return Ok(Reading::Whole(first)) };
        let mut all = BytesMut::from(first);
        let mut next = Some(second);
        while let Some(chunk) = next {
            let fits =
                all.len() + chunk.len() <= bytes_max && has_room(memory, all.len(), chunk.len());
            all.extend_from_slice(&chunk);
            if !fits {
                return Ok(Reading::TooLong(all.freeze()));
            }
            next = self.chunk().await?;
        }
        Ok(Reading::Whole(all.freeze()))
    }

    /// The next piece of the body; none at its end, when the connection is given back.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, BrokeOff> {
        loop {
            match poll_fn(|cx| self.poll_frame(cx)).await {
                None => {
                    self.give_back();
                    return Ok(None);
                }
                Some(Err(error)) => return Err(BrokeOff::of(&error)),
                // Trailers end here: an answer's are not passed on.
                Some(Ok(frame)) => {
                    if let Ok(data) = frame.into_data()
                        && !data.is_empty()
                    {
                        return Ok(Some(data));
                    }
                }
            }
        }
    }

    fn poll_frame(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<http_body::Frame<Bytes>, hyper::Error>>> {
        self.drive(cx);
        Pin::new(&mut self.body).poll_frame(cx)
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

/// Takes the memory of `more` bytes of a body of which `so_far` are there, if it may.
fn has_room(memory: &mut Reserved, so_far: usize, more: usize) -> bool {
    if memory.grow(more).is_ok() {
        return true;
    }
    let is_small = so_far + more <= ALWAYS_READ_BYTES;
    if is_small {
        memory.take_over(more);
    }
    is_small
}
