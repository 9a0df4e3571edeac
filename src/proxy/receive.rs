//! The whole body, in memory, within limits. Nothing is claimed for a request that is not complete.

use std::net::IpAddr;
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
use crate::telemetry::{Limit, Metrics};

/// The rate of a body is looked at from here on: a connection begins slowly, and most bodies are
/// there long before.
const RATE_GRACE: Duration = Duration::from_secs(5);

/// A body that is complete.
#[derive(Debug)]
pub(super) struct Received {
    pub(super) body: Bytes,
    pub(super) memory: Reserved,
    /// When its head had come.
    pub(super) arrived: Instant,
}

/// How long a body may be, and how slow.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bounds {
    /// Its length: `request_bytes_max` of its route.
    pub(super) bytes_max: usize,
    /// For the whole of it: `server.limits.body_timeout`.
    pub(super) timeout: Duration,
    /// Bytes per second on average since it began: `server.limits.body_rate_min`.
    pub(super) rate_min: usize,
}

/// What a body is received with.
#[derive(Debug, Clone, Copy)]
pub(super) struct Means<'a> {
    pub(super) budget: &'a Budget,
    pub(super) metrics: &'a Metrics,
    /// The places of those whose body has not come yet.
    pub(super) pending: &'a Places,
    /// Whose share of them it takes.
    pub(super) peer: Option<IpAddr>,
}

/// When a body that has come so far is given up if nothing more comes.
#[derive(Debug, Clone, Copy)]
struct Deadline {
    began: Instant,
    bounds: Bounds,
}

impl Deadline {
    fn after(self, bytes: usize) -> (Instant, Limit) {
        let whole = self.began + self.bounds.timeout;
        let Some(allowed) = bytes.checked_div(self.bounds.rate_min) else {
            return (whole, Limit::BodyTimeout);
        };
        let allowed = Duration::from_secs(u64::try_from(allowed).unwrap_or(u64::MAX));
        match self.began.checked_add(allowed.max(RATE_GRACE)) {
            Some(slow) if slow < whole => (slow, Limit::BodyRate),
            Some(_) | None => (whole, Limit::BodyTimeout),
        }
    }
}

/// Reads the body of a request to its end. It takes a place among the pending ones only if it has
/// to be waited for, not if all of it has come with its head.
pub(super) async fn body<B: Body<Data = Bytes> + Unpin>(
    parts: &Parts,
    body: &mut B,
    bounds: Bounds,
    means: Means<'_>,
) -> Result<Received, Refusal> {
    let Means { budget, metrics, pending, peer } = means;
    let Bounds { bytes_max, .. } = bounds;
    // A length that is too long is refused before the first byte, and before a 100 (Continue).
    let declared = body.size_hint().exact().or_else(|| content_length(parts));
    if declared.is_some_and(|bytes| bytes > bytes_max as u64) {
        return Err(Refusal::BodyTooLarge { bytes_max });
    }
    let expected = declared.and_then(|bytes| usize::try_from(bytes).ok());
    let mut buffer = Buffer::new(budget, expected);
    let arrived = Instant::now();
    let deadline = Deadline { began: arrived, bounds };
    let take = || pending.take(peer).ok_or(Refusal::Overloaded);
    // A body that comes only after a 100 (Continue) is not there yet; nobody is told to send one
    // that there is no place for.
    let expects = parts.headers.contains_key(header::EXPECT) && !body.is_end_stream();
    let mut place = expects.then(take).transpose()?;
    loop {
        let at_hand = if place.is_none() { at_hand(body).await } else { None };
        let next = if let Some(next) = at_hand {
            next
        } else {
            if place.is_none() {
                place = Some(take()?);
            }
            let (at, limit) = deadline.after(buffer.len());
            let Ok(next) = timeout_at(at, chunk(body)).await else {
                metrics.limit_reached(limit);
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
    let (body, memory) = buffer.finish();
    Ok(Received { body, memory, arrived })
}

/// The next bytes of the body if they have come. On HTTP/1 hyper hands them on piece by piece, and
/// reads the next one only when the task that is this one has given way.
async fn at_hand<B: Body<Data = Bytes> + Unpin>(
    body: &mut B,
) -> Option<Result<Option<Bytes>, Refusal>> {
    if let Some(next) = chunk(body).now_or_never() {
        return Some(next);
    }
    tokio::task::yield_now().await;
    chunk(body).now_or_never()
}

/// The next bytes of the body. Trailers end here: they were decided on by nobody.
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

    fn given_up(bytes: usize, rate_min: usize) -> (Duration, Limit) {
        let bounds = Bounds { bytes_max: 1 << 20, timeout: Duration::from_secs(30), rate_min };
        let deadline = Deadline { began: Instant::now(), bounds };
        let (at, limit) = deadline.after(bytes);
        (at - deadline.began, limit)
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
