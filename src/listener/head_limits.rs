//! Limits the heads of requests, and counts their memory.
//!
//! The same limits hold on HTTP/1.1 and HTTP/2: a head counts as many bytes and lines as it would
//! have on HTTP/1.1. The memory of a head is counted before a service sees the head. The allocated
//! bytes count.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use http::{HeaderMap, Request, Version, header};
use parking_lot::Mutex;

use super::refusal::EarlyRefusal;
use super::settings::{LINGER_BYTES_MAX, Limits, Resources};
use crate::budget::{Budget, Reserved};
use crate::telemetry::{DispositionWord, Limit, Metrics, RouteMetrics};

/// The smallest buffer for a head, and for the bytes that are read behind it.
const BUFFER_BYTES: usize = 16 * 1024;
/// What a `HeaderMap` allocates for a name with one value, and for each further value of the name.
const FIELD_BYTES: usize = 112;
const FURTHER_VALUE_BYTES: usize = 144;
/// What a field counts on HTTP/2 in addition to its name and value (RFC 9113, 6.5.2).
const HTTP2_FIELD_BYTES: usize = 32;
/// `:method`, `:scheme`, `:authority` and `:path`. The number is doubled to make room for their
/// names.
const PSEUDO_FIELDS: usize = 8;
/// The route label of requests that no route took.
const NO_ROUTE: &str = "none";

/// The limits of heads, and the counters of what they refuse.
#[derive(Debug)]
pub(super) struct HeadLimits {
    bytes_max: usize,
    lines_max: usize,
    memory: Budget,
    metrics: Arc<Metrics>,
    counters: RouteMetrics,
}

/// The memory of a request's head. It is an extension of the request. Code that keeps the head
/// longer than the request takes the reservation out of it.
#[derive(Debug, Clone)]
pub struct HeadMemory(Arc<Mutex<Option<Reserved>>>);

impl HeadMemory {
    /// The reservation, for the first caller. None for later ones.
    pub fn take(&self) -> Option<Reserved> {
        self.0.lock().take()
    }
}

impl HeadLimits {
    pub(super) fn new(limits: &Limits, resources: &Resources) -> Self {
        let Resources { memory, metrics, .. } = resources;
        Self {
            bytes_max: limits.header_bytes_max,
            lines_max: limits.header_lines_max,
            memory: memory.clone(),
            metrics: Arc::clone(metrics),
            counters: metrics.route(NO_ROUTE),
        }
    }

    /// How much of a head h2 may decode on HTTP/2, by its own way of counting.
    ///
    /// h2 refuses a larger head itself, without a body. So it gets a limit above ours: a head
    /// between the two limits reaches [`HeadLimits::admit`], and its sender gets an answer that
    /// says why. The margin is as large as what is read after a refusal on HTTP/1.
    pub(super) const fn list_bytes_max(&self) -> usize {
        let fields = self.lines_max.saturating_add(PSEUDO_FIELDS);
        let beyond = LINGER_BYTES_MAX.saturating_add(fields.saturating_mul(HTTP2_FIELD_BYTES));
        self.bytes_max.saturating_add(beyond)
    }

    /// How many bytes are in memory for a head of which `bytes` bytes have arrived: the buffer that
    /// it is read into, and what is parsed from it.
    pub(super) const fn memory_of_partial(bytes: usize) -> usize {
        BUFFER_BYTES.saturating_add(bytes.saturating_mul(2))
    }

    /// Reserves the memory for a head that is still arriving. `bytes` is all the memory that the
    /// head takes.
    ///
    /// A small head is let through even if no memory is left. Otherwise a full budget would close
    /// connections, and the sender would not get the 503 that tells it to send again.
    pub(super) fn reserve_partial(
        &self,
        memory: &mut Option<Reserved>,
        bytes: usize,
    ) -> std::io::Result<()> {
        if bytes == 0 {
            *memory = None;
            return Ok(());
        }
        let reserved = memory.get_or_insert_with(|| self.memory.reserve_none());
        let more = bytes.saturating_sub(reserved.bytes());
        if bytes <= Self::memory_of_partial(BUFFER_BYTES) {
            reserved.grow_past_limit(more);
            return Ok(());
        }
        reserved
            .grow(more)
            .map_err(|error| std::io::Error::new(std::io::ErrorKind::OutOfMemory, error))
    }

    /// Checks the head of a request, and attaches the reservation of its memory to it.
    pub(super) fn admit<B>(&self, request: &mut Request<B>) -> Result<(), EarlyRefusal> {
        let bytes = bytes(request);
        // On HTTP/1 hyper has checked both limits already.
        if request.version() == Version::HTTP_2 {
            if bytes > self.bytes_max {
                return Err(EarlyRefusal::HeadTooLarge(Limit::HeaderBytes));
            }
            if lines(request) > self.lines_max {
                return Err(EarlyRefusal::HeadTooLarge(Limit::HeaderLines));
            }
        }
        let fields = header_map_bytes(request.headers());
        let memory = self.memory.reserve(Self::memory_of_partial(bytes).saturating_add(fields));
        let memory = memory.map_err(|_| EarlyRefusal::Overloaded)?;
        let memory = HeadMemory(Arc::new(Mutex::new(Some(memory))));
        request.extensions_mut().insert(memory);
        Ok(())
    }

    /// The limit that a head on HTTP/1 exceeds after `bytes` bytes of it have arrived. hyper says
    /// only that one of the limits was exceeded.
    pub(super) const fn exceeded_by(&self, bytes: usize) -> Limit {
        if bytes >= self.bytes_max { Limit::HeaderBytes } else { Limit::HeaderLines }
    }

    /// Counts and logs that a request was refused before a service saw it.
    pub(super) fn record_refusal(&self, refusal: EarlyRefusal, peer: SocketAddr) {
        if let EarlyRefusal::HeadTooLarge(limit) = refusal {
            self.metrics.limit_reached(limit);
        }
        self.counters.request(DispositionWord::Refused, Duration::ZERO);
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

/// How many bytes a map of headers allocates in addition to its names and values. A copy of the map
/// allocates as much.
pub fn header_map_bytes(headers: &HeaderMap) -> usize {
    let further_values = headers.len() - headers.keys_len();
    headers.capacity() * FIELD_BYTES + further_values * FURTHER_VALUE_BYTES
}

/// The length of a head as it would be on HTTP/1.1: the request line, one line for each value, and
/// an empty line.
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

/// The number of header lines of a head as it would be on HTTP/1.1, where `:authority` is `Host`.
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
