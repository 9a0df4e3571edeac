//! Waiting for something to be so. This is the one place of the harness that looks again and again:
//! everything that a test waits for without an event of its own comes through [`until`].

use std::fs;
use std::time::Duration;

use onceward::clock::Clock;
use rustix::process::Signal;
use tokio::time::{sleep, timeout};

use super::{Event, Onceward, Reply};

/// Only what never comes takes so long, on a machine however busy.
pub const PATIENCE: Duration = Duration::from_mins(2);
/// Between two looks. It is no pause that anything relies on.
const LOOK_EVERY: Duration = Duration::from_millis(5);
/// So many looks in a row find a process at rest before it is taken to be.
const LOOKS_AT_REST: usize = 20;

/// Waits until something is so.
pub async fn until<F: Future<Output = bool>>(what: &str, is_so: impl Fn() -> F) {
    let looks = until_found(|| async { is_so().await.then_some(()) });
    timeout(PATIENCE, looks).await.unwrap_or_else(|_| panic!("not yet: {what}"));
}

/// Looks until there is something. It has no end of its own.
async fn until_found<T, F: Future<Output = Option<T>>>(look: impl Fn() -> F) -> T {
    loop {
        if let Some(found) = look().await {
            return found;
        }
        sleep(LOOK_EVERY).await;
    }
}

/// Waits until this machine's clock shows a later millisecond: what is created before and after can
/// be told apart by its time, in every store.
pub async fn a_later_millisecond() {
    let clock = Clock::system();
    let before = clock.wall();
    until("a later millisecond", async || clock.wall() > before).await;
}

impl Onceward {
    /// Waits until an operation is in this state.
    pub async fn comes_to_be(&self, id: &str, state: &str) {
        let looks = until_found(async || {
            let found = self.operation(id).await?;
            (found["state"] == state).then_some(())
        });
        let waited = timeout(PATIENCE, looks).await;
        let found = self.operation(id).await;
        assert!(waited.is_ok(), "`{id}` does not come to be {state}: {found:?}");
    }

    /// Waits until nothing is remembered of an operation.
    pub async fn forgets(&self, id: &str) {
        until("it is forgotten", async || self.operation(id).await.is_none()).await;
    }

    /// Waits until a line of the metrics has come to this value, or beyond it.
    pub async fn comes_to_count(&self, line: &str, value: f64) {
        self.has_metric(line, &format!("at least {value}"), |now| now >= value).await;
    }

    /// Waits until a line of the metrics has come down to this value, or below it.
    pub async fn comes_down_to(&self, line: &str, value: f64) {
        self.has_metric(line, &format!("{value} or less"), |now| now <= value).await;
    }

    /// Waits until a line of the metrics has come to this value; it must not be beyond it then.
    pub async fn counts(&self, line: &str, value: f64) {
        self.comes_to_count(line, value).await;
        assert_eq!(self.metric(line).await, value, "`{line}`");
    }

    async fn has_metric(&self, line: &str, wanted: &str, is_so: impl Fn(f64) -> bool) {
        let looks = until_found(async || is_so(self.metric(line).await).then_some(()));
        let found = timeout(PATIENCE, looks).await;
        assert!(found.is_ok(), "`{line}` is {} and not {wanted}", self.metric(line).await);
    }

    /// Waits until a line of the log holds this text.
    pub async fn logs(&self, text: &str) {
        self.logs_times(text, 1).await;
    }

    /// Waits until so many lines of the log hold this text.
    pub async fn logs_times(&self, text: &str, times: usize) {
        let count = || self.log().iter().filter(|line| line.to_string().contains(text)).count();
        let looks = until_found(async || (count() >= times).then_some(()));
        let waited = timeout(PATIENCE, looks).await;
        assert!(waited.is_ok(), "{} of {times} times `{text}` in {:#?}", count(), self.log());
    }

    /// Waits until its store works.
    pub async fn becomes_ready(&self) {
        until("it is ready", async || self.get_admin("/readyz").await.status == 200).await;
    }

    /// Waits until every thread of the process sleeps: it has taken in all that was sent to it.
    pub async fn comes_to_rest(&self) {
        let tasks = format!("/proc/{}/task", self.pid().as_raw_nonzero());
        let sleeps = || {
            let threads = fs::read_dir(&tasks).unwrap();
            threads.flatten().all(|thread| {
                let stat = fs::read_to_string(thread.path().join("stat")).unwrap_or_default();
                // The name in front of the state is in parentheses, and may hold any character.
                stat.rsplit_once(") ").is_none_or(|(_, rest)| rest.starts_with('S'))
            })
        };
        let rests = async {
            let mut looks = 0;
            while looks < LOOKS_AT_REST {
                looks = if sleeps() { looks + 1 } else { 0 };
                sleep(LOOK_EVERY).await;
            }
        };
        timeout(PATIENCE, rests).await.expect("it comes to rest");
    }

    /// Sends copies of an event, one after the other, until one is answered as is wanted.
    pub async fn sends_until(&self, event: &Event, is_wanted: impl Fn(&Reply) -> bool) -> Reply {
        let send = async || Some(self.sends(event.clone()).await).filter(&is_wanted);
        let found = timeout(PATIENCE, until_found(send)).await;
        found.expect("a copy is answered so")
    }

    /// The same, by what became of the copy.
    pub async fn sends_until_it_is(&self, event: &Event, disposition: &str) -> Reply {
        self.sends_until(event, |reply| reply.disposition() == disposition).await
    }

    /// Stops the process for this long, and then lets it go on: `meanwhile` happens in between.
    /// Time itself is what is waited for, so that a lease runs out which nobody can renew.
    pub async fn stands_still(&self, time: Duration, meanwhile: impl FnOnce()) {
        self.signal(Signal::STOP);
        meanwhile();
        sleep(time).await;
        self.signal(Signal::CONT);
    }

    /// Waits until the upstream cannot be working any more on the latest attempt of an operation,
    /// which began at the store's own time and may take this long.
    pub async fn must_have_ended(&self, id: &str, attempt_timeout: Duration) {
        let operation = self.operation(id).await.expect("it is remembered");
        let latest = operation["attempts"].as_array().unwrap().last().expect("an attempt");
        let began: jiff::Timestamp = latest["started_at"].as_str().unwrap().parse().unwrap();
        let began = u64::try_from(began.as_millisecond()).unwrap();
        let ends = began + u64::try_from(attempt_timeout.as_millis()).unwrap();
        let clock = Clock::system();
        until("the end of the attempt's time", async || clock.wall().0 > ends).await;
    }
}
