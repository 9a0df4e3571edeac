//! Gathers swaps into groups. One statement, one transaction and one commit serve a whole group.
//!
//! A swap that comes while few others are under way is made at once, alone. Otherwise it waits for
//! the end of one of them, and all that wait then form the next group. So groups are as large as
//! the database is busy, and without load there are none.
//!
//! Each swap of a group has a result of its own. If the database undoes the group because of one of
//! them, each is made alone.

use std::collections::VecDeque;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tokio::time::timeout;

use super::database::{Database, QueryError};
use super::group::swap_all;
use super::values::SwapValues;
use crate::store::Error;
use crate::store::shared::SwapResult;

/// The number of places for groups, and for swaps that are made alone. With more places, groups
/// would be smaller. With a single one, the database would have nothing to do during a commit.
const PLACES: usize = 2;

/// The longest time for which a place is held. What takes longer waits for another transaction, a
/// standby or a broken connection, and what comes after it must not wait for the same.
const HELD_MAX: Duration = Duration::from_millis(20);

/// The most swaps in a group.
const SWAPS_MAX: usize = 64;

/// The most bytes that the records of a group have together, unless it has only one.
const BYTES_MAX: usize = 1024 * 1024;

/// Gathers the swaps of this process into groups.
#[derive(Debug, Clone)]
pub(super) struct Groups {
    database: Arc<Database>,
    timeout: Duration,
    queue: Arc<Mutex<Queue>>,
}

/// The swaps that wait. Some wait only while all places are taken.
#[derive(Debug, Default)]
struct Queue {
    waiting: VecDeque<Waiting>,
    places_taken: usize,
}

/// A swap that waits for a group, or is in one.
#[derive(Debug)]
struct Waiting {
    values: Box<SwapValues>,
    caller: oneshot::Sender<Result<Grouped, Error>>,
}

/// What the groups did with a swap.
#[derive(Debug)]
pub(super) enum Grouped {
    /// It was made in a group.
    Made(SwapResult),
    /// Its caller has to make it alone. If it has a place, the caller holds that place meanwhile.
    Alone { values: Box<SwapValues>, place: Option<Place> },
}

/// The right to be under way. When it is given back, the next group begins.
#[derive(Debug)]
pub(super) struct Place(Groups);

impl Groups {
    pub(super) fn new(database: Arc<Database>, timeout: Duration) -> Self {
        Self { database, timeout, queue: Arc::default() }
    }

    /// Waits until a swap was made in a group, or has to be made alone.
    ///
    /// Cancel safe: a swap whose caller has given up is not made, or is made in its group.
    pub(super) async fn join(&self, values: Box<SwapValues>) -> Result<Grouped, Error> {
        let grouped = {
            let mut queue = self.queue.lock();
            if queue.places_taken < PLACES {
                queue.places_taken += 1;
                return Ok(Grouped::Alone { values, place: Some(Place(self.clone())) });
            }
            let (caller, grouped) = oneshot::channel();
            queue.waiting.push_back(Waiting { values, caller });
            grouped
        };
        // If the task that had to make the group has ended without a result, so has its runtime.
        grouped.await.unwrap_or_else(|_| Err(Error::Failed("the runtime is shutting down".into())))
    }

    async fn make(self, group: Vec<Waiting>) {
        let swaps: Vec<_> = group.iter().map(|waiting| &*waiting.values).collect();
        let made = timeout(self.timeout, swap_all(&self.database, &swaps)).await;
        let made = made.unwrap_or(Err(QueryError::Failed(Error::NoReply(self.timeout))));
        let results: Vec<_> = match made {
            Ok(results) => results.into_iter().map(Ok).collect(),
            Err(QueryError::Undone(_)) => group.iter().map(|_| Ok(None)).collect(),
            Err(error) => {
                let shared = Arc::new(error.into());
                group.iter().map(|_| Err(Error::copy_of(&shared))).collect()
            }
        };
        for (Waiting { values, caller }, result) in group.into_iter().zip(results) {
            let grouped = result.map(|made| match made {
                Some(result) => Grouped::Made(result),
                None => Grouped::Alone { values, place: None },
            });
            // The caller may have given up.
            let _ = caller.send(grouped);
        }
    }
}

impl Place {
    /// Holds the place until the work is done, but for [`HELD_MAX`] at most.
    pub(super) async fn held_during<T>(self, work: impl Future<Output = T>) -> T {
        let mut work = pin!(work);
        if let Ok(done) = timeout(HELD_MAX, &mut work).await {
            return done;
        }
        drop(self);
        work.await
    }

    /// Gives the place to a group. It is made in a task of its own, because it must go on when one
    /// of its callers gives up.
    fn begin(self, mut group: Vec<Waiting>) {
        if group.len() == 1
            && let Some(Waiting { values, caller }) = group.pop()
        {
            let _ = caller.send(Ok(Grouped::Alone { values, place: Some(self) }));
        } else if let Ok(runtime) = Handle::try_current() {
            let groups = self.0.clone();
            runtime.spawn(self.held_during(groups.make(group)));
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let group = {
            let mut queue = self.0.queue.lock();
            let group = queue.take_group();
            if group.is_empty() {
                queue.places_taken -= 1;
            }
            group
        };
        if !group.is_empty() {
            Self(self.0.clone()).begin(group);
        }
    }
}

impl Queue {
    /// Takes the next group, in the order of the ids.
    fn take_group(&mut self) -> Vec<Waiting> {
        let mut group = Vec::new();
        let mut bytes = 0;
        while group.len() < SWAPS_MAX
            && let Some(next) = self.waiting.pop_front()
        {
            // Nobody waits for a swap whose caller has given up.
            if next.caller.is_closed() {
                continue;
            }
            let more = next.values.record_bytes;
            if !group.is_empty() && bytes + more > BYTES_MAX {
                self.waiting.push_front(next);
                break;
            }
            bytes += more;
            group.push(next);
        }
        group.sort_unstable_by_key(|one| one.values.id);
        group
    }
}
