//! The whole body, in memory, within limits. Nothing is claimed for a request that is not complete.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::header;
use http::request::Parts;
use http_body::Body;
use http_body_util::BodyExt as _;
use tokio::time::timeout;

use super::respond::{Malformed, Refusal};
use crate::budget::{Budget, Reserved};

/// A body that is complete.
#[derive(Debug)]
pub(super) struct Received {
    pub(super) body: Bytes,
    pub(super) memory: Reserved,
}

/// Reads the body of a request to its end.
pub(super) async fn body<B: Body<Data = Bytes> + Unpin>(
    parts: &Parts,
    body: &mut B,
    bytes_max: usize,
    within: Duration,
    budget: &Budget,
) -> Result<Received, Refusal> {
    // A length that is too long is refused before the first byte, and before a 100 (Continue).
    let declared = body.size_hint().exact().or_else(|| content_length(parts));
    if declared.is_some_and(|bytes| bytes > bytes_max as u64) {
        return Err(Refusal::BodyTooLarge { bytes_max });
    }
    timeout(within, read(body, bytes_max, budget)).await.unwrap_or(Err(Refusal::BodyTimeout))
}

async fn read<B: Body<Data = Bytes> + Unpin>(
    body: &mut B,
    bytes_max: usize,
    budget: &Budget,
) -> Result<Received, Refusal> {
    let mut memory = budget.reserve_none();
    let mut take = |taken: usize, chunk: &Bytes| {
        if taken + chunk.len() > bytes_max {
            return Err(Refusal::BodyTooLarge { bytes_max });
        }
        memory.grow(chunk.len()).map_err(|_| Refusal::Overloaded)
    };
    let Some(first) = chunk(body).await? else {
        return Ok(Received { body: Bytes::new(), memory });
    };
    take(0, &first)?;
    // Most bodies are one chunk, which needs no copy.
    let Some(second) = chunk(body).await? else { return Ok(Received { body: first, memory }) };
    let mut all = BytesMut::from(first);
    let mut next = Some(second);
    while let Some(bytes) = next {
        take(all.len(), &bytes)?;
        all.extend_from_slice(&bytes);
        next = chunk(body).await?;
    }
    Ok(Received { body: all.freeze(), memory })
}

/// The next bytes of the body. Trailers end here: they were decided on by nobody.
async fn chunk<B: Body<Data = Bytes> + Unpin>(body: &mut B) -> Result<Option<Bytes>, Refusal> {
    while let Some(frame) = body.frame().await {
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
