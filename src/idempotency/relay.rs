//! Relays the body of an answer from the upstream to the sender.

use std::time::Duration;

use bytes::Bytes;
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout};

use crate::budget::Budget;
use crate::upstream::{AnswerStream, BodyError, Chunk};

/// A body on its way to the sender. The body is read to its end even if the sender hangs up,
/// because the end may decide the outcome.
pub(super) struct BodyRelay {
    /// The chunk that was read before the body turned out to be too long to keep.
    pub(super) first: Option<Chunk>,
    pub(super) rest: AnswerStream,
    /// The channel to the sender. None once the sender has hung up, or has kept the upstream
    /// waiting for longer than `patience`.
    pub(super) chunks: Option<mpsc::Sender<Chunk>>,
    /// The memory for bodies.
    pub(super) budget: Budget,
    /// The total time for which the sender may still keep the upstream waiting.
    pub(super) patience: Duration,
}

impl BodyRelay {
    /// Reads the body to its end, and hands it on as long as the sender takes it.
    pub(super) async fn run(mut self) -> Result<(), BodyError> {
        if let Some(first) = self.first.take() {
            self.hand_on(first).await;
        }
        while let Some(bytes) = self.rest.chunk().await? {
            let chunk = self.counted(bytes);
            self.hand_on(chunk).await;
        }
        self.hand_on(Chunk::End).await;
        Ok(())
    }

    /// Like [`BodyRelay::run`], but keeps the last chunk. A sender that has the last chunk has the
    /// whole answer and may send a copy, so the outcome must be recorded first.
    pub(super) async fn run_but_last(mut self) -> Result<LastChunk, BodyError> {
        let mut last = self.first.take();
        while let Some(bytes) = self.rest.chunk().await? {
            let next = self.counted(bytes);
            if let Some(chunk) = last.replace(next) {
                self.hand_on(chunk).await;
            }
        }
        Ok(LastChunk { chunk: last, relay: self })
    }

    /// A chunk of these bytes. They have been read already, so they are counted even beyond the
    /// budget.
    fn counted(&self, bytes: Bytes) -> Chunk {
        let mut memory = self.budget.reserve_none();
        memory.grow_past_limit(bytes.len());
        Chunk::Data(bytes, memory)
    }

    async fn hand_on(&mut self, chunk: Chunk) {
        let Some(chunks) = &self.chunks else { return };
        let began = Instant::now();
        let taken = timeout(self.patience, chunks.send(chunk)).await;
        self.patience = self.patience.saturating_sub(began.elapsed());
        if !matches!(taken, Ok(Ok(()))) {
            self.chunks = None;
        }
    }
}

/// The last chunk of a body, and the relay that hands it on.
pub(super) struct LastChunk {
    chunk: Option<Chunk>,
    relay: BodyRelay,
}

impl LastChunk {
    /// Hands on the last chunk and the end of the body.
    pub(super) async fn hand_on(mut self) {
        for chunk in self.chunk.take().into_iter().chain([Chunk::End]) {
            self.relay.hand_on(chunk).await;
        }
    }
}
