//! The request as the upstream gets it.

use std::sync::Arc;

use http::request::Parts;
use http::{HeaderValue, header};

use super::receive::Received;
use super::route::{Route, RouteSettings};
use super::select::Selected;
use crate::listener::Peer;
use crate::upstream::{self, Forwarding, Request, TrustedProxies};

/// The request, complete but for what names its operation. Takes the headers out of `head`: nothing
/// looks at them as they were received any more.
pub(super) fn request(
    head: &mut Parts,
    selected: &Selected<Arc<Route>>,
    received: &Received,
    trusted: &TrustedProxies,
) -> Request {
    let headers = std::mem::take(&mut head.headers);
    let host = headers.get(header::HOST).cloned();
    let host = host
        .or_else(|| HeaderValue::from_str(selected.host.as_str()).ok())
        .unwrap_or(HeaderValue::from_static(""));
    let settings = &selected.route.settings;
    let forwarding = Forwarding {
        peer: head.extensions.get::<Peer>().map(|peer| peer.0.ip()),
        trusted,
        host: &host,
        public: settings.public_url.as_ref(),
        version: head.version,
        prefix: selected.prefix.as_deref(),
    };
    let message = (&head.method, received.body.len());
    let mut headers = upstream::request_headers(headers, message, forwarding);
    let host = if settings.upstream.preserve_host {
        Some(host)
    } else {
        HeaderValue::from_str(settings.upstream.target.authority.as_str()).ok()
    };
    if let Some(host) = host {
        headers.insert(header::HOST, host);
    }
    Request {
        method: head.method.clone(),
        target: selected.target.clone(),
        headers,
        body: received.body.clone(),
    }
}

/// The same with the header that carries the key to an upstream which deduplicates itself.
pub(super) fn carrying_key(mut request: Request, route: &RouteSettings, key: &str) -> Request {
    if let Some(name) = &route.forward_key
        && let Ok(value) = HeaderValue::from_str(key)
    {
        request.headers.insert(name.clone(), value);
    }
    request
}
