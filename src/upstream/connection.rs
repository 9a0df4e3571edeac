//! One connection in the hands of one exchange.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};

use http::{StatusCode, header};
use http_body_util::Full;
use hyper::body::Incoming;

use super::Request;
use super::exchange::{Answer, AnswerStream};
use super::pool::{Pool, Wire};
use super::socket::Written;
use crate::clock::Clock;
use crate::operation::Reason;

/// A connection that is about to carry one exchange.
#[derive(Debug)]
pub struct Connection {
    wire: Wire,
    pool: Arc<Pool>,
    clock: Clock,
    reused: bool,
}

/// Whether a byte of a request has been written. It outlives the connection, so that it can be
/// asked after the connection was closed.
#[derive(Debug, Default)]
pub struct Progress(Mutex<Option<(Written, u64)>>);

impl Progress {
    /// Whether a byte has been written since the request was handed over.
    pub fn byte_written(&self) -> bool {
        let watched = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        watched.as_ref().is_some_and(|(written, before)| written.bytes() > *before)
    }

    fn watch(&self, written: Written) {
        let before = written.bytes();
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some((written, before));
    }
}

/// What became of a request that was handed to a connection.
#[derive(Debug)]
pub enum Sent {
    /// The head of an answer came.
    Answered(Answer),
    /// The idle connection had died: no byte was written. The request can be sent on another one.
    HandedBack(Request),
    /// No byte was written, on a connection that was new.
    NeverSent(Reason),
    /// A byte was written, and no answer came.
    Unanswered(Reason),
}

impl Connection {
    pub(super) const fn reused(wire: Wire, pool: Arc<Pool>, clock: Clock) -> Self {
        Self { wire, pool, clock, reused: true }
    }

    pub(super) const fn fresh(wire: Wire, pool: Arc<Pool>, clock: Clock) -> Self {
        Self { wire, pool, clock, reused: false }
    }

    /// Sends a request and waits for the head of the answer. Dropped before it ends, it closes the
    /// connection.
    pub async fn send(self, request: Request, progress: &Progress) -> Sent {
        let Self { wire, pool, clock, reused } = self;
        progress.watch(wire.written.clone());
        let copy = reused.then(|| request.clone());
        match exchange(wire, request).await {
            Ok((response, _)) if !is_framed(&response) => Sent::Unanswered(Reason::NotHttp),
            Ok((response, wire)) => {
                let (mut head, body) = response.into_parts();
                // The body ends where its last chunk does (RFC 9112, 6.3).
                if head.headers.contains_key(header::TRANSFER_ENCODING) {
                    head.headers.remove(header::CONTENT_LENGTH);
                }
                let stream = AnswerStream::new(body, wire, pool, clock);
                Sent::Answered(Answer { status: head.status, headers: head.headers, stream })
            }
            Err(error) => match copy {
                _ if progress.byte_written() => Sent::Unanswered(reason(&error)),
                Some(request) => Sent::HandedBack(request),
                None => Sent::NeverSent(Reason::NothingWritten),
            },
        }
    }
}

/// Whether it is known where an answer ends, and that nothing else follows: nobody asked for another
/// protocol, and no coding is understood but `chunked`.
fn is_framed(response: &http::Response<Incoming>) -> bool {
    let mut codings = response.headers().get_all(header::TRANSFER_ENCODING).iter();
    let chunked = codings.next().is_none_or(|coding| {
        coding.as_bytes().eq_ignore_ascii_case(b"chunked") && codings.next().is_none()
    });
    chunked && response.status() != StatusCode::SWITCHING_PROTOCOLS
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

/// Why no answer came, for the attempt log.
fn reason(error: &hyper::Error) -> Reason {
    if error.is_parse() { Reason::NotHttp } else { Reason::ConnectionLost }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use http::{HeaderMap, Method};
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::{TcpListener, TcpStream};
    use tokio::time::timeout;

    use super::super::{Scheme, Settings, Target, TrustStore, Upstream};
    use super::*;

    fn request() -> Request {
        Request {
            method: Method::POST,
            target: "/".parse().unwrap(),
            headers: HeaderMap::new(),
            body: "body".into(),
        }
    }

    /// Makes an exchange after which the connection is idle; gives the upstream's side of it.
    async fn idle(upstream: &Upstream, listener: &TcpListener) -> TcpStream {
        let answers = async {
            let (mut stream, _) = listener.accept().await.unwrap();
            let _request = stream.read(&mut [0; 1024]).await.unwrap();
            stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await.unwrap();
            stream
        };
        let sends = async {
            let connection = upstream.connect().await.unwrap();
            let sent = connection.send(request(), &Progress::default()).await;
            let Sent::Answered(mut answer) = sent else { panic!("{sent:?}") };
            assert!(matches!(answer.stream.chunk().await, Ok(None)));
        };
        tokio::join!(answers, sends).0
    }

    /// C115: between the look at an idle connection and its use there is time for a close.
    #[tokio::test]
    async fn a_connection_that_is_closed_after_it_was_taken_hands_the_request_back_at_once() {
        for resets in [false, true] {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let authority = listener.local_addr().unwrap().to_string().parse().unwrap();
            let settings = Settings {
                target: Target { scheme: Scheme::Http, authority, path: None },
                connect_timeout: Duration::from_secs(5),
                keepalive: Duration::from_mins(1),
                preserve_host: true,
            };
            let trust = TrustStore::of(rustls::RootCertStore::empty());
            let upstream = Upstream::new(&settings, &trust, Clock::system());
            let stream = idle(&upstream, &listener).await;
            let taken = upstream.connect().await.unwrap();
            assert!(taken.reused);
            if resets {
                stream.set_zero_linger().unwrap();
            }
            drop(stream);
            // The runtime learns of it; else the request would be written into the void.
            tokio::task::yield_now().await;
            let sending = tokio::spawn(async move {
                let progress = Progress::default();
                (taken.send(request(), &progress).await, progress.byte_written())
            });
            let ended = timeout(Duration::from_secs(20), sending).await;
            let (sent, written) = ended.expect("it does not wait for anything").unwrap();
            assert!(matches!(sent, Sent::HandedBack(_)), "{sent:?}");
            assert!(!written);
        }
    }
}
