//! The proxy as a service: for the listener, and for any tower stack.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{HeaderValue, Request, Response, Version, header};
use http_body::Body;

use super::log::RequestLog;
use super::respond;
use super::settings::{Limits, RouteSettings};
use super::shared::{Dependencies, Shared};
use crate::provider::signature::SecretError;
use crate::upstream::{ResponseBody, TrustedProxies, Upstream};

/// The future of the answer to one request.
pub type Answering =
    Pin<Box<dyn Future<Output = Result<Response<ResponseBody>, Infallible>> + Send>>;

/// Forwards each webhook once. Clones share one state.
#[derive(Debug, Clone)]
pub struct Proxy(Arc<Shared>);

impl Proxy {
    /// A proxy with these routes. It connects to no upstream yet.
    ///
    /// # Errors
    ///
    /// A secret has a form that the route's provider does not issue.
    pub fn new(
        routes: Vec<RouteSettings>,
        limits: Limits,
        trusted: TrustedProxies,
        dependencies: Dependencies,
    ) -> Result<Self, SecretError> {
        Ok(Self(Arc::new(Shared::new(routes, limits, trusted, dependencies)?)))
    }

    /// Refuses new requests with 503 `draining` from now on.
    pub fn drain(&self) {
        self.0.draining.store(true, Ordering::Release);
    }

    /// Closes upstream connections that have been idle for too long.
    pub fn close_idle(&self) {
        for route in &self.0.all {
            route.handler.upstreams().for_each(Upstream::close_idle);
        }
    }

    /// Answers one request.
    pub async fn handle<B: Body<Data = Bytes> + Unpin>(
        &self,
        request: Request<B>,
    ) -> Response<ResponseBody> {
        let shared = &*self.0;
        let (mut head, mut body) = request.into_parts();
        let mut log = RequestLog::begin(&head, shared.clock.clone());
        let answered = shared.path(&mut head, &mut body, &mut log).await;
        let mut answer = answered.unwrap_or_else(|refusal| {
            respond::refused(&refusal, log.route.as_ref().map(|route| &route.settings))
        });
        if let Some(route) = &log.route {
            respond::without_body(&mut answer, &route.settings);
        }
        // The unread rest of a body would be read as the next request, so the connection must close
        // (RFC 9112, 9.3). A chunked body never reports that it has ended, so `is_received` counts
        // first.
        let is_read = log.is_received || body.is_end_stream();
        if !is_read && head.version < Version::HTTP_2 {
            let close = HeaderValue::from_static("close");
            answer.response.headers_mut().insert(header::CONNECTION, close);
        }
        log.end(&answer, &shared.no_route);
        answer.response
    }
}

impl<B> tower::Service<Request<B>> for Proxy
where
    B: Body<Data = Bytes> + Send + Unpin + 'static,
{
    type Response = Response<ResponseBody>;
    type Error = Infallible;
    type Future = Answering;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Answering {
        let proxy = self.clone();
        Box::pin(async move { Ok(proxy.handle(request).await) })
    }
}

impl<B> hyper::service::Service<Request<B>> for Proxy
where
    B: Body<Data = Bytes> + Send + Unpin + 'static,
{
    type Response = Response<ResponseBody>;
    type Error = Infallible;
    type Future = Answering;

    fn call(&self, request: Request<B>) -> Answering {
        let proxy = self.clone();
        Box::pin(async move { Ok(proxy.handle(request).await) })
    }
}
