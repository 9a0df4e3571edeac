//! The request as the upstream gets it.

use std::sync::Arc;

use http::request::Parts;
use http::{HeaderName, HeaderValue, header};

use super::receive::Received;
use super::respond::Refusal;
use super::route::Route;
use super::select::Selected;
use crate::idempotency::StepPolicy;
use crate::listener::Peer;
use crate::operation::OperationId;
use crate::upstream::{self, Forwarding, Request, TrustedProxies};

const VERIFIED: HeaderName = HeaderName::from_static("onceward-verified");

/// The request, complete but for what names its operation. Takes the headers out of `head`: nothing
/// looks at them as they were received any more.
pub(super) fn request(
    head: &mut Parts,
    (selected, upstream): (&Selected<Arc<Route>>, &upstream::Settings),
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
    let host = if upstream.preserve_host {
        Some(host)
    } else {
        HeaderValue::from_str(upstream.target.authority.as_str()).ok()
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

/// The same, saying whose signature was checked.
pub(super) fn vouched_for(mut request: Request, verified: Option<HeaderValue>) -> Request {
    if let Some(provider) = verified {
        request.headers.insert(VERIFIED, provider);
    }
    request
}

/// The same with the header that carries the key to an upstream which deduplicates itself.
pub(super) fn carrying_key(
    mut request: Request,
    header: Option<&HeaderName>,
    key: &str,
) -> Request {
    if let Some(name) = header
        && let Ok(value) = HeaderValue::from_str(key)
    {
        request.headers.insert(name.clone(), value);
    }
    request
}

/// The request as the receiver of each step gets it, in their order; none on a route without steps.
/// Two steps are two things to be done, perhaps by one receiver: each has the id of its own as key.
pub(super) fn to_steps(
    head: &Parts,
    selected: &Selected<Arc<Route>>,
    received: &Received,
    trusted: &TrustedProxies,
    event: OperationId,
) -> Result<Vec<Request>, Refusal> {
    let steps = selected.route.settings.steps.iter().flat_map(|steps| &steps.steps);
    let one = |step: &StepPolicy| {
        let mut head = head.clone();
        let selected = selected.towards(&head, &step.upstream)?;
        let request = request(&mut head, (&selected, &step.upstream), received, trusted);
        let id = OperationId::of_step(event, &step.name).to_string();
        Ok(carrying_key(request, step.forward_key.as_ref(), &id))
    };
    steps.map(one).collect()
}
