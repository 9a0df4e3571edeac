//! A route at work.

use std::sync::Arc;

use http::HeaderName;
use http::request::Parts;

use super::examine::{Admitted, Examination};
use super::problem;
use super::refusal::{ExplainedRefusal, Refusal};
use super::select::HasSettings;
use super::settings::{Mode, RouteSettings};
use super::verify::Sender;
use crate::idempotency::RouteHandler;
use crate::operation::Timestamp;
use crate::provider::signature::{Certificates, SecretError};
use crate::telemetry::{self, ExpectedCounters, Metrics};
use crate::upstream::{DialSettings, Upstream};

/// A route at work: its settings, the check of its sender, and the handler of its operations.
#[derive(Debug)]
pub(super) struct Route {
    pub(super) settings: RouteSettings,
    pub(super) handler: Arc<RouteHandler>,
    sender: Option<Sender>,
}

impl Route {
    /// A route that has no connection to its upstreams yet.
    ///
    /// # Errors
    ///
    /// A secret has a form that the provider does not issue.
    pub(super) fn new(
        settings: RouteSettings,
        certificates: &Certificates,
        dialing: &DialSettings,
        metrics: &Metrics,
    ) -> Result<Self, SecretError> {
        let upstream = Upstream::new(&settings.upstream, dialing);
        let counters = metrics.route(&settings.name).start_at_zero(may_count(&settings));
        let steps = settings.steps.as_ref();
        let handler =
            RouteHandler::new(settings.policy.clone(), upstream, steps, counters, dialing);
        let sender = Sender::of(&settings, certificates)?;
        let sender = sender.map(|sender| sender.watched(&settings.name, metrics));
        Ok(Self { settings, handler: Arc::new(handler), sender })
    }

    /// The header that carries the key to the upstream, if the route sets one.
    pub(super) const fn key_header(&self) -> Option<&HeaderName> {
        self.settings.policy.receiver.forward_key.as_ref()
    }

    /// Verifies and identifies a request that was received whole.
    pub(super) async fn examine(
        &self,
        head: &Parts,
        body: &[u8],
        now: Timestamp,
    ) -> Result<Admitted, Refusal> {
        let route = &self.settings;
        let sender = self.sender.as_ref();
        let admitted = Examination { route, sender, head, body }.run(now).await?;
        if let Some(refusal) = admitted.observed() {
            self.report(refusal);
        }
        Ok(admitted)
    }

    /// Counts and logs a refusal that the route does not make, because it only observes.
    fn report(&self, refusal: &Refusal) {
        let ExplainedRefusal { code, detail } = refusal.explained();
        self.handler.metrics().observed(telemetry::DispositionWord::Refused);
        tracing::info!(
            route.name = %self.settings.name,
            observed = code,
            detail,
            "forwarded all the same: the route only observes"
        );
    }
}

impl HasSettings for Arc<Route> {
    fn settings(&self) -> &RouteSettings {
        &self.settings
    }
}

/// The counters that show zero before the first event.
fn may_count(settings: &RouteSettings) -> ExpectedCounters {
    let mut steps = settings.steps.iter().flat_map(|steps| &steps.steps);
    ExpectedCounters {
        refusals: problem::CODES_OF_ROUTES,
        observed: settings.mode == Mode::Observe,
        lookups: settings.policy.receiver.lookup.is_some()
            || steps.any(|step| step.receiver.lookup.is_some()),
    }
}
