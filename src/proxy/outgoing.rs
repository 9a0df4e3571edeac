//! The request as the upstream gets it.

use std::sync::Arc;

use bytes::Bytes;
use http::request::Parts;
use http::{HeaderName, HeaderValue, header};

use super::receive::Received;
use super::refusal::Refusal;
use super::route::Route;
use super::select::Selected;
use crate::idempotency::StepRequests;
use crate::listener::{Peer, fields_bytes};
use crate::operation::OperationId;
use crate::upstream::{self, Forwarding, Request, TrustedProxies};

const VERIFIED: HeaderName = HeaderName::from_static("onceward-verified");

/// Who gets a request, and what it is asked for.
#[derive(Clone, Copy)]
pub(super) struct Receiver<'a> {
    pub(super) selected: &'a Selected<Arc<Route>>,
    pub(super) upstream: &'a upstream::Settings,
}

/// The request, complete but for what names its operation. Takes the headers out of `head`: nothing
/// looks at them as they were received any more.
pub(super) fn request(
    head: &mut Parts,
    receiver: Receiver<'_>,
    body: &Bytes,
    trusted: &TrustedProxies,
) -> Request {
    let Receiver { selected, upstream } = receiver;
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
    let message = (&head.method, body.len());
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
        body: body.clone(),
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

/// What the requests of a route's steps are made of: one head for all of them. Two steps are two
/// things to be done, perhaps by one receiver: each has the id of its own as key.
#[derive(Debug)]
pub(super) struct ToSteps {
    head: Parts,
    selected: Selected<Arc<Route>>,
    body: Bytes,
    trusted: Arc<TrustedProxies>,
    event: OperationId,
    verified: Option<HeaderValue>,
}

impl ToSteps {
    /// None on a route without steps. Refused is here what no step could be asked for, and what
    /// there is no memory for: once the event is claimed it is too late to say so.
    pub(super) fn new(
        head: &Parts,
        selected: &Selected<Arc<Route>>,
        received: &mut Received,
        trusted: &Arc<TrustedProxies>,
        event: OperationId,
    ) -> Result<Option<Self>, Refusal> {
        let Some(steps) = &selected.route.settings.steps else { return Ok(None) };
        for step in &steps.steps {
            selected.towards(head, &step.upstream)?;
        }
        let steps = Self {
            head: head.clone(),
            selected: selected.clone(),
            body: received.body.clone(),
            trusted: Arc::clone(trusted),
            event,
            verified: None,
        };
        received.memory.grow(steps.bytes()).map_err(|_| Refusal::Overloaded)?;
        Ok(Some(steps))
    }

    /// The same, saying whose signature was checked.
    pub(super) fn vouched_for(self, verified: Option<HeaderValue>) -> Box<dyn StepRequests> {
        Box::new(Self { verified, ..self })
    }

    /// The memory of the heads that there will be at a time beside the one that was received: the
    /// one that it keeps, and those of the steps that run. A head grows by what we add to it.
    fn bytes(&self) -> usize {
        let steps = self.selected.route.settings.steps.as_ref();
        let at_once = steps.filter(|steps| steps.at_once).map_or(1, |steps| steps.steps.len());
        let target = self.selected.target.as_str().len();
        let one = fields_bytes(&self.head.headers).saturating_mul(2).saturating_add(target);
        one.saturating_mul(1 + at_once)
    }
}

impl StepRequests for ToSteps {
    fn of(&self, step: usize) -> Option<Request> {
        let step = self.selected.route.settings.steps.as_ref()?.steps.get(step)?;
        let mut head = self.head.clone();
        let selected = self.selected.towards(&head, &step.upstream).ok()?;
        let receiver = Receiver { selected: &selected, upstream: &step.upstream };
        let request = request(&mut head, receiver, &self.body, &self.trusted);
        let request = vouched_for(request, self.verified.clone());
        let id = OperationId::of_step(self.event, &step.name).to_string();
        Some(carrying_key(request, step.forward_key.as_ref(), &id))
    }
}
