//! One line of the log for each request.

use std::sync::Arc;

use http::request::Parts;

use super::answer::Answer;
use super::route::Route;
use crate::clock::{Clock, Moment};
use crate::idempotency::StepPolicy;
use crate::operation::{Reason, Subject};
use crate::telemetry::{DispositionWord, RouteMetrics};

/// Collects what the steps find out about one request, and writes its log line at the end. If it is
/// dropped before the end, the sender has hung up. The attempt goes on all the same.
#[derive(Debug)]
pub(super) struct RequestLog {
    method: http::Method,
    uri: http::Uri,
    began: Moment,
    clock: Clock,
    ended: bool,
    /// The route that the request names, even if that route refuses it.
    pub(super) route: Option<Arc<Route>>,
    /// Whether the body was read to its end.
    pub(super) is_received: bool,
    /// What the request is about, if it has a key.
    pub(super) subject: Option<Arc<Subject>>,
}

impl RequestLog {
    pub(super) fn begin(head: &Parts, clock: Clock) -> Self {
        Self {
            method: head.method.clone(),
            uri: head.uri.clone(),
            began: clock.moment(),
            clock,
            ended: false,
            route: None,
            is_received: false,
            subject: None,
        }
    }

    /// The key, for the log. A key names an event and is no secret: no signature, token or password
    /// is ever a part of a key.
    fn key(&self) -> Option<String> {
        self.subject.as_ref()?.key.logged()
    }

    /// Writes the line and counts the request. A request that names no route is counted in
    /// `no_route`.
    pub(super) fn end(mut self, answer: &Answer, no_route: &RouteMetrics) {
        self.ended = true;
        let took = self.began.until(self.clock.moment());
        let route = self.route.as_ref();
        let counters = route.map_or(no_route, |route| route.handler.metrics());
        counters.request(answer.disposition, took);
        let is_refused = answer.disposition == DispositionWord::Refused;
        if is_refused && let Some(code) = answer.code {
            counters.refusal(code);
        }
        // Anybody may have chosen the path, so it is escaped. An escaped path cannot break the line
        // or move a cursor.
        tracing::info!(
            method = %self.method,
            path = %self.uri.path().escape_debug(),
            route.name = self.route.as_ref().map(|route| &*route.settings.name),
            status = answer.response.status().as_u16(),
            disposition = answer.disposition.as_str(),
            code = answer.code,
            detail = answer.detail.as_ref().filter(|_| is_refused),
            reason = answer.reason.map(Reason::as_str),
            step = answer.step.as_deref(),
            upstream = answer.reason.and_then(|_| upstream_of(self.route.as_deref()?, answer)),
            operation.id = answer.operation.map(tracing::field::display),
            operation.key = self.key(),
            attempt.number = answer.attempt,
            duration_ms = u64::try_from(took.as_millis()).unwrap_or(u64::MAX),
            "answered"
        );
    }
}

/// The address of the upstream that gave no answer.
fn upstream_of<'r>(route: &'r Route, answer: &Answer) -> Option<&'r str> {
    let settings = &route.settings;
    let upstream = match &settings.steps {
        None => Some(&settings.upstream),
        Some(all) => {
            let failed = |step: &&StepPolicy| answer.step.as_ref() == Some(&step.name);
            all.steps.iter().find(failed).map(|step| &step.upstream)
        }
    };
    upstream.map(|upstream| upstream.target.authority.as_str())
}

impl Drop for RequestLog {
    fn drop(&mut self) {
        if !self.ended {
            let took = self.began.until(self.clock.moment());
            tracing::info!(
                method = %self.method,
                path = %self.uri.path().escape_debug(),
                duration_ms = u64::try_from(took.as_millis()).unwrap_or(u64::MAX),
                "the sender has gone before it was answered"
            );
        }
    }
}
