//! Keeps the time limits of one connection.
//!
//! The connection only notes what happens, with one atomic write where something changes. Nobody
//! is woken for it: a limit that begins to run now ends at least the shortest limit from now, so
//! it is enough to look again by then.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::task::AtomicWaker;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

use super::Limits;
use crate::telemetry::Limit;

/// No time, or a longer one than anybody waits, would make sums overflow or loops spin.
const SHORTEST: Duration = Duration::from_millis(1);
const LONGEST: Duration = Duration::from_hours(365 * 24);

/// The times of [`Limits`], each within bounds.
#[derive(Debug, Clone, Copy)]
pub(super) struct Timeouts {
    header: Duration,
    idle: Duration,
    write: Duration,
}

impl Timeouts {
    pub(super) fn of(limits: &Limits) -> Self {
        Self {
            header: limits.header_timeout.clamp(SHORTEST, LONGEST),
            idle: limits.idle_timeout.clamp(SHORTEST, LONGEST),
            write: limits.write_timeout.clamp(SHORTEST, LONGEST),
        }
    }
}

/// A point in time that may be unset: microseconds since the connection was accepted, plus one.
#[derive(Debug, Default)]
pub(super) struct Mark(AtomicU64);

impl Mark {
    fn get(&self) -> Option<Duration> {
        self.0.load(Ordering::Relaxed).checked_sub(1).map(Duration::from_micros)
    }

    fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed) != 0
    }

    fn set(&self, at: Duration) {
        let micros = u64::try_from(at.as_micros()).unwrap_or(u64::MAX);
        self.0.store(micros.saturating_add(1), Ordering::Relaxed);
    }

    fn clear(&self) {
        if self.is_set() {
            self.0.store(0, Ordering::Relaxed);
        }
    }
}

/// What one connection is doing, and since when.
#[derive(Debug)]
pub(super) struct Watch {
    timeouts: Timeouts,
    accepted: Instant,
    /// Requests from the end of their head to the end of their answer.
    serving: AtomicUsize,
    /// Waits for nothing to be served.
    unserved: AtomicWaker,
    /// Heads that have come to their end.
    began: AtomicUsize,
    /// Answers that have come to their end.
    answered: AtomicUsize,
    first: Notify,
    /// A later head has begun and not ended.
    head: Mark,
    /// Nothing was asked or answered.
    idle: Mark,
    /// The peer takes no byte of what the connection has to say.
    blocked: Mark,
    /// Nothing is left to be asked or answered; whoever closes sees to the end of it.
    closing: AtomicBool,
    closes_idle: AtomicBool,
    /// For each answer on HTTP/2: the peer gives no room for the next piece of it.
    stalls: Mutex<Vec<Arc<Mark>>>,
}

impl Watch {
    /// The clock of the first head starts now.
    pub(super) fn new(timeouts: Timeouts) -> Self {
        Self {
            timeouts,
            accepted: Instant::now(),
            serving: AtomicUsize::new(0),
            unserved: AtomicWaker::new(),
            began: AtomicUsize::new(0),
            answered: AtomicUsize::new(0),
            first: Notify::new(),
            head: Mark::default(),
            idle: Mark::default(),
            blocked: Mark::default(),
            closing: AtomicBool::new(false),
            closes_idle: AtomicBool::new(false),
            stalls: Mutex::default(),
        }
    }

    /// Ends when a limit has passed.
    pub(super) async fn expired(&self) -> Limit {
        let Timeouts { header, idle, write } = self.timeouts;
        let shortest = header.min(idle).min(write);
        loop {
            let now = Instant::now();
            let mut look_again = now + shortest;
            if let Some((end, limit)) = self.deadline() {
                if end <= now {
                    return limit;
                }
                look_again = look_again.min(end);
            }
            sleep_until(look_again).await;
        }
    }

    /// Ends when the first request was received.
    pub(super) async fn first_request(&self) {
        if self.requests() == 0 {
            self.first.notified().await;
        }
    }

    /// Whether nothing is asked, answered, or under way.
    fn is_idle(&self) -> bool {
        !self.is_serving() && !self.head.is_set() && !self.blocked.is_set()
    }

    /// The connection is about to be closed at our wish: if it is idle, nobody waits for the end of it.
    pub(super) fn close_if_idle(&self) {
        if self.is_idle() {
            self.closes_idle.store(true, Ordering::Relaxed);
        }
    }

