//! What heads may take, and what becomes of those that take more.
//!
//! The same limits hold on HTTP/1.1 and HTTP/2: a head counts as many bytes and lines as it would
//! have on HTTP/1.1. Its memory is counted before anybody looks at it, by what is allocated.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use http::{HeaderMap, Request, Version, header};

use super::refusal::Refusal;
use super::wire::LINGER_BYTES_MAX;
use super::{Limits, Resources};
use crate::budget::{Budget, Reserved};
use crate::telemetry::{Disposition, Limit, Metrics, RouteMetrics};

/// What is read into at least for a head, and for what comes behind it.
const BUFFER_BYTES: usize = 16 * 1024;
/// What a `HeaderMap` allocates for a name with a value, and for each further value of that name.
const FIELD_BYTES: usize = 112;
const FURTHER_VALUE_BYTES: usize = 144;
/// What a field counts on HTTP/2 beside its name and value (RFC 9113, 6.5.2).
const HTTP2_FIELD_BYTES: usize = 32;
/// `:method`, `:scheme`, `:authority` and `:path`, with some room for their names.
const PSEUDO_FIELDS: usize = 8;
/// The metrics' name for requests that no route took.
const NO_ROUTE: &str = "none";

/// The limits of heads, and who is told when they are passed.
#[derive(Debug)]
pub(super) struct Heads {
    bytes_max: usize,
    lines_max: usize,
    memory: Budget,
    metrics: Arc<Metrics>,
    counters: RouteMetrics,
}

/// The memory of a request's head: found in its extensions. Whoever keeps the head takes it.
#[derive(Debug, Clone)]
pub struct HeadMemory(Arc<Mutex<Option<Reserved>>>);

impl HeadMemory {
    /// It, for the first one who asks.
    pub fn take(&self) -> Option<Reserved> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl Heads {
    pub(super) fn new(limits: &Limits, resources: &Resources) -> Self {
        let Resources { memory, metrics } = resources;
        Self {
            bytes_max: limits.header_bytes_max,
            lines_max: limits.header_lines_max,
            memory: memory.clone(),
            metrics: Arc::clone(metrics),
            counters: metrics.route(NO_ROUTE),
        }
    }

    /// What is taken of a head on HTTP/2, and what h2 is to decode of it. A larger one h2 refuses by
    /// itself, without a body. So as much is let through as is read behind a refusal on HTTP/1, to get
    /// an answer that says why.
    pub(super) const fn list_bytes_max(&self) -> usize {
        let fields = self.lines_max.saturating_add(PSEUDO_FIELDS);
        let beyond = LINGER_BYTES_MAX.saturating_add(fields.saturating_mul(HTTP2_FIELD_BYTES));
        self.bytes_max.saturating_add(beyond)
    }

    /// What is in memory of a head of which so many bytes have come.
    pub(super) const fn of_partial(bytes: usize) -> usize {
        BUFFER_BYTES.saturating_add(bytes.saturating_mul(2))
    }

    /// Takes the memory for more of a head that is still coming. A small one is let go on even if
    /// there is none left, so that its sender can be told.
    pub(super) fn hold(&self, memory: &mut Option<Reserved>, bytes: usize) -> std::io::Result<()> {
        if bytes == 0 {
            *memory = None;
            return Ok(());
        }
        let held = memory.get_or_insert_with(|| self.memory.reserve_none());
        let more = bytes.saturating_sub(held.bytes());
        if bytes <= Self::of_partial(BUFFER_BYTES) {
            held.take_over(more);
            return Ok(());
        }
        held.grow(more).map_err(|error| std::io::Error::new(std::io::ErrorKind::OutOfMemory, error))
    }

    /// Counts the head of a request, and lets it carry its memory. On HTTP/1 hyper has looked at
    /// its length already.
    pub(super) fn admit<B>(&self, request: &mut Request<B>) -> Result<(), Refusal> {
        let bytes = bytes(request);
        if request.version() == Version::HTTP_2 {
            if bytes > self.bytes_max {
                return Err(Refusal::HeadTooLarge(Limit::HeaderBytes));
            }
            if lines(request) > self.lines_max {
                return Err(Refusal::HeadTooLarge(Limit::HeaderLines));
            }
        }
        let fields = fields_bytes(request.headers());
        let memory = self.memory.reserve(Self::of_partial(bytes).saturating_add(fields));
        let memory = memory.map_err(|_| Refusal::Overloaded)?;
        let memory = HeadMemory(Arc::new(Mutex::new(Some(memory))));
        request.extensions_mut().insert(memory);
        Ok(())
    }

    /// The limit that a head on HTTP/1 has passed of which so many bytes have come.
    pub(super) const fn passed(&self, bytes: usize) -> Limit {
        if bytes >= self.bytes_max { Limit::HeaderBytes } else { Limit::HeaderLines }
    }

    /// Notes that a request was refused before anybody saw it.
    pub(super) fn refused(&self, refusal: Refusal, peer: SocketAddr) {
        if let Refusal::HeadTooLarge(limit) = refusal {
            self.metrics.limit_reached(limit);
        }
        self.counters.request(Disposition::Refused, Duration::ZERO);
        self.counters.refusal(refusal.code());
        tracing::info!(
            %peer,
            status = refusal.status().as_u16(),
            code = refusal.code(),
            detail = refusal.detail(),
            "refused before it was read"
        );
    }
}

/// What a map of headers allocates beside its names and values, and what a copy of it would.
pub fn fields_bytes(headers: &HeaderMap) -> usize {
    let further_values = headers.len() - headers.keys_len();
    headers.capacity() * FIELD_BYTES + further_values * FURTHER_VALUE_BYTES
}

/// As many as on HTTP/1.1: the request line, a line for each value, and an empty one.
fn bytes<B>(request: &Request<B>) -> usize {
    let method = request.method().as_str().len();
    let target = request.uri().path_and_query().map_or(1, |target| target.as_str().len());
    let host = request.uri().authority().map_or(0, |host| "host: \r\n".len() + host.as_str().len());
    let line = |(name, value): (&http::HeaderName, &http::HeaderValue)| {
        name.as_str().len() + value.len() + ": \r\n".len()
    };
    let lines: usize = request.headers().iter().map(line).sum();
    method + target + "  HTTP/1.1\r\n\r\n".len() + host + lines
}

fn lines<B>(request: &Request<B>) -> usize {
    let headers = request.headers();
    let host = request.uri().authority().is_some() && !headers.contains_key(header::HOST);
    headers.len() + usize::from(host)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_counts_the_same_on_both_versions() {
        let http1 = "POST /hook?a=b HTTP/1.1\r\nhost: h.example\r\nx-a: 1\r\nx-a: 2\r\n\r\n";
        let request = |uri: &str| Request::post(uri).header("x-a", "1").header("x-a", "2");
        let request1 = request("/hook?a=b").header("host", "h.example").body(()).unwrap();
        let request2 = request("http://h.example/hook?a=b").body(()).unwrap();
        assert_eq!([bytes(&request1), bytes(&request2)], [http1.len(); 2]);
        assert_eq!([lines(&request1), lines(&request2)], [3; 2]);
    }
}
