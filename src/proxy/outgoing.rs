//! The request that the upstream gets.

use std::sync::Arc;

use bytes::Bytes;
use http::request::Parts;
use http::{HeaderName, HeaderValue, header};

use super::refusal::Refusal;
use super::route::Route;
use super::select::Selected;
use crate::budget::Reserved;
use crate::idempotency::{StepRequests, StepsPolicy};
use crate::listener::{Peer, header_map_bytes};
use crate::operation::OperationId;
use crate::upstream::{self, ForwardingContext, Handler, HandlerCall, Request, TrustedProxies};

const VERIFIED: HeaderName = HeaderName::from_static("onceward-verified");

/// The upstream of a request, and the target of the request to it.
#[derive(Clone, Copy)]
pub(super) struct Destination<'a> {
    pub(super) selected: &'a Selected<Arc<Route>>,
    pub(super) upstream: &'a upstream::Settings,
    /// The header that carries the key to the upstream, if there is one.
    pub(super) key_header: Option<&'a HeaderName>,
}

/// The request for the upstream, without the headers that depend on its operation. Moves the
/// headers out of `head`: no later step reads them as they were received.
pub(super) fn request(
    head: &mut Parts,
    destination: Destination<'_>,
    body: &Bytes,
    trusted: &TrustedProxies,
) -> Request {
    let Destination { selected, upstream, key_header } = destination;
    // The headers are moved and not cloned, because most requests go to one upstream.
    let headers = std::mem::take(&mut head.headers);
    let host = headers.get(header::HOST).cloned();
    let host = host
        .or_else(|| HeaderValue::from_str(selected.host.as_str()).ok())
        .unwrap_or(HeaderValue::from_static(""));
    let settings = &selected.route.settings;
    let forwarding = ForwardingContext {
        peer: head.extensions.get::<Peer>().map(|peer| peer.0.ip()),
        trusted,
        host: &host,
        public: settings.public_url.as_ref(),
        version: head.version,
        prefix: selected.prefix.as_deref(),
        key_header,
    };
    let mut headers = upstream::request_headers(headers, &head.method, body.len(), forwarding);
    let handler = HandlerCall::take(&mut head.extensions);
    // Some signatures cover the host, and many applications choose a site by it.
    // A handler of this process stands for no other host.
    let host = if upstream.preserve_host || handler.is_some() {
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
        body: body.clone(),
        handler,
    }
}

/// The same request with the header that names the provider whose signature is valid.
pub(super) fn with_provider(mut request: Request, verified: Option<HeaderValue>) -> Request {
    // A sender cannot set this header itself: all headers that begin with `Onceward-` were removed.
    if let Some(provider) = verified {
        request.headers.insert(VERIFIED, provider);
    }
    request
}

/// The same request with the header that carries the key to an upstream which deduplicates, too.
pub(super) fn with_key(mut request: Request, header: Option<&HeaderName>, key: &str) -> Request {
    if let Some(name) = header
        && let Ok(value) = HeaderValue::from_str(key)
    {
        request.headers.insert(name.clone(), value);
    }
    request
}

/// The template of the requests to a route's steps. All of them are made from one head. Two steps
/// may have the same upstream, so each step has its own key: its step id.
#[derive(Debug)]
pub(super) struct StepTemplate {
    pub(super) head: Parts,
    pub(super) selected: Selected<Arc<Route>>,
    pub(super) body: Bytes,
    pub(super) trusted: Arc<TrustedProxies>,
    pub(super) event: OperationId,
    /// The name of the provider whose signature is valid.
    pub(super) verified: Option<HeaderValue>,
}

impl StepTemplate {
    /// Refuses a request if the target for a step cannot be made, or if `memory` has no room for
    /// the heads. After the claim it would be too late for a refusal.
    pub(super) fn checked(
        self,
        steps: &StepsPolicy,
        memory: &mut Reserved,
    ) -> Result<Box<dyn StepRequests>, Refusal> {
        for step in &steps.steps {
            self.selected.towards(&self.head, &step.upstream)?;
        }
        memory.grow(self.bytes(steps)).map_err(|_| Refusal::Overloaded)?;
        Ok(Box::new(self))
    }

    /// The bytes of all heads that exist at one time beside the received one: the head of this
    /// template, and one for each step that runs. A head is counted twice, because Onceward adds
    /// fields to it.
    fn bytes(&self, steps: &StepsPolicy) -> usize {
        let at_once = if steps.at_once { steps.steps.len() } else { 1 };
        let target = self.selected.target.as_str().len();
        let one = header_map_bytes(&self.head.headers).saturating_mul(2).saturating_add(target);
        one.saturating_mul(1 + at_once)
    }
}

impl StepRequests for StepTemplate {
    fn of(&self, step: &str) -> Option<Request> {
        let mut steps = self.selected.route.settings.steps.iter().flat_map(|it| &it.steps);
        let step = steps.find(|it| *it.name == *step)?;
        let mut head = self.head.clone();
        // A handler takes the place of the upstream of the route. A step has its own upstream.
        head.extensions.remove::<Handler>();
        let selected = self.selected.towards(&head, &step.upstream).ok()?;
        let key_header = step.receiver.forward_key.as_ref();
        let destination = Destination { selected: &selected, upstream: &step.upstream, key_header };
        let request = request(&mut head, destination, &self.body, &self.trusted);
        let request = with_provider(request, self.verified.clone());
        // Two steps may share an upstream that deduplicates by this header.
        let id = OperationId::of_step(self.event, &step.name).to_string();
        Some(with_key(request, key_header, &id))
    }
}
