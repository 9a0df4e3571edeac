//! One line of the log for each request.

use http::request::Parts;

use super::respond::Answer;
use super::route::Route;
use crate::clock::{Clock, Moment};
use crate::telemetry::{Disposition, RouteMetrics};

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
    pub(super) fn end(&mut self, answer: &Answer, route: Option<&Route>, counters: &RouteMetrics) {
        self.ended = true;
        let took = self.began.until(self.clock.moment());
        counters.request(answer.disposition, took);
        if answer.disposition == Disposition::Refused
            && let Some(code) = answer.code
        {
            counters.refusal(code);
        }
        // A path is an outsider's: what could break the line is escaped.
        tracing::info!(
            method = %self.method,
            path = %self.uri.path().escape_debug(),
            route.name = route.map(|route| &*route.settings.name),
            status = answer.response.status().as_u16(),
            disposition = answer.disposition.as_str(),
            code = answer.code,
            operation.id = answer.operation.map(tracing::field::display),
            attempt.number = answer.attempt,
            duration_ms = u64::try_from(took.as_millis()).unwrap_or(u64::MAX),
            "answered"
        );
    }
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
