//! What identification may look at.

use std::sync::Arc;

use http::request::Parts;
use http::{HeaderMap, Method};

use super::{FingerprintRule, KeyRule};
use crate::operation::RequestMode;
use crate::provider::signature::Carried;
use crate::proxy::route::{Mode, PathPattern, RouteSettings, WhenKeyMissing};

/// What was received, before anything of it is stripped or rewritten.
///
/// The headers must be those of the head as received: a key that `Connection` names is a key all
/// the same, and trailers are never asked.
#[derive(Debug, Clone, Copy)]
pub struct RequestView<'a> {
    /// HTTP method.
    pub method: &'a Method,
    /// The path as received, still percent-encoded.
    pub path: &'a str,
    /// What follows `?`, if there is one.
    pub query: Option<&'a str>,
    /// The headers of the head.
    pub headers: &'a HeaderMap,
    /// The whole body.
    pub body: &'a [u8],
    /// What belongs to its signature.
    pub carried: &'a Carried,
}

impl<'a> RequestView<'a> {
    /// A request of which head and body were received.
    pub fn of(head: &'a Parts, body: &'a [u8], carried: &'a Carried) -> Self {
        Self {
            method: &head.method,
            path: head.uri.path(),
            query: head.uri.query(),
            headers: &head.headers,
            body,
            carried,
        }
    }
}

/// What a route says about identity.
#[derive(Debug, Clone, Copy)]
pub struct Rules<'a> {
    /// Name of the route.
    pub route: &'a Arc<str>,
    /// What the route does with its operations.
    pub mode: RequestMode,
    /// Of a prefix route, whose requests' path is part of their identity: the prefix.
    pub prefix: Option<&'a str>,
    /// The methods that are deduplicated.
    pub methods: &'a [Method],
    /// What identifies an operation.
    pub key: &'a KeyRule,
    /// What a key is bound to.
    pub fingerprint: &'a FingerprintRule,
    /// What happens to a request without a key.
    pub when_key_missing: WhenKeyMissing,
}

impl<'a> From<&'a RouteSettings> for Rules<'a> {
    fn from(route: &'a RouteSettings) -> Self {
        Self {
            route: &route.name,
            mode: match route.mode {
                Mode::Observe => RequestMode::Observe { genuine: false },
                Mode::Enforce | Mode::Pass => RequestMode::Enforce,
            },
            prefix: match &route.path {
                PathPattern::Exact(_) => None,
                PathPattern::Prefix(prefix) => Some(prefix),
            },
            methods: &route.methods,
            key: &route.key,
            fingerprint: &route.fingerprint,
            when_key_missing: route.when_key_missing,
        }
    }
}
