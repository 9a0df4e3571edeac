//! One connection, from its first byte to its last.

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

use super::answer::{Answer, Serving};
use super::heads::Heads;
use super::refusal::Refusal;
use super::service::Service;
use super::watch::{Timeouts, Watch};
use super::wire::{Protocol, Wire};
use super::{Limits, Peer, Resources, Shutdown};
use crate::telemetry::Metrics;

/// What hyper demands at least for its buffer.
const BUFFER_BYTES_MIN: usize = 8192;
/// Requests at a time on one HTTP/2 connection.
const STREAMS_MAX: u32 = 100;
/// Streams that were reset before they were looked at (CVE-2023-44487).
const PENDING_RESETS_MAX: usize = 20;
/// Streams that we reset because of what the peer did on them (CVE-2025-8671).
const ERROR_RESETS_MAX: usize = 128;
/// What a peer may send ahead of us on one stream, and on all of a connection.
const STREAM_WINDOW_BYTES: u32 = 64 * 1024;
const CONNECTION_WINDOW_BYTES: u32 = 1024 * 1024;
/// What of one answer waits in hyper for a reader on HTTP/2.
const SEND_BYTES_MAX: usize = 64 * 1024;

/// What all connections of a listener have in common.
#[derive(Debug)]
pub(super) struct Shared {
    http1: http1::Builder,
    http2: http2::Builder<TokioExecutor>,
    timeouts: Timeouts,
    heads: Arc<Heads>,
    shutdown: Shutdown,
    metrics: Arc<Metrics>,
}

impl Shared {
    pub(super) fn new(limits: &Limits, shutdown: Shutdown, resources: &Resources) -> Self {
        let heads = Arc::new(Heads::new(limits, resources));
        let mut http1 = http1::Builder::new();
        http1
            // The watch does this, and more exactly.
            .header_read_timeout(None)
            // A sender that hangs up with the last byte of its request has made it all the same;
            // else the request would be dropped unseen. One that can still read gets its answer.
            .half_close(true)
            .max_header_size(limits.header_bytes_max)
            .max_headers(limits.header_lines_max)
            .max_buf_size(limits.header_bytes_max.max(BUFFER_BYTES_MIN));
        let mut http2 = http2::Builder::new(TokioExecutor::new());
        http2
            .timer(TokioTimer::new())
            .max_header_list_size(u32::try_from(heads.list_bytes_max()).unwrap_or(u32::MAX))
            .max_concurrent_streams(STREAMS_MAX)
            .max_pending_accept_reset_streams(PENDING_RESETS_MAX)
            .max_local_error_reset_streams(ERROR_RESETS_MAX)
            .initial_stream_window_size(STREAM_WINDOW_BYTES)
            .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
            .max_send_buf_size(SEND_BYTES_MAX);
        let metrics = Arc::clone(&resources.metrics);
        Self { http1, http2, timeouts: Timeouts::of(limits), heads, shutdown, metrics }
    }

    pub(super) const fn shutdown(&self) -> &Shutdown {
        &self.shutdown
    }
}

/// Serves a connection until one side ends it or a limit has passed.
pub(super) async fn serve<I, S>(shared: Arc<Shared>, io: I, peer: SocketAddr, service: S)
where
    I: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    S: Service,
{
    let watch = Arc::new(Watch::new(shared.timeouts));
    let wire = Wire::new(io, Arc::clone(&watch), Arc::clone(&shared.heads), peer);
    tokio::select! {
        biased;
        () = speak(&shared, wire, &watch, peer, service) => {}
        limit = watch.expired() => {
            shared.metrics.limit_reached(limit);
            tracing::debug!(%peer, limit = limit.as_str(), "closed a connection at its limit");
        }
    }
}

