//! The data plane: the path of a request, from its head to its answer.
//!
//! | step | file | does | may stop with |
//! | --- | --- | --- | --- |
//! | guard | `guard` | refuses heads that two HTTP servers could read differently | 400, 417 |
//! | select | `select`, `paths` | finds the route and the upstream's target | 400, 404, 405, 503 |
//! | receive | `receive` | reads the whole body within the limits | 400, 408, 413, 503 |
//! | verify | `examine`, `verify` | checks the signature over the raw bytes | 401, 503 |
//! | identify | `examine`, `identify`, `selector` | finds key, operation id and fingerprint | 400 |
//! | execute | `execute`, `outgoing` | hands the request to the executor (`idempotency`) | 503 |
//! | respond | `respond`, `problem` | names the status and writes the answer | 503 |
//!
//! A step that stops early returns a `Refusal`, which `respond` turns into a problem document. 503
//! says that the process ends (select), that a place or memory is missing, or that a certificate
//! cannot be fetched (verify). A disposition gets the status of an answer, or 409, 422, 502, 503 or
//! 504, or what `settings` names instead. `log` writes one line for each request.

mod answer;
mod examine;
mod execute;
mod guard;
mod host;
mod identify;
mod log;
mod outgoing;
mod path_pattern;
mod paths;
mod problem;
mod receive;
mod refusal;
mod respond;
mod route;
mod select;
mod selector;
mod service;
mod settings;
mod shared;
mod skew;
mod verify;

pub use examine::{Examination, Examined};
pub use host::{HostError, canonical_host};
pub use identify::{
    Compared, EventRule, FingerprintOver, FingerprintRule, Identified, IdentifyError, Identity,
    KeyRule, KeySource, Passing, Rules, WhenKeyMissing, identify, scope,
};
pub use path_pattern::PathPattern;
pub use refusal::ExplainedRefusal;
pub use select::{choose, misread};
pub use selector::{
    InvalidReason, MissingReason, Place, RequestView, Selector, SelectorError, Unread,
};
pub use service::{Answering, Proxy};
pub use settings::{Limits, Mode, RefusalBody, RouteSettings};
pub use shared::Dependencies;
pub use verify::{Sender, Verified};

use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use http::request::Parts;
use http_body::Body;

use crate::budget::BytesGuard;

use answer::Answer;
use execute::Execution;
use log::RequestLog;
use refusal::Refusal;
use route::Route;
use select::Selected;
use shared::Shared;

impl Shared {
    /// Runs the steps of the table for one request. `log` collects what the steps find out, even if
    /// a step refuses the request.
    async fn path<B: Body<Data = Bytes> + Unpin>(
        &self,
        head: &mut Parts,
        body: &mut B,
        log: &mut RequestLog,
    ) -> Result<Answer, Refusal> {
        let selected = self.select(head, log)?;
        let settings = &selected.route.settings;
        let received = self.bodies.read(head, body, settings.request_bytes_max).await?;
        log.is_received = true;
        // Only a complete request takes a place: a slow sender cannot keep others from being
        // served.
        let place = self.in_flight.take(received.peer).ok_or(Refusal::Overloaded)?;
        let now = self.clock.wall();
        let admitted = selected.route.examine(head, &received.body, now).await?;
        let key_source = admitted.identity().key_source();
        if let Identity::Keyed(identified) = admitted.identity() {
            log.subject = Some(Arc::clone(&identified.subject));
        }
        let execution = Execution {
            executor: &self.executor,
            trusted: &self.trusted,
            selected: &selected,
            head,
            received,
        };
        let disposition = execution.run(admitted).await?;
        let memory = respond::memory_of_replay(&disposition, &self.budget)?;
        let answer = respond::with(disposition, settings, key_source);
        Ok(answer.guarded_by(BytesGuard { memory, place: Some(place) }))
    }

    /// Finds the route of a request. Every refusal after the guard counts for the route that the
    /// request names, even while the proxy drains.
    fn select(&self, head: &Parts, log: &mut RequestLog) -> Result<Selected<Arc<Route>>, Refusal> {
        let named = guard::head(head).and_then(|host| self.routes.named(head, host));
        log.route = named.as_ref().ok().map(|named| Arc::clone(&named.route));
        if self.draining.load(Ordering::Acquire) {
            return Err(Refusal::Draining);
        }
        self.routes.select(named?, head)
    }
}