    /// Whether nobody waits for the end of an answer on this connection.
    pub(super) fn closes_idle(&self) -> bool {
        self.closes_idle.load(Ordering::Relaxed)
    }

    /// All is said; from now on no limit of this watch runs.
    pub(super) fn closing(&self) {
        self.closing.store(true, Ordering::Relaxed);
    }

    /// A head came to its end.
    pub(super) fn request_began(&self) {
        self.serving.fetch_add(1, Ordering::Relaxed);
        if self.began.fetch_add(1, Ordering::Relaxed) == 0 {
            self.first.notify_one();
        }
    }

    /// How many heads have come to their end.
    pub(super) fn requests(&self) -> usize {
        self.began.load(Ordering::Relaxed)
    }

    /// Whether a request is being served.
    pub(super) fn is_serving(&self) -> bool {
        self.serving.load(Ordering::Acquire) > 0
    }

    /// How many answers have come to their end: nothing more of them is given to be written.
    pub(super) fn answers(&self) -> usize {
        self.answered.load(Ordering::Relaxed)
    }

    /// An answer came to its end, or nobody waits for it any more.
    pub(super) fn request_ended(&self) {
        self.idle.set(self.accepted.elapsed());
        self.answered.fetch_add(1, Ordering::Relaxed);
        // Whoever sees that nothing is served sees since when.
        if self.serving.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.unserved.wake();
        }
    }

    /// Ready when nothing is served.
    pub(super) fn poll_unserved(&self, context: &Context<'_>) -> Poll<()> {
        self.unserved.register(context.waker());
        if self.is_serving() { Poll::Pending } else { Poll::Ready(()) }
    }

    /// A byte arrived that belongs to a head. While a request is served it may as well belong to
    /// its body.
    pub(super) fn head_began(&self) {
        let waiting = self.requests() > 0 && !self.head.is_set();
        if waiting && !self.is_serving() {
            self.head.set(self.accepted.elapsed());
        }
    }

    /// No head is under way.
    pub(super) fn head_ended(&self) {
        self.head.clear();
    }

    /// The peer took bytes.
    pub(super) fn wrote(&self) {
        if self.blocked.is_set() {
            self.blocked.clear();
            self.idle.set(self.accepted.elapsed());
        }
    }

    /// The peer takes no bytes.
    pub(super) fn write_blocked(&self) {
        if !self.blocked.is_set() {
            self.blocked.set(self.accepted.elapsed());
        }
    }

    /// An answer whose pieces are passed to [`Watch::piece_given`] and [`Watch::piece_taken`].
    pub(super) fn add_answer(&self) -> Arc<Mark> {
        let stall = Arc::new(Mark::default());
        self.stalls().push(Arc::clone(&stall));
        stall
    }

    /// The answer came to its end.
    pub(super) fn remove_answer(&self, answer: &Arc<Mark>) {
        self.stalls().retain(|other| !Arc::ptr_eq(other, answer));
    }

    /// A piece of the answer waits for room.
    pub(super) fn piece_given(&self, answer: &Mark) {
        answer.set(self.accepted.elapsed());
    }

    /// There was room for the piece.
    pub(super) fn piece_taken(answer: &Mark) {
        answer.clear();
    }

    fn stalls(&self) -> MutexGuard<'_, Vec<Arc<Mark>>> {
        // A list of marks is whole at every moment.
        self.stalls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Which limit passes next if nothing happens; none while only a request is served.
    fn deadline(&self) -> Option<(Instant, Limit)> {
        if self.closing.load(Ordering::Relaxed) {
            return None;
        }
        let stalled = self.stalls().iter().filter_map(|stall| stall.get()).min();
        let unread = self.blocked.get().into_iter().chain(stalled).min();
        if let Some(since) = unread {
            return Some((self.accepted + since + self.timeouts.write, Limit::WriteTimeout));
        }
        if self.is_serving() {
            return None;
        }
        if self.requests() == 0 {
            return Some((self.accepted + self.timeouts.header, Limit::HeaderTimeout));
        }
        let idle = self.idle.get().unwrap_or_default();
        Some(match self.head.get() {
            // The time in which another request was served does not count.
            Some(head) => {
                (self.accepted + head.max(idle) + self.timeouts.header, Limit::HeaderTimeout)
            }
            None => (self.accepted + idle + self.timeouts.idle, Limit::IdleTimeout),
        })
    }
}
