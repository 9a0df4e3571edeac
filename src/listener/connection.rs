//! Serves one connection, from its first byte to its last.

use std::convert::Infallible;
use std::error::Error;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;

use http::header::{CONNECTION, HeaderValue};
use http::{Request, Response};
use hyper::body::Incoming;
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};

use super::head_limits::HeadLimits;
use super::refusal::EarlyRefusal;
use super::response::{ActiveRequest, TimedBody};
use super::service::Service;
use super::settings::{Limits, Peer, Resources};
use super::shutdown::Shutdown;
use super::stream::{PeerStream, Protocol};
use super::timer::{ConnectionTimer, Timeouts};
use crate::telemetry::Metrics;

/// The smallest read buffer that hyper's `max_buf_size` accepts. It panics if the buffer is
/// smaller.
const BUFFER_BYTES_MIN: usize = 8192;
/// The most requests at a time on one HTTP/2 connection. RFC 9113, 6.5.2 advises against fewer.
const STREAMS_MAX: u32 = 100;
/// The most streams that the peer may reset before they are served. A peer that opens and resets
/// streams quickly would make work without limit (CVE-2023-44487, "rapid reset").
const PENDING_RESETS_MAX: usize = 20;
/// The most streams that h2 may reset because of an error of the peer. A peer can provoke such
/// resets to the same effect (CVE-2025-8671).
const ERROR_RESETS_MAX: usize = 128;
/// How many bytes a peer may send before the earlier ones are read: on one stream, and on all
/// streams of a connection.
const STREAM_WINDOW_BYTES: u32 = 64 * 1024;
const CONNECTION_WINDOW_BYTES: u32 = 1024 * 1024;
/// How much of one answer may wait in hyper for a reader on HTTP/2.
const SEND_BYTES_MAX: usize = 64 * 1024;

/// What all connections of a listener share.
#[derive(Debug)]
pub(super) struct ServerContext {
    http1: http1::Builder,
    http2: http2::Builder<TokioExecutor>,
    timeouts: Timeouts,
    head_limits: Arc<HeadLimits>,
    shutdown: Shutdown,
    metrics: Arc<Metrics>,
}

impl ServerContext {
    pub(super) fn new(limits: &Limits, shutdown: Shutdown, resources: &Resources) -> Self {
        let head_limits = Arc::new(HeadLimits::new(limits, resources));
        let mut http1 = http1::Builder::new();
        http1
            // `ConnectionTimer` limits this time. hyper's own timer would also count the time
            // between two requests.
            .header_read_timeout(None)
            // A sender may close its sending side after a complete request (RFC 9112, 9.6). Without
            // this hyper drops such a request unserved.
            .half_close(true)
            .max_header_size(limits.header_bytes_max)
            .max_headers(limits.header_lines_max)
            .max_buf_size(limits.header_bytes_max.max(BUFFER_BYTES_MIN));
        let mut http2 = http2::Builder::new(TokioExecutor::new());
        http2
            .timer(TokioTimer::new())
            .max_header_list_size(u32::try_from(head_limits.list_bytes_max()).unwrap_or(u32::MAX))
            .max_concurrent_streams(STREAMS_MAX)
            .max_pending_accept_reset_streams(PENDING_RESETS_MAX)
            .max_local_error_reset_streams(ERROR_RESETS_MAX)
            .initial_stream_window_size(STREAM_WINDOW_BYTES)
            .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
            .max_send_buf_size(SEND_BYTES_MAX);
        let metrics = Arc::clone(&resources.metrics);
        Self { http1, http2, timeouts: Timeouts::of(limits), head_limits, shutdown, metrics }
    }

    pub(super) const fn shutdown(&self) -> &Shutdown {
        &self.shutdown
    }
}

/// Serves a connection until one side ends it, or a time limit has passed.
pub(super) async fn serve<I, S>(context: Arc<ServerContext>, io: I, peer: SocketAddr, service: S)
where
    I: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    S: Service,
{
    let timer = Arc::new(ConnectionTimer::new(context.timeouts));
    let head_limits = Arc::clone(&context.head_limits);
    let stream = PeerStream::new(io, Arc::clone(&timer), head_limits, peer);
    tokio::select! {
        biased;
        () = detect_and_serve(&context, stream, &timer, peer, service) => {}
        limit = timer.expired() => {
            context.metrics.limit_reached(limit);
            tracing::debug!(%peer, limit = limit.as_str(), "closed a connection at its limit");
        }
    }
}

