//! The time limits of one connection.
//!
//! The connection only notes what happens, with one atomic write at each change, and wakes nobody.
//! No wake-up is needed: a limit that begins to run now cannot pass before the shortest limit has
//! passed. It is enough to look again at that time.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::task::AtomicWaker;
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

use super::settings::Limits;
use crate::telemetry::Limit;

/// The shortest limit. A limit of zero would make the loop spin.
const SHORTEST: Duration = Duration::from_millis(1);
/// The longest limit. A longer one could overflow an `Instant`.
const LONGEST: Duration = Duration::from_hours(365 * 24);

/// The time limits of [`Limits`], each within bounds.
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

/// The time at which something began. It can be unset. It is stored as microseconds since the
/// connection was accepted, plus one, so that zero means unset.
#[derive(Debug, Default)]
pub(super) struct StartTime(AtomicU64);

impl StartTime {
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
pub(super) struct ConnectionTimer {
    timeouts: Timeouts,
    accepted: Instant,
    /// Requests between the end of their head and the end of their answer.
    serving: AtomicUsize,
    /// Woken when no request is served any more.
    none_served: AtomicWaker,
    /// Heads that have ended.
    heads_ended: AtomicUsize,
    /// Answers that have ended.
    answers_ended: AtomicUsize,
    /// Notified by the first head that ends.
    first_request: Notify,
    /// Set while a head other than the first has begun and not ended.
    head: StartTime,
    /// When the last answer ended, or when a peer that had taken no bytes took some again.
    idle: StartTime,
    /// Set while the peer takes no byte of what is written.
    blocked: StartTime,
    /// Everything was written. The code that closes the connection has a limit of its own.
    stopped: AtomicBool,
    /// The connection was idle when we decided to close it.
    closed_idle: AtomicBool,
    /// One for each answer on HTTP/2, set while the peer gives no room for the next chunk.
    stalls: Mutex<Vec<Arc<StartTime>>>,
}

impl ConnectionTimer {
    /// The time for the first head starts now.
    pub(super) fn new(timeouts: Timeouts) -> Self {
        Self {
            timeouts,
            accepted: Instant::now(),
            serving: AtomicUsize::new(0),
            none_served: AtomicWaker::new(),
            heads_ended: AtomicUsize::new(0),
            answers_ended: AtomicUsize::new(0),
            first_request: Notify::new(),
            head: StartTime::default(),
            idle: StartTime::default(),
            blocked: StartTime::default(),
            stopped: AtomicBool::new(false),
            closed_idle: AtomicBool::new(false),
            stalls: Mutex::default(),
        }
    }

    /// Waits until a limit has passed. Cancel safe.
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

    /// Waits until the head of the first request has ended.
    pub(super) async fn first_request(&self) {
        if self.requests() == 0 {
            self.first_request.notified().await;
        }
    }

    /// Whether no request is being received or served, and nothing waits to be written.
    fn is_idle(&self) -> bool {
        !self.is_serving() && !self.head.is_set() && !self.blocked.is_set()
    }

    /// Notes whether the connection is idle, when we decide to close it.
    pub(super) fn close_if_idle(&self) {
        if self.is_idle() {
            self.closed_idle.store(true, Ordering::Relaxed);
        }
    }

    /// Whether the connection was idle when we decided to close it. The peer then waits for no
    /// answer.
    pub(super) fn closed_idle(&self) -> bool {
        self.closed_idle.load(Ordering::Relaxed)
    }

    /// No limit runs from now on.
    pub(super) fn stop(&self) {
        self.stopped.store(true, Ordering::Relaxed);
    }

    /// Notes that a head has ended, and its request is being served.
    pub(super) fn request_began(&self) {
        self.serving.fetch_add(1, Ordering::Relaxed);
        if self.heads_ended.fetch_add(1, Ordering::Relaxed) == 0 {
            self.first_request.notify_one();
        }
    }

    /// How many heads have ended.
    pub(super) fn requests(&self) -> usize {
        self.heads_ended.load(Ordering::Relaxed)
    }

