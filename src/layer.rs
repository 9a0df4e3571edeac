//! Once in front of handlers of the same process: a [`tower::Layer`].

use std::convert::Infallible;
use std::error::Error;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{Request, Response};
use http_body::Body;
use http_body_util::Full;
use tower::{Layer, Service};

use crate::proxy::{Answering, Proxy};
use crate::upstream::{Handler, ResponseBody};

/// Puts a [`Proxy`] in front of handlers of the same process. There is no network hop, because the
/// handler takes the place of the route's upstream.
///
/// Routes, keys, signatures, stores and limits are those of the proxy. A request whose path no
/// route serves gets 404. The handler's response is the answer of the upstream: it is classified,
/// recorded and replayed. A handler may panic, fail with an error, or be dropped because
/// `attempt_timeout` is over or the process ends. Each of these leaves the operation uncertain,
/// because the handler may have done its work. The handler gets the extensions of the request, so
/// extractors work. Onceward never connects to the `upstream` of the route. On a route with steps
/// the requests of the steps go to the steps' own upstreams, and the handler gets only the requests
/// that are not deduplicated.
///
/// The handler runs in the future of the request, which also renews the lease. If its sender hangs
/// up, both go on in a task of their own.
///
/// ```no_run
/// use axum::{Router, routing::post};
/// use onceward::{App, Config, OnceLayer};
///
/// # async fn serve() -> Result<(), Box<dyn std::error::Error>> {
/// let config = Config::from_upstream("http://localhost", "/webhooks/*", std::env::vars_os())?;
/// let app = App::start(config).await?;
/// let once = OnceLayer::new(app.proxy());
/// let router = Router::new().route("/webhooks/orders", post(async || "done\n").layer(once));
/// app.run_inside(router, std::future::pending()).await;
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct OnceLayer {
    proxy: Proxy,
}

impl OnceLayer {
    /// A layer with the routes of this proxy.
    pub const fn new(proxy: Proxy) -> Self {
        Self { proxy }
    }
}

impl<S, B> Layer<S> for OnceLayer
where
    S: Service<Request<Full<Bytes>>, Response = Response<B>> + Clone + Send + Sync + 'static,
    S::Error: Into<Box<dyn Error + Send + Sync>>,
    S::Future: Send + 'static,
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    type Service = Once;

    fn layer(&self, handler: S) -> Once {
        Once { proxy: self.proxy.clone(), handler: Handler::new(handler) }
    }
}

/// A handler that is called once for each operation. Made by [`OnceLayer`].
#[derive(Debug, Clone)]
pub struct Once {
    proxy: Proxy,
    handler: Handler,
}

impl<B> Service<Request<B>> for Once
where
    B: Body<Data = Bytes> + Send + Unpin + 'static,
{
    type Response = Response<ResponseBody>;
    type Error = Infallible;
    type Future = Answering;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        // The handler is made ready when it is called, because most copies never reach it.
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, mut request: Request<B>) -> Answering {
        request.extensions_mut().insert(self.handler.clone());
        Service::call(&mut self.proxy, request)
    }
}