async fn detect_and_serve<I, S>(
    context: &Arc<ServerContext>,
    mut stream: PeerStream<I>,
    timer: &Arc<ConnectionTimer>,
    peer: SocketAddr,
    service: S,
) where
    I: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    S: Service,
{
    let detected = tokio::select! {
        detected = stream.detect() => detected,
        // No request has arrived yet, so nothing is lost.
        _ = context.shutdown.stopping() => return,
    };
    let ended = match detected {
        Ok(Protocol::Http1) => serve_http1(context, stream, timer, peer, service).await,
        Ok(Protocol::Http2) => serve_http2(context, stream, timer, peer, service).await,
        Err(error) => Err(error.into()),
    };
    if let Err(error) = ended {
        tracing::debug!(%peer, ?error, "a connection ended early");
    }
}

type Served = Result<(), Box<dyn Error + Send + Sync>>;

async fn serve_http1<I, S>(
    context: &Arc<ServerContext>,
    stream: PeerStream<I>,
    timer: &Arc<ConnectionTimer>,
    peer: SocketAddr,
    service: S,
) -> Served
where
    I: AsyncRead + AsyncWrite + Unpin + 'static,
    S: Service,
{
    let request_timer = Arc::clone(timer);
    let answer = service_fn(move |request| {
        let active = ActiveRequest::on_http1(&request_timer);
        let answer = answer(&context.head_limits, &service, request, peer, active);
        async move {
            let mut response = answer.await?;
            if context.shutdown.is_draining() {
                response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
            }
            Ok::<_, Infallible>(response)
        }
    });
    let mut connection = pin!(context.http1.serve_connection(TokioIo::new(stream), answer));
    tokio::select! {
        biased;
        ended = connection.as_mut() => return Ok(ended?),
        _ = context.shutdown.stopping() => timer.close_if_idle(),
    }
    connection.as_mut().graceful_shutdown();
    Ok(connection.await?)
}

async fn serve_http2<I, S>(
    context: &Arc<ServerContext>,
    stream: PeerStream<I>,
    timer: &Arc<ConnectionTimer>,
    peer: SocketAddr,
    service: S,
) -> Served
where
    I: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    S: Service,
{
    let request_timer = Arc::clone(timer);
    let answer = service_fn(move |request| {
        let active = ActiveRequest::on_http2(&request_timer);
        answer(&context.head_limits, &service, request, peer, active)
    });
    let mut connection = pin!(context.http2.serve_connection(TokioIo::new(stream), answer));
    tokio::select! {
        biased;
        ended = connection.as_mut() => return Ok(ended?),
        () = time_for_goaway(&context.shutdown, timer) => {}
    }
    connection.as_mut().graceful_shutdown();
    Ok(connection.await?)
}

/// Waits until an HTTP/2 connection should take no more requests. A connection that is accepted
/// while the listener drains can still send its first request.
async fn time_for_goaway(shutdown: &Shutdown, timer: &ConnectionTimer) {
    let drained = async {
        shutdown.draining().await;
        timer.first_request().await;
    };
    tokio::select! {
        () = drained => {}
        _ = shutdown.stopping() => {}
    }
}

/// Answers one request. The request counts as being served until its answer was handed to hyper.
fn answer<S: Service>(
    head_limits: &HeadLimits,
    service: &S,
    mut request: Request<Incoming>,
    peer: SocketAddr,
    active: ActiveRequest,
) -> impl Future<Output = Result<Response<TimedBody<S::Body>>, Infallible>> + Send + use<S> {
    request.extensions_mut().insert(Peer(peer));
    // The head is checked here and not in the future. On HTTP/2 hyper spawns the future, so heads
    // that are to be refused would stay in memory until their tasks run.
    let answer = match head_limits.admit(&mut request) {
        Ok(()) => Ok(service.call(request)),
        Err(refusal) => {
            head_limits.record_refusal(refusal, peer);
            Err(refusal)
        }
    };
    async move {
        match answer {
            Ok(answer) => Ok(answer.await?.map(|body| TimedBody::new(body, active))),
            Err(refusal) => Ok(refused(refusal, active)),
        }
    }
}

fn refused<B>(refusal: EarlyRefusal, active: ActiveRequest) -> Response<TimedBody<B>> {
    let is_last = active.is_http1();
    let mut response = refusal.response().map(|problem| TimedBody::refusal(problem, active));
    if is_last {
        // The request's body was not read, so hyper closes the connection. The sender should know.
        response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    }
    response
}
