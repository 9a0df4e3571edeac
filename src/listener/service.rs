//! The service that answers the requests of a listener.

use std::convert::Infallible;
use std::error::Error;

use bytes::Bytes;
use http::{Request, Response};
use http_body::Body;
use hyper::body::Incoming;

/// Answers requests. Every hyper service that cannot fail is such a service. A tower service, such
/// as an `axum::Router`, becomes one through `hyper_util::service::TowerToHyperService`.
///
/// An answer with `Connection: close` is the last one of an HTTP/1 connection. An answer that is
/// given before the request's body was read must have this header: the connection is closed in any
/// case, and the sender should know. The rest of the body is read and discarded for a while, so
/// that a sender that is still writing can read the answer. `100 Continue` is sent when the body is
/// first polled, and never if it is not polled.
pub trait Service:
    hyper::service::Service<
        Request<Incoming>,
        Response = Response<Self::Body>,
        Error = Infallible,
        Future: Send + 'static,
    > + Clone
    + Send
    + 'static
{
    /// The body of an answer.
    type Body: Body<Data = Bytes, Error: Into<Box<dyn Error + Send + Sync>>>
        + Send
        + Unpin
        + 'static;
}

impl<S, B> Service for S
where
    S: hyper::service::Service<
            Request<Incoming>,
            Response = Response<B>,
            Error = Infallible,
            Future: Send + 'static,
        > + Clone
        + Send
        + 'static,
    B: Body<Data = Bytes, Error: Into<Box<dyn Error + Send + Sync>>> + Send + Unpin + 'static,
{
    type Body = B;
}
