//! Receive: reads the whole body into memory, within limits. Nothing is claimed for a request that
//! is not complete.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::FutureExt as _;
use http::header;
use http::request::Parts;
use http_body::Body;
use http_body_util::BodyExt as _;
use tokio::time::{Instant, timeout_at};

use super::refusal::{Malformed, Refusal};
use crate::budget::{Budget, Buffer, Places, Reserved};
use crate::listener::{HeadMemory, Peer};
use crate::telemetry::{Limit, Metrics};
use crate::upstream::TrustedProxies;

/// The age at which the rate of a body is first checked. A connection begins slowly (RFC 5681,
/// 3.1), and most bodies are complete long before that age.
const RATE_GRACE: Duration = Duration::from_secs(5);

/// A request whose body is complete.
#[derive(Debug)]
pub(super) struct Received {
    pub(super) body: Bytes,
    /// The memory of head and body.
    pub(super) memory: Reserved,
    /// When the proxy got the head of the request.
    pub(super) arrived: Instant,
    /// The peer that the places of the request count for. None if the share of a peer is not
    /// limited.
    pub(super) peer: Option<IpAddr>,
}

/// Reads the bodies of all routes.
#[derive(Debug)]
pub(super) struct BodyReader {
    /// How long a whole body may take: `server.limits.body_timeout`.
    pub(super) timeout: Duration,
    /// The least rate of a body in bytes per second, on average since it began:
    /// `server.limits.body_rate_min`.
    pub(super) rate_min: usize,
    pub(super) budget: Budget,
    pub(super) metrics: Arc<Metrics>,
    /// The places of requests whose body has not arrived yet. A slow sender takes one of these
    /// places, and no place of a request in flight.
    pub(super) pending: Places,
    /// The proxies whose `X-Forwarded-For` names the peer. None if the share of a peer is not
    /// limited.
    pub(super) peers: Option<Arc<TrustedProxies>>,
}

/// The time at which the reading of a body is given up, and the limit that is then reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Deadline {
    at: Instant,
    limit: Limit,
}

impl BodyReader {
    /// Reads the body of a request to its end. The request takes a place among the pending ones
    /// only if it has to wait for its body.
    ///
    /// Dropping the future gives back all places and all memory.
    pub(super) async fn read<B: Body<Data = Bytes> + Unpin>(
        &self,
        head: &Parts,
        body: &mut B,
        bytes_max: usize,
    ) -> Result<Received, Refusal> {
        // A body whose declared length is too long is refused before its first byte is read, and
        // before a 100 (Continue) is sent.
        let declared = body.size_hint().exact().or_else(|| content_length(head));
        if declared.is_some_and(|bytes| bytes > bytes_max as u64) {
            return Err(Refusal::BodyTooLarge { bytes_max });
        }
        let expected = declared.and_then(|bytes| usize::try_from(bytes).ok());
        let mut buffer = Buffer::new(&self.budget, expected);
        let arrived = Instant::now();
        let peer = self.limited_peer(head);
        let take_place = || self.pending.take(peer).ok_or(Refusal::Overloaded);
        // A sender that expects a 100 (Continue) sends its body only after it got one. The place is
        // taken first, so that no sender is told to send a body for which there is no place.
        let expects = head.headers.contains_key(header::EXPECT) && !body.is_end_stream();
        let mut place = expects.then(take_place).transpose()?;
        loop {
            let at_hand = if place.is_none() { at_hand(body).await } else { None };
            let next = if let Some(next) = at_hand {
                next
            } else {
                if place.is_none() {
                    place = Some(take_place()?);
                }
                let deadline = self.deadline(arrived, buffer.len());
                let Ok(next) = timeout_at(deadline.at, chunk(body)).await else {
                    self.metrics.limit_reached(deadline.limit);
                    return Err(Refusal::BodyTimeout);
                };
                next
            };
            let Some(bytes) = next? else { break };
            if buffer.len() + bytes.len() > bytes_max {
                return Err(Refusal::BodyTooLarge { bytes_max });
            }
            buffer.append(&bytes).map_err(|_| Refusal::Overloaded)?;
        }
        // A body of another length than its head says was cut off.
        if expected.is_some_and(|expected| expected != buffer.len()) {
            return Err(Refusal::Malformed(Malformed::Body));
        }
        let (body, mut memory) = buffer.finish();
        // The head is in memory for as long as the body: both count towards the budget.
        if let Some(head) = head.extensions.get::<HeadMemory>().and_then(HeadMemory::take) {
            memory.absorb(head);
        }
        Ok(Received { body, memory, arrived, peer })
    }

