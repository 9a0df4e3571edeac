//! Streams the body of an answer from the upstream to the sender.

use std::time::Duration;

use bytes::Bytes;
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout};

use crate::budget::Budget;
use crate::upstream::{AnswerStream, BodyError, Chunk};

/// A body on its way to the sender. The body is read to its end even if the sender hangs up,
/// because the end may decide the outcome.
pub(super) struct Flow {
    /// The piece that was read before the body turned out to be too long.
    pub(super) begun: Option<Chunk>,
    pub(super) rest: AnswerStream,
    /// The way to the sender; none once the sender has hung up, or has kept the upstream waiting
    /// for too long.
    pub(super) pieces: Option<mpsc::Sender<Chunk>>,
    /// The memory for bodies.
    pub(super) budget: Budget,
    /// The total time for which the sender may still keep the upstream waiting.
    pub(super) patience: Duration,
}

impl Flow {
    /// Reads the body to its end, and hands it on as long as the sender takes it.
    pub(super) async fn run(mut self) -> Result<(), BodyError> {
        if let Some(begun) = self.begun.take() {
            self.hand_on(begun).await;
        }
        while let Some(bytes) = self.rest.chunk().await? {
            let piece = self.piece(bytes);
            self.hand_on(piece).await;
        }
        self.hand_on(Chunk::End).await;
        Ok(())
    }

    /// Like [`Flow::run`], but keeps the last piece. A sender that has the last piece has the whole
    /// answer and may send a copy, so the outcome must be recorded first.
    pub(super) async fn run_but_last(mut self) -> Result<LastPiece, BodyError> {
        let mut last = self.begun.take();
        while let Some(bytes) = self.rest.chunk().await? {
            let next = self.piece(bytes);
            if let Some(piece) = last.replace(next) {
                self.hand_on(piece).await;
            }
        }
        Ok(LastPiece { piece: last, flow: self })
    }

    fn piece(&self, bytes: Bytes) -> Chunk {
        let mut memory = self.budget.reserve_none();
        // The bytes have been read already, so they are counted even beyond the budget.
        memory.grow_past_limit(bytes.len());
        Chunk::Data(bytes, memory)
    }

    async fn hand_on(&mut self, piece: Chunk) {
        let Some(pieces) = &self.pieces else { return };
        let began = Instant::now();
        let taken = timeout(self.patience, pieces.send(piece)).await;
        self.patience = self.patience.saturating_sub(began.elapsed());
        if !matches!(taken, Ok(Ok(()))) {
            self.pieces = None;
        }
    }
}

/// The last piece of a body, and the way to the sender.
pub(super) struct LastPiece {
    piece: Option<Chunk>,
    flow: Flow,
}

impl LastPiece {
    /// Hands on the last piece and the end of the body.
    pub(super) async fn hand_on(mut self) {
        for piece in self.piece.take().into_iter().chain([Chunk::End]) {
            self.flow.hand_on(piece).await;
        }
    }
}