    /// Whether a request is being served.
    pub(super) fn is_serving(&self) -> bool {
        self.serving.load(Ordering::Acquire) > 0
    }

    /// How many answers have ended: all their bytes were handed to hyper.
    pub(super) fn answers(&self) -> usize {
        self.answers_ended.load(Ordering::Relaxed)
    }

    /// Notes that an answer has ended, or that nobody waits for the answer any more.
    pub(super) fn request_ended(&self) {
        self.idle.set(self.accepted.elapsed());
        self.answers_ended.fetch_add(1, Ordering::Relaxed);
        // This comes last and with `AcqRel`. A thread that sees that nothing is served then also
        // sees the two writes above, and does not compute the idle time from an old value.
        if self.serving.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.none_served.wake();
        }
    }

    /// Ready when no request is being served.
    pub(super) fn poll_none_served(&self, context: &Context<'_>) -> Poll<()> {
        // The waker is registered before the check. Otherwise a request that ends in between would
        // wake nobody.
        self.none_served.register(context.waker());
        if self.is_serving() { Poll::Pending } else { Poll::Ready(()) }
    }

    /// Notes that a byte of a head has arrived.
    pub(super) fn head_began(&self) {
        // The time of the first head begins when the connection is accepted. While a request is
        // served, the byte may belong to the body of that request.
        let is_waiting = self.requests() > 0 && !self.head.is_set();
        if is_waiting && !self.is_serving() {
            self.head.set(self.accepted.elapsed());
        }
    }

    /// Notes that no head is arriving.
    pub(super) fn head_ended(&self) {
        self.head.clear();
    }

    /// Notes that the peer took bytes.
    pub(super) fn wrote(&self) {
        if self.blocked.is_set() {
            self.blocked.clear();
            self.idle.set(self.accepted.elapsed());
        }
    }

    /// Notes that the peer takes no bytes.
    pub(super) fn write_blocked(&self) {
        if !self.blocked.is_set() {
            self.blocked.set(self.accepted.elapsed());
        }
    }

    /// Adds an answer on HTTP/2. Its chunks are noted with [`ConnectionTimer::chunk_offered`] and
    /// [`ConnectionTimer::chunk_taken`].
    pub(super) fn add_answer(&self) -> Arc<StartTime> {
        let stall = Arc::new(StartTime::default());
        self.stalls.lock().push(Arc::clone(&stall));
        stall
    }

    /// Removes an answer that has ended.
    pub(super) fn remove_answer(&self, answer: &Arc<StartTime>) {
        self.stalls.lock().retain(|other| !Arc::ptr_eq(other, answer));
    }

    /// Notes that a chunk of an answer waits for room.
    pub(super) fn chunk_offered(&self, answer: &StartTime) {
        answer.set(self.accepted.elapsed());
    }

    /// Notes that there was room for the chunk.
    pub(super) fn chunk_taken(answer: &StartTime) {
        answer.clear();
    }

    /// When the next limit passes if nothing happens, and which limit it is. None while no limit
    /// runs.
    fn deadline(&self) -> Option<(Instant, Limit)> {
        if self.stopped.load(Ordering::Relaxed) {
            return None;
        }
        let stalled = self.stalls.lock().iter().filter_map(|stall| stall.get()).min();
        let blocked = self.blocked.get().into_iter().chain(stalled).min();
        if let Some(since) = blocked {
            return Some((self.accepted + since + self.timeouts.write, Limit::WriteTimeout));
        }
        // A route's own limits bound the time in which a request is served.
        if self.is_serving() {
            return None;
        }
        if self.requests() == 0 {
            return Some((self.accepted + self.timeouts.header, Limit::HeaderTimeout));
        }
        let idle = self.idle.get().unwrap_or_default();
        Some(match self.head.get() {
            // A pipelined head may have begun while another request was served. That time does not
            // count.
            Some(head) => {
                (self.accepted + head.max(idle) + self.timeouts.header, Limit::HeaderTimeout)
            }
            None => (self.accepted + idle + self.timeouts.idle, Limit::IdleTimeout),
        })
    }
}