    /// The peer that the places of a request count for. None if the share of a peer is not limited.
    fn limited_peer(&self, head: &Parts) -> Option<IpAddr> {
        let Peer(peer) = head.extensions.get::<Peer>()?;
        let trusted = self.peers.as_ref()?;
        Some(trusted.client(peer.ip(), &head.headers))
    }

    /// When the reading of a body is given up. The body began at `began`, and `bytes` bytes of it
    /// have arrived.
    fn deadline(&self, began: Instant, bytes: usize) -> Deadline {
        let whole = Deadline { at: began + self.timeout, limit: Limit::BodyTimeout };
        // A rate of 0 sets no limit.
        let Some(allowed) = bytes.checked_div(self.rate_min) else { return whole };
        let allowed = Duration::from_secs(u64::try_from(allowed).unwrap_or(u64::MAX));
        match began.checked_add(allowed.max(RATE_GRACE)) {
            Some(slow) if slow < whole.at => Deadline { at: slow, limit: Limit::BodyRate },
            Some(_) | None => whole,
        }
    }
}

/// The next bytes of the body, if they have arrived already. On HTTP/1 hyper's connection and this
/// future run in one task, so hyper reads the next piece only after this future has yielded once.
async fn at_hand<B: Body<Data = Bytes> + Unpin>(
    body: &mut B,
) -> Option<Result<Option<Bytes>, Refusal>> {
    if let Some(next) = chunk(body).now_or_never() {
        return Some(next);
    }
    tokio::task::yield_now().await;
    chunk(body).now_or_never()
}

/// The next bytes of the body. Trailers are dropped, because no step checks them.
async fn chunk<B: Body<Data = Bytes> + Unpin>(body: &mut B) -> Result<Option<Bytes>, Refusal> {
    while !body.is_end_stream()
        && let Some(frame) = body.frame().await
    {
        let frame = frame.map_err(|_| Refusal::Malformed(Malformed::Body))?;
        if let Ok(bytes) = frame.into_data()
            && !bytes.is_empty()
        {
            return Ok(Some(bytes));
        }
    }
    Ok(None)
}

fn content_length(parts: &Parts) -> Option<u64> {
    parts.headers.get(header::CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::budget::{PlaceSettings, Share};

    /// How long after its beginning a body is given up, and the limit that is reached.
    fn given_up(bytes: usize, rate_min: usize) -> (Duration, Limit) {
        let metrics = Arc::new(Metrics::new());
        let settings =
            PlaceSettings { limit: Limit::BodiesPending, max: 1, per_peer_max: Share::WHOLE };
        let reader = BodyReader {
            timeout: Duration::from_secs(30),
            rate_min,
            budget: Budget::new(1 << 20, Arc::clone(&metrics)),
            pending: Places::new(settings, Arc::clone(&metrics)),
            metrics,
            peers: None,
        };
        let began = Instant::now();
        let deadline = reader.deadline(began, bytes);
        (deadline.at - began, deadline.limit)
    }

    #[test]
    fn a_body_is_given_up_when_its_average_falls_below_the_rate() {
        let seconds = Duration::from_secs;
        assert_eq!(given_up(0, 1024), (seconds(5), Limit::BodyRate));
        assert_eq!(given_up(5 * 1024, 1024), (seconds(5), Limit::BodyRate));
        assert_eq!(given_up(20 * 1024, 1024), (seconds(20), Limit::BodyRate));
        assert_eq!(given_up(40 * 1024, 1024), (seconds(30), Limit::BodyTimeout));
        assert_eq!(given_up(0, 0), (seconds(30), Limit::BodyTimeout));
    }
}
