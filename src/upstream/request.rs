//! A request as the upstream gets it.

use bytes::Bytes;
use http::uri::PathAndQuery;
use http::{HeaderMap, Method};

use super::handler::HandlerCall;

/// A request to an upstream, with its whole body in memory.
#[derive(Debug, Clone)]
pub struct Request {
    /// The method.
    pub method: Method,
    /// The request target, byte for byte as the sender wrote it, after a configured change of
    /// prefix.
    pub target: PathAndQuery,
    /// All headers, except those that differ from attempt to attempt.
    pub headers: HeaderMap,
    /// The body.
    pub body: Bytes,
    /// The handler of this process that takes the place of the upstream, if there is one.
    pub handler: Option<HandlerCall>,
}
