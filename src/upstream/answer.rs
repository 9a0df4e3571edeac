//! The answer of an upstream while its body comes in.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use http::{HeaderMap, StatusCode};
use http_body::{Body as _, Frame, SizeHint};
use hyper::body::Incoming;

use super::body::BodyError;
use super::handler_body::HandlerBody;
use super::pool::{HttpConnection, Pool};
use super::reuse::Reuse;
use crate::budget::{Buffer, Reserved};

/// This many bytes of an answer are read even if the budget has no memory left. Otherwise a short
/// acknowledgement would be stored without its body for the whole retention. The bytes are counted,
/// so other bodies are refused instead.
const ALWAYS_READ_BYTES: usize = 16 * 1024;

/// The head of an answer, and the stream of its body.
#[derive(Debug)]
pub struct UpstreamAnswer {
    /// The status.
    pub status: StatusCode,
    /// The headers as the upstream sent them.
    pub headers: HeaderMap,
    /// The body.
    pub stream: AnswerStream,
}

/// The body of an answer. Dropping it before its end closes its connection, or drops the work of
/// its handler.
#[derive(Debug)]
pub struct AnswerStream(Source);

#[derive(Debug)]
enum Source {
    Connection(Box<ConnectionBody>),
    Handler(HandlerBody),
}

/// A body from a connection. Reading the body drives the connection.
#[derive(Debug)]
struct ConnectionBody {
    body: Incoming,
    /// None once the connection has ended or was given back.
    connection: Option<HttpConnection>,
    origin: Origin,
}

/// Where a connection came from, and whether it can be used again.
#[derive(Debug)]
pub(super) struct Origin {
    pub(super) pool: Arc<Pool>,
    pub(super) reuse: Arc<Reuse>,
    /// Whether the server announced that it keeps the connection open after the answer.
    pub(super) stays_open: bool,
}

/// How far a body was read: its bytes, and their memory.
#[derive(Debug)]
pub enum BodyRead {
    /// The whole body.
    Whole(Bytes, Reserved),
    /// The beginning of a body that is longer than the limit. The rest is still in the stream.
    TooLong(Bytes, Reserved),
}

impl AnswerStream {
    pub(super) fn of_connection(
        body: Incoming,
        connection: Option<HttpConnection>,
        origin: Origin,
    ) -> Self {
        Self(Source::Connection(Box::new(ConnectionBody { body, connection, origin })))
    }

    pub(super) const fn of_handler(body: HandlerBody) -> Self {
        Self(Source::Handler(body))
    }

    /// Reads the body to its end. It stops early if the body is longer than `bytes_max`, or if the
    /// budget has no memory left.
    ///
    /// Not cancel safe: the bytes that were read are lost.
    pub async fn read(
        &mut self,
        bytes_max: usize,
        memory: Reserved,
    ) -> Result<BodyRead, BodyError> {
        let expected = self.size_hint().exact().and_then(|bytes| bytes.try_into().ok());
        // A `Content-Length` only announces a length, so it must not reserve more than the limit.
        let expected = expected.map(|expected: usize| expected.min(bytes_max));
        let mut buffer = Buffer::counted_in(memory, expected);
        while let Some(chunk) = self.chunk().await? {
            let length = buffer.len().saturating_add(chunk.len());
            if length > bytes_max || buffer.append(&chunk).is_err() {
                // The chunk is in memory already. It goes to the sender with the rest, so it is
                // kept even if the budget has no room for it.
                buffer.append_anyway(&chunk);
                if length > ALWAYS_READ_BYTES.min(bytes_max) {
                    let (begun, memory) = buffer.finish();
                    return Ok(BodyRead::TooLong(begun, memory));
                }
            }
        }
        let (body, memory) = buffer.finish();
        Ok(BodyRead::Whole(body, memory))
    }

    /// The next chunk of the body. None at the end of the body, where the connection is given back.
    ///
    /// Cancel safe.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, BodyError> {
        loop {
            match poll_fn(|cx| self.poll_frame(cx)).await.transpose()? {
                None => {
                    if let Source::Connection(body) = &mut self.0 {
                        body.give_back();
                    }
                    return Ok(None);
                }
                Some(frame) => {
                    // A frame without data is the trailers. They are dropped, as RFC 9112, 7.1.2
                    // allows: a stored answer has none, and copies get what the first sender got.
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

    fn poll_frame(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        match &mut self.0 {
            Source::Connection(body) => body.poll_frame(cx),
            Source::Handler(body) => body.poll_frame(cx),
        }
    }
}

impl ConnectionBody {
    fn poll_frame(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        self.drive(cx);
        Pin::new(&mut self.body).poll_frame(cx).map_err(|error| BodyError::of(&error))
    }

    /// Polls the connection. A connection that has ended is dropped, because all that it had read
    /// is in the body.
    fn drive(&mut self, cx: &mut Context<'_>) {
        if let Some(connection) = &mut self.connection
            && connection.driver.as_mut().poll(cx).is_ready()
        {
            self.connection = None;
        }
    }

    /// Gives the connection back if it is ready for the next request at this moment.
    ///
    /// If the server answered before the request was written, or has more to say, hyper is not
    /// ready and the connection is closed.
    fn give_back(&mut self) {
        let mut cx = Context::from_waker(Waker::noop());
        self.drive(&mut cx);
        let Origin { pool, reuse, stays_open } = &mut self.origin;
        match self.connection.take() {
            Some(mut connection) => {
                let ready = matches!(connection.sender.poll_ready(&mut cx), Poll::Ready(Ok(())));
                // hyper takes a discarded write for a successful one, and would go on.
                if ready && !connection.observations.write_failed() {
                    pool.put(connection);
                }
            }
            // The connection ended together with the answer, although the server had announced that
            // it stays open.
            None if *stays_open => reuse.record_close(pool.now()),
            None => {}
        }
        // `chunk` may be called again after the end, but a close is recorded once.
        *stays_open = false;
    }
}
