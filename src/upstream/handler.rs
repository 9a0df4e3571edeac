//! A handler of the same process in the place of an upstream.

use std::fmt;

use bytes::Bytes;
use http::{Extensions, Request as HttpRequest, Response};
use http_body::Body;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full};
use tower::util::BoxCloneSyncService;
use tower::{Service, ServiceExt as _};

use super::handler_body::HandlerError;

type HandlerResponse = Response<UnsyncBoxBody<Bytes, HandlerError>>;

/// A handler that takes the place of the upstream for one request. It is an extension of the
/// request, so each request reaches the handler behind its own layer.
#[derive(Clone)]
pub struct Handler(
    pub(super) BoxCloneSyncService<HttpRequest<Full<Bytes>>, HandlerResponse, HandlerError>,
);

/// A call of a handler, with what layers and routers in front of the proxy attached to the request.
#[derive(Debug, Clone)]
pub struct HandlerCall {
    pub(super) handler: Handler,
    pub(super) extensions: Extensions,
}

impl Handler {
    /// A handler from a service of any type.
    pub fn new<S, B>(service: S) -> Self
    where
        S: Service<HttpRequest<Full<Bytes>>, Response = Response<B>>
            + Clone
            + Send
            + Sync
            + 'static,
        S::Error: Into<HandlerError>,
        S::Future: Send + 'static,
        B: Body<Data = Bytes> + Send + 'static,
        B::Error: Into<HandlerError>,
    {
        let service = service
            .map_response(|response: Response<B>| {
                response.map(|body| body.map_err(Into::into).boxed_unsync())
            })
            .map_err(Into::into);
        Self(BoxCloneSyncService::new(service))
    }
}

impl HandlerCall {
    /// Takes the handler and all else out of the extensions of a request. None, and nothing is taken
    /// out, if no layer has put a handler in.
    pub fn take(extensions: &mut Extensions) -> Option<Self> {
        let handler = extensions.remove::<Handler>()?;
        Some(Self { handler, extensions: std::mem::take(extensions) })
    }
}

impl fmt::Debug for Handler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Handler")
    }
}
