//! Execute: hands an admitted request to the executor, which claims, forwards, classifies and
//! records.

use std::sync::Arc;

use http::HeaderValue;
use http::request::Parts;

use super::examine::Admitted;
use super::identify::{Identified, Identity};
use super::outgoing::{self, Destination, StepTemplate};
use super::receive::Received;
use super::refusal::Refusal;
use super::route::Route;
use super::select::Selected;
use crate::idempotency::{Disposition, Executor, KeyedRequest};
use crate::operation::RequestMode;
use crate::upstream::{Request, TrustedProxies};

/// One admitted request, ready to be executed.
#[derive(Debug)]
pub(super) struct Execution<'a> {
    pub(super) executor: &'a Arc<Executor>,
    pub(super) trusted: &'a Arc<TrustedProxies>,
    pub(super) selected: &'a Selected<Arc<Route>>,
    pub(super) head: &'a mut Parts,
    pub(super) received: Received,
}

impl Execution<'_> {
    /// Forwards the request, and returns what happened to it. A request with a key is forwarded
    /// once.
    ///
    /// Dropping the future interrupts nothing that was begun: the executor goes on in a task of its
    /// own.
    pub(super) async fn run(self, admitted: Admitted) -> Result<Disposition, Refusal> {
        let provider = admitted.provider().cloned();
        match admitted.into_identity() {
            Identity::Keyed(identified) => self.once(identified, provider).await,
            Identity::Passed(_) => Ok(self.pass(provider).await),
        }
    }

    async fn once(
        mut self,
        identified: Identified,
        provider: Option<HeaderValue>,
    ) -> Result<Disposition, Refusal> {
        let route = &*self.selected.route;
        let Identified { subject, key, forward_key, .. } = identified;
        // If this process remembers that the operation succeeded, no request for the upstream is
        // made.
        if subject.mode == RequestMode::Enforce
            && let Some(known) = self.executor.recall(&subject, &route.handler)
        {
            return Ok(known);
        }
        let steps = match &route.settings.steps {
            Some(steps) => {
                let template = StepTemplate {
                    head: self.head.clone(),
                    selected: self.selected.clone(),
                    body: self.received.body.clone(),
                    trusted: Arc::clone(self.trusted),
                    event: subject.id,
                    verified: provider.clone(),
                };
                Some(template.checked(steps, &mut self.received.memory)?)
            }
            None => None,
        };
        let request = self.request(provider);
        let keyed = KeyedRequest {
            request: outgoing::with_key(request, route.key_header(), &forward_key),
            subject,
            key,
            steps,
            arrived: self.received.arrived,
            memory: self.received.memory,
        };
        Ok(self.executor.execute(keyed, &route.handler).await)
    }

    async fn pass(mut self, provider: Option<HeaderValue>) -> Disposition {
        let request = self.request(provider);
        let Received { memory, arrived, .. } = self.received;
        self.executor.pass(request, memory, arrived, &self.selected.route.handler).await
    }

    /// The request for the route's upstream.
    fn request(&mut self, provider: Option<HeaderValue>) -> Request {
        let route = &*self.selected.route;
        let destination = Destination {
            selected: self.selected,
            upstream: &route.settings.upstream,
            key_header: route.key_header(),
        };
        let request = outgoing::request(self.head, destination, &self.received.body, self.trusted);
        outgoing::with_provider(request, provider)
    }
}
