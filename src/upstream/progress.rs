//! What is known about a request that was sent: how the exchange ended, and whether a byte was
//! written.

use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;

use super::answer::UpstreamAnswer;
use super::observed::Observations;
use super::request::Request;
use crate::operation::Reason;

/// What became of a request that was handed to a connection, or to a handler.
#[derive(Debug)]
pub enum SendResult {
    /// The head of an answer arrived.
    Answered(UpstreamAnswer),
    /// The connection was a reused one and had been closed by the server. No byte was written, so
    /// the request can be sent on another connection.
    HandedBack(Request),
    /// Nothing was taken: no byte was written on a new connection, or the server refused to go on
    /// without a client certificate.
    NeverSent(Reason),
    /// At least one byte was written, and no answer arrived.
    Unanswered(Reason),
}

/// Whether a byte of a request was written. A `Progress` outlives the connection: a caller that
/// drops the future of an exchange reads it afterwards.
#[derive(Debug, Default)]
pub struct Progress {
    baseline: Mutex<Option<Baseline>>,
    /// The request was handed to a handler of this process.
    handed_over: AtomicBool,
}

/// The count of bytes at the moment at which a connection got the request.
#[derive(Debug)]
struct Baseline {
    observations: Observations,
    bytes_written: u64,
}

impl Progress {
    /// Whether a byte was written since the request was handed to a connection. The answer is final
    /// once the connection is closed.
    pub fn byte_written(&self) -> bool {
        // A handler may begin its work as soon as it has the request.
        if self.handed_over.load(Ordering::Acquire) {
            return true;
        }
        self.baseline.lock().as_ref().is_some_and(|Baseline { observations, bytes_written }| {
            observations.bytes_written() > *bytes_written
        })
    }

    /// Notes that a handler of this process has the request.
    pub(super) fn hand_over(&self) {
        self.handed_over.store(true, Ordering::Release);
    }

    /// Counts from now on the bytes that a connection writes.
    pub(super) fn watch(&self, observations: Observations) {
        let bytes_written = observations.bytes_written();
        *self.baseline.lock() = Some(Baseline { observations, bytes_written });
    }
}
