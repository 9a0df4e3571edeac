//! One connection in the hands of one exchange.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use http::header;
use http_body_util::Full;
use hyper::body::Incoming;

use super::Request;
use super::exchange::{Answer, AnswerStream, Home};
use super::head;
use super::pool::{Pool, Wire};
use super::witness::Witness;
use crate::operation::Reason;

/// A connection that is about to carry one exchange.
#[derive(Debug)]
pub struct Connection {
    wire: Wire,
    pool: Arc<Pool>,
    reused: bool,
}

/// Whether a byte of a request has been written. It outlives the connection, so that it can be
/// asked after the connection was closed.
#[derive(Debug, Default)]
pub struct Progress {
    watched: Mutex<Option<(Witness, u64)>>,
    /// Whether the request was handed to a handler of this process.
    handed_over: AtomicBool,
}

impl Progress {
    /// Whether a byte has been written since the request was handed over.
    pub fn byte_written(&self) -> bool {
        if self.handed_over.load(Ordering::Acquire) {
            return true;
        }
        let watched = self.watched.lock().unwrap_or_else(PoisonError::into_inner);
        watched.as_ref().is_some_and(|(witness, before)| witness.written() > *before)
    }

    /// A handler of this process has the request.
    pub(super) fn handed_over(&self) {
        self.handed_over.store(true, Ordering::Release);
    }

    fn watch(&self, witness: Witness) {
        let before = witness.written();
        *self.watched.lock().unwrap_or_else(PoisonError::into_inner) = Some((witness, before));
    }
}

/// What became of a request that was handed to a connection.
#[derive(Debug)]
pub enum Sent {
    /// The head of an answer came.
    Answered(Answer),
    /// The idle connection had died: no byte was written. The request can be sent on another one.
    HandedBack(Request),
    /// Nothing was taken: no byte was written on a connection that was new, or the server refused
    /// to go on without a certificate.
    NeverSent(Reason),
    /// A byte was written, and no answer came.
    Unanswered(Reason),
}

impl Connection {
    pub(super) const fn reused(wire: Wire, pool: Arc<Pool>) -> Self {
        Self { wire, pool, reused: true }
    }

    pub(super) const fn fresh(wire: Wire, pool: Arc<Pool>) -> Self {
        Self { wire, pool, reused: false }
    }

    /// Whether it has carried an exchange before.
    #[cfg(test)]
    pub(super) const fn is_reused(&self) -> bool {
        self.reused
    }

    /// What it has seen.
    #[cfg(test)]
    pub(super) fn witness(&self) -> Witness {
        self.wire.witness.clone()
    }

    /// Sends a request and waits for the head of the answer. Dropped before it ends, it closes the
    /// connection.
    pub async fn send(self, request: Request, progress: &Progress) -> Sent {
        let Self { wire, pool, reused } = self;
        let witness = wire.witness.clone();
        let standing = Arc::clone(&wire.standing);
        progress.watch(witness.clone());
        let copy = reused.then(|| request.clone());
        let exchanged = exchange(wire, request).await;
        if witness.certificate_refused() {
            return Sent::NeverSent(Reason::ClientCertificateRefused);
        }
        if !progress.byte_written() {
            // What may have come back all the same is no answer to it.
            let Some(request) = copy else { return Sent::NeverSent(Reason::NothingWritten) };
            standing.closed(pool.now());
            return Sent::HandedBack(request);
        }
        match exchanged {
            Ok((response, wire)) => {
                answered(response, wire, Home { pool, standing, stays_open: false })
            }
            Err(error) => {
                let reason = reason(&error);
                if reused && reason == Reason::ConnectionLost {
                    standing.closed(pool.now());
                }
                Sent::Unanswered(reason)
            }
        }
    }
}

fn answered(response: http::Response<Incoming>, mut wire: Option<Wire>, home: Home) -> Sent {
    let (mut head, body) = response.into_parts();
    if let Some(reason) = head::flaw(&head) {
        return Sent::Unanswered(reason);
    }
    let stays_open = head::stays_open(&head, &body);
    if stays_open
        && let Some(wire) = &mut wire
        && let Some(promised) = head::promised_idle(&head.headers)
    {
        // Half of it: the server counts from when it wrote, and closes when it gets round to it.
        wire.idle_max = wire.idle_max.min(promised / 2);
        if !wire.idle_max.is_zero() {
            home.standing.promised(home.pool.now());
        }
    }
    // The body ends where its last chunk does (RFC 9112, 6.3).
    if head.headers.contains_key(header::TRANSFER_ENCODING) {
        head.headers.remove(header::CONTENT_LENGTH);
    }
    let stream = AnswerStream::of_connection(body, wire, Home { stays_open, ..home });
    Sent::Answered(Answer { status: head.status, headers: head.headers, stream })
}

/// Drives the connection until the head of the answer is there. Gives it back unless it has ended;
/// without an answer it is closed.
async fn exchange(
    mut wire: Wire,
    request: Request,
) -> Result<(http::Response<Incoming>, Option<Wire>), hyper::Error> {
    let mut message = http::Request::new(Full::new(request.body));
    *message.method_mut() = request.method;
    *message.uri_mut() = request.target.into();
    *message.headers_mut() = request.headers;
    let mut answer = pin!(wire.sender.try_send_request(message));
    let mut open = Some(wire);
    let answered = poll_fn(|cx| {
        // The connection first: only it moves the request out and the answer in.
        if let Some(wire) = &mut open
            && wire.connection.as_mut().poll(cx).is_ready()
        {
            // One that ends before it has taken the request says so by being dropped alone.
            open = None;
        }
        answer.as_mut().poll(cx)
    });
    match answered.await {
        Ok(response) => Ok((response, open)),
        Err(mut refused) => {
            drop(refused.take_message());
            Err(refused.into_error())
        }
    }
}

/// What hyper says of an answer whose `Content-Length` is no number or more than one, and of one of
/// HTTP/1.0 with a `Transfer-Encoding`. It has no other way to tell them from what is not HTTP.
const LENGTH_UNCLEAR: [&str; 2] =
    ["invalid content-length parsed", "unexpected transfer-encoding parsed"];

/// Why no answer came, for the attempt log.
fn reason(error: &hyper::Error) -> Reason {
    if error.is_parse_too_large() {
        Reason::AnswerHeadTooLarge
    } else if error.is_parse() && LENGTH_UNCLEAR.contains(&error.to_string().as_str()) {
        Reason::AnswerLengthUnclear
    } else if error.is_parse() {
        Reason::NotHttp
    } else {
        Reason::ConnectionLost
    }
}
