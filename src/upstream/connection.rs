//! One exchange on one connection.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;

use http::header;
use http_body_util::Full;
use hyper::body::Incoming;

use super::answer::{AnswerStream, Origin, UpstreamAnswer};
use super::head;
use super::pool::{HttpConnection, Pool};
use super::progress::{Progress, SendResult};
use super::request::Request;
use crate::operation::Reason;

/// A connection that is about to carry one exchange.
#[derive(Debug)]
pub struct Connection {
    http: HttpConnection,
    pool: Arc<Pool>,
    reused: bool,
}

impl Connection {
    pub(super) const fn reused(http: HttpConnection, pool: Arc<Pool>) -> Self {
        Self { http, pool, reused: true }
    }

    pub(super) const fn fresh(http: HttpConnection, pool: Arc<Pool>) -> Self {
        Self { http, pool, reused: false }
    }

    /// Whether the connection has carried an exchange before.
    #[cfg(test)]
    pub(super) const fn is_reused(&self) -> bool {
        self.reused
    }

    /// What was observed on the connection.
    #[cfg(test)]
    pub(super) fn observations(&self) -> super::observed::Observations {
        self.http.observations.clone()
    }

    /// Sends a request and waits for the head of the answer.
    ///
    /// Dropping the future closes the connection. `progress` then says whether a byte was written.
    pub async fn send(self, request: Request, progress: &Progress) -> SendResult {
        let Self { http, pool, reused } = self;
        let observations = http.observations.clone();
        let reuse = Arc::clone(&http.reuse);
        progress.watch(observations.clone());
        // hyper consumes the request. Only a reused connection can be found closed, so a clone is
        // kept only for a reused one. The clone shares the body.
        let copy = reused.then(|| request.clone());
        let exchanged = exchange(http, request).await;
        if observations.certificate_refused() {
            return SendResult::NeverSent(Reason::ClientCertificateRefused);
        }
        if !progress.byte_written() {
            // Bytes may have arrived although none was written, such as a 408 that a server sends
            // when it closes an idle connection. They are no answer to this request.
            let Some(request) = copy else { return SendResult::NeverSent(Reason::NothingWritten) };
            reuse.record_close(pool.now());
            return SendResult::HandedBack(request);
        }
        match exchanged {
            Ok((response, http)) => {
                answered(response, http, Origin { pool, reuse, stays_open: false })
            }
            Err(error) => {
                let reason = reason(&error);
                // The server closed a connection without announcing it. An address must prove that
                // its server does not do this.
                if reused && reason == Reason::ConnectionLost {
                    reuse.record_close(pool.now());
                }
                SendResult::Unanswered(reason)
            }
        }
    }
}

fn answered(
    response: http::Response<Incoming>,
    mut http: Option<HttpConnection>,
    origin: Origin,
) -> SendResult {
    let (mut head, body) = response.into_parts();
    if let Some(reason) = head::flaw(&head) {
        return SendResult::Unanswered(reason);
    }
    let stays_open = head::stays_open(&head, &body);
    if stays_open
        && let Some(http) = &mut http
        && let Some(promised) = head::promised_idle(&head.headers)
    {
        // Half of the promised time counts. The time began when the server wrote the answer, before
        // we read it, and some servers close early.
        http.idle_max = http.idle_max.min(promised / 2);
        if !http.idle_max.is_zero() {
            origin.reuse.record_promise(origin.pool.now());
        }
    }
    // If both headers are present, the chunks decide where the body ends. The length is then wrong
    // and must not be passed on (RFC 9112, 6.3).
    if head.headers.contains_key(header::TRANSFER_ENCODING) {
        head.headers.remove(header::CONTENT_LENGTH);
    }
    let stream = AnswerStream::of_connection(body, http, Origin { stays_open, ..origin });
    let answer = UpstreamAnswer { status: head.status, headers: head.headers, stream };
    SendResult::Answered(answer)
}

/// Drives the connection until the head of the answer has arrived. Returns the connection with the
/// head, unless the connection has ended. On an error the connection is closed.
async fn exchange(
    mut http: HttpConnection,
    request: Request,
) -> Result<(http::Response<Incoming>, Option<HttpConnection>), hyper::Error> {
    let mut message = http::Request::new(Full::new(request.body));
    *message.method_mut() = request.method;
    *message.uri_mut() = request.target.into();
    *message.headers_mut() = request.headers;
    // `try_send_request` hands a request back that hyper has not begun to write; `send_request`
    // would drop such a request, and the two cases would look the same.
    let mut answer = pin!(http.sender.try_send_request(message));
    let mut open = Some(http);
    let answered = poll_fn(|cx| {
        // The driver is polled first: only it moves the request out and the answer in.
        if let Some(http) = &mut open
            && http.driver.as_mut().poll(cx).is_ready()
        {
            // The driver's result is not needed, because hyper reports an error to `answer` as
            // well. If the driver ended before it took the request, dropping the driver makes
            // `answer` ready.
            open = None;
        }
        answer.as_mut().poll(cx)
    });
    match answered.await {
        Ok(response) => Ok((response, open)),
        Err(mut refused) => {
            // `send` has a clone, and decides by the count of bytes whether the clone may be sent.
            drop(refused.take_message());
            Err(refused.into_error())
        }
    }
}

/// hyper's texts for an answer whose `Content-Length` is not one number, and for an HTTP/1.0 answer
/// with `Transfer-Encoding`. hyper has no method that tells these from an answer that is not HTTP.
const LENGTH_UNCLEAR: [&str; 2] =
    ["invalid content-length parsed", "unexpected transfer-encoding parsed"];

/// Why no answer arrived, for the attempt log.
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