async fn speak<I, S>(
    shared: &Arc<Shared>,
    mut wire: Wire<I>,
    watch: &Arc<Watch>,
    peer: SocketAddr,
    service: S,
) where
    I: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    S: Service,
{
    let detected = tokio::select! {
        detected = wire.detect() => detected,
        _ = shared.shutdown.stopping() => return,
    };
    let ended = match detected {
        Ok(Protocol::Http1) => speak_http1(shared, wire, watch, peer, service).await,
        Ok(Protocol::Http2) => speak_http2(shared, wire, watch, peer, service).await,
        Err(error) => Err(error.into()),
    };
    if let Err(error) = ended {
        tracing::debug!(%peer, ?error, "a connection ended early");
    }
}

type Ended = Result<(), Box<dyn Error + Send + Sync>>;

async fn speak_http1<I, S>(
    shared: &Arc<Shared>,
    wire: Wire<I>,
    watch: &Arc<Watch>,
    peer: SocketAddr,
    service: S,
) -> Ended
where
    I: AsyncRead + AsyncWrite + Unpin + 'static,
    S: Service,
{
    let served = Arc::clone(watch);
    let answer = service_fn(move |request| {
        let answer = answer(&shared.heads, &service, request, peer, Serving::alone(&served));
        async move {
            let mut response = answer.await?;
            if shared.shutdown.is_draining() {
                response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
            }
            Ok::<_, Infallible>(response)
        }
    });
    let mut connection = pin!(shared.http1.serve_connection(TokioIo::new(wire), answer));
    tokio::select! {
        biased;
        ended = connection.as_mut() => return Ok(ended?),
        _ = shared.shutdown.stopping() => watch.close_if_idle(),
    }
    connection.as_mut().graceful_shutdown();
    Ok(connection.await?)
}

async fn speak_http2<I, S>(
    shared: &Arc<Shared>,
    wire: Wire<I>,
    watch: &Arc<Watch>,
    peer: SocketAddr,
    service: S,
) -> Ended
where
    I: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    S: Service,
{
    let served = Arc::clone(watch);
    let answer = service_fn(move |request| {
        answer(&shared.heads, &service, request, peer, Serving::among_others(&served))
    });
    let mut connection = pin!(shared.http2.serve_connection(TokioIo::new(wire), answer));
    tokio::select! {
        biased;
        ended = connection.as_mut() => return Ok(ended?),
        () = goodbye(&shared.shutdown, watch) => {}
    }
    connection.as_mut().graceful_shutdown();
    Ok(connection.await?)
}

/// Ends when a connection on HTTP/2 should take no more requests. One that was accepted while the
/// listener drains has a right to its first.
async fn goodbye(shutdown: &Shutdown, watch: &Watch) {
    let drained = async {
        shutdown.draining().await;
        watch.first_request().await;
    };
    tokio::select! {
        () = drained => {}
        _ = shutdown.stopping() => {}
    }
}

/// Answers one request; it is being served until its answer has been passed on.
fn answer<S: Service>(
    heads: &Heads,
    service: &S,
    mut request: Request<Incoming>,
    peer: SocketAddr,
    serving: Serving,
) -> impl Future<Output = Result<Response<Answer<S::Body>>, Infallible>> + Send + use<S> {
    request.extensions_mut().insert(Peer(peer));
    // Here and not in the future: what is refused must not be in memory until a task looks at it.
    let answer = match heads.admit(&mut request) {
        Ok(()) => Ok(service.call(request)),
        Err(refusal) => {
            heads.refused(refusal, peer);
            Err(refusal)
        }
    };
    async move {
        match answer {
            Ok(answer) => Ok(answer.await?.map(|body| Answer::new(body, serving))),
            Err(refusal) => Ok(refused(refusal, serving)),
        }
    }
}

fn refused<B>(refusal: Refusal, serving: Serving) -> Response<Answer<B>> {
    let is_last = serving.is_alone();
    let mut response = refusal.response().map(|problem| Answer::refusal(problem, serving));
    if is_last {
        // Its body was not read.
        response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    }
    response
}
