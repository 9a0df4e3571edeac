//! The parts of a request that selectors may read.

use http::request::Parts;
use http::{HeaderMap, Method};

use crate::json::Document;
use crate::provider::signature::Carried;

/// A request as it was received, before any header is removed or rewritten.
///
/// A key header that `Connection` names is still a key header here, because the upstream's own
/// duplicate check would have seen it. Trailers are not part of the view: no rule reads them.
#[derive(Debug)]
pub struct RequestView<'a> {
    /// HTTP method.
    pub method: &'a Method,
    /// The path as received, still percent-encoded.
    pub path: &'a str,
    /// The text after `?`, if there is one.
    pub query: Option<&'a str>,
    /// The headers of the head.
    pub headers: &'a HeaderMap,
    /// The whole body.
    pub body: Document<'a>,
    /// The values that came with the signature.
    pub carried: &'a Carried,
}

impl<'a> RequestView<'a> {
    /// The view of a request whose head and body were received.
    pub fn of(head: &'a Parts, body: &'a [u8], carried: &'a Carried) -> Self {
        Self {
            method: &head.method,
            path: head.uri.path(),
            query: head.uri.query(),
            headers: &head.headers,
            body: Document::new(body),
            carried,
        }
    }
}
