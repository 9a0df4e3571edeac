//! One line of the log for each request.

use std::sync::Arc;

use http::request::Parts;

use super::identify::KeySource;
use super::respond::Answer;
use super::route::Route;
use crate::clock::{Clock, Moment};
use crate::idempotency::StepPolicy;
use crate::operation::{OperationRequest, Reason};
use crate::telemetry::{Disposition, RouteMetrics};

/// What became known of a request on its way.
#[derive(Debug, Default)]
pub(super) struct Told {
    /// The route that it names.
    pub(super) route: Option<Arc<Route>>,
    /// Its body was read to its end.
    pub(super) is_received: bool,
    /// What it asks to have done, if it has a key.
    pub(super) asked: Option<Arc<OperationRequest>>,
    /// Where its key was found, if it has one.
    pub(super) from: Option<KeySource>,
}

impl Told {
    /// A key names an event; what a sender proves itself with is never part of one.
    fn key(&self) -> Option<String> {
        self.asked.as_ref()?.key.logged()
    }
}

/// The line of one request. If it is dropped before its end, the sender has gone; the work goes on.
#[derive(Debug)]
pub(super) struct RequestLine {
    method: http::Method,
    uri: http::Uri,
    began: Moment,
    clock: Clock,
    ended: bool,
}

impl RequestLine {
    pub(super) fn begin(parts: &Parts, clock: Clock) -> Self {
        let (method, uri) = (parts.method.clone(), parts.uri.clone());
        Self { method, uri, began: clock.moment(), clock, ended: false }
    }

    /// Writes the line and counts the request.
    pub(super) fn end(&mut self, answer: &Answer, told: &Told, counters: &RouteMetrics) {
        self.ended = true;
        let took = self.began.until(self.clock.moment());
        counters.request(answer.disposition, took);
        let is_refused = answer.disposition == Disposition::Refused;
        if is_refused && let Some(code) = answer.code {
            counters.refusal(code);
        }
        // A path is an outsider's: what could break the line is escaped.
        tracing::info!(
            method = %self.method,
            path = %self.uri.path().escape_debug(),
            route.name = told.route.as_ref().map(|route| &*route.settings.name),
            status = answer.response.status().as_u16(),
            disposition = answer.disposition.as_str(),
            code = answer.code,
            detail = answer.detail.as_ref().filter(|_| is_refused),
            reason = answer.reason.map(Reason::as_str),
            step = answer.step.as_deref(),
            upstream = answer.reason.and_then(|_| upstream_of(told.route.as_deref()?, answer)),
            operation.id = answer.operation.map(tracing::field::display),
            operation.key = told.key(),
            attempt.number = answer.attempt,
            duration_ms = u64::try_from(took.as_millis()).unwrap_or(u64::MAX),
            "answered"
        );
    }
}

/// Who gave no answer.
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

impl Drop for RequestLine {
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
