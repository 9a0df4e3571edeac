//! A store on disk, for one machine. It survives kill -9 and a loss of power.
//!
//! One thread of the operating system, the writer, owns the database and makes every change. Calls
//! queue for the writer. It decides the calls that came during the last sync, and writes and syncs
//! their changes together. So many calls share the cost of one sync. A copy of a success is answered
//! from memory, without the writer.
//!
//! | files | for |
//! | --- | --- |
//! | `writer`, `queue`, `group`, `reply`, `seen`, `cache` | the rules and the replies |
//! | `page`, `sweep` | lists and expiry |
//! | `recovery`, `loss`, `reindex` | what an earlier process left, and what damage left |
//! | `batch`, `tables`, `unsettled`, `ids`, `bytes`, `database`, `stuffing` | the rows on disk |
//! | `directory`, `contents`, `journal/`, `synced` | opening a store, and checks for damage |

mod batch;
mod bytes;
mod cache;
mod directory;
mod filesystem;
mod group;
mod ids;
mod log;
mod loss;
mod open_error;
mod page;
mod queue;
mod recovery;
mod reindex;
mod reply;
mod seen;
mod settings;
mod stuffing;
mod sweep;
mod tables;
mod unsettled;
mod writer;

pub use open_error::OpenError;
pub use settings::{Durability, IfDamaged, Settings};

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::{mpsc, oneshot};

use self::cache::SuccessCache;
use self::directory::Directory;
use self::queue::Command;
use self::reply::Reply;
use self::seen::SeenAttempts;
use self::tables::{Options, Tables};
use self::writer::Writer;
use super::list::SCANNED_MAX;
use super::sweep::HoldsEnded;
use super::watch::Watchers;
use super::{Error, ListPage, ListQuery, RuleCall, Store, SweepReport, Watch, probe};
use crate::clock::{AnchoredClock, Clock};
use crate::operation::state::{self, ReportedState, RuleName};
use crate::operation::{Operation, OperationId, Subject};

/// The longest that a call waits for the writer.
const DEADLINE: Duration = Duration::from_secs(2);

/// The longest that [`Store::close`] waits for the writer.
const CLOSE_DEADLINE: Duration = Duration::from_secs(10);

/// The most calls that wait for the writer: twice as many as requests may be in flight by default.
const QUEUE_MAX: usize = 8192;

/// A store on disk. When it is dropped, the writer ends some time later. [`Store::close`] waits for
/// that end.
#[derive(Debug)]
pub struct Embedded {
    commands: mpsc::Sender<Command>,
    shared: Arc<SharedState>,
}

/// The state that the writer and its callers share.
#[derive(Debug)]
struct SharedState {
    clock: AnchoredClock,
    successes: SuccessCache,
    watchers: Watchers,
    holds_ended: HoldsEnded,
    seen_attempts: SeenAttempts,
}

/// Opens a store, or makes an empty one. Operations that an earlier process had in flight become
/// uncertain. Blocks the thread.
///
/// # Errors
///
/// If another process has the store open, the directory belongs to another program, records are
/// damaged, or the disk fails.
pub fn open(settings: &Settings, clock: Clock) -> Result<Embedded, OpenError> {
    let Settings { path, durability, if_damaged } = settings;
    let io = |source| OpenError::Io { path: path.clone(), source };
    let directory = Directory::take(path, *if_damaged)?;
    let options = Options::new(*durability, *if_damaged);
    // The database panics on some bytes that it did not write. Such a panic is turned into an
    // error.
    let opened = catch_unwind(AssertUnwindSafe(|| Tables::open(directory, options)));
    let mut tables = opened.map_err(|_| OpenError::database(path, Unreadable))??;
    let shared = Arc::new(SharedState {
        clock: AnchoredClock::start(clock, tables.kept_time()),
        successes: SuccessCache::new(),
        watchers: Watchers::default(),
        holds_ended: HoldsEnded::default(),
        seen_attempts: SeenAttempts::default(),
    });
    let now = shared.clock.now();
    let refused = |source| OpenError::database(path, source);
    if loss::is_noted(path).map_err(io)? {
        reindex::reindex(&mut tables, now).map_err(refused)?;
        loss::clear(path).map_err(io)?;
    }
    let uncertain = recovery::abandon_all(&mut tables, now).map_err(refused)?;
    let (commands, queue) = mpsc::channel(QUEUE_MAX);
    let writer = Writer::new(tables, queue, Arc::clone(&shared), uncertain);
    // The writer has a thread of its own, because a sync blocks for milliseconds and would hold up
    // other tasks.
    std::thread::Builder::new()
        .name("onceward-store".to_owned())
        .spawn(move || writer.run())
        .map_err(io)?;
    Ok(Embedded { commands, shared })
}

/// The database panicked on bytes that it cannot have written.
#[derive(Debug, thiserror::Error)]
#[error(
    "it holds bytes that it cannot have written; restore it (what was recorded after the copy may run \
     again), or remove its directory to begin anew (all may)"
)]
struct Unreadable;

/// The writer ended without a reply.
#[derive(Debug, thiserror::Error)]
#[error("its writer has ended")]
struct WriterEnded;

impl Embedded {
    /// Sends a command to the writer, and waits for the reply. If the future is dropped before the
    /// writer comes to a change, the change is not made.
    async fn ask<T: Send + 'static>(
        &self,
        command: impl FnOnce(Reply<T>) -> Command,
    ) -> Result<T, Error> {
        let (reply, mut answer) = Reply::channel();
        // A full queue turns the call away at once. If calls waited for room, requests would pile
        // up behind a slow disk, and their senders would give up one by one.
        self.commands.try_send(command(reply)).map_err(|error| match error {
            mpsc::error::TrySendError::Full(_) => Error::Unavailable("its queue is full"),
            mpsc::error::TrySendError::Closed(_) => Error::Unavailable("it is closed"),
        })?;
        if let Ok(answered) = tokio::time::timeout(DEADLINE, &mut answer).await {
            return answered.unwrap_or_else(|_| Err(Error::Failed(Box::new(WriterEnded))));
        }
        // After a stall of the process the deadline may be noticed before a reply that came in
        // time, because a task of this runtime sends the reply. That task may run first now.
        tokio::task::yield_now().await;
        answer.try_recv().unwrap_or(Err(Error::NoReply(DEADLINE)))
    }
}

#[async_trait]
impl Store for Embedded {
    async fn call(&self, call: Arc<dyn RuleCall>) -> Result<(), Error> {
        let is_claim = call.name() == RuleName::Claim;
        let id = call.operation();
        self.ask(|reply| Command::Change { call, reply })
            .await
            .map_err(|error| error.of_claim(is_claim && self.shared.seen_attempts.may_contain(id)))
    }

    fn recall(&self, subject: &Subject) -> Option<ReportedState> {
        // A closed store must not seem to work.
        if self.commands.is_closed() {
            return None;
        }
        let remembered = self.shared.successes.get(subject.id)?;
        state::recall(&remembered, subject, self.shared.clock.now())
    }

    async fn get(&self, id: OperationId) -> Result<Option<Operation>, Error> {
        self.ask(|reply| Command::Get { id, reply }).await
    }

    async fn watch(&self, id: OperationId) -> Result<Watch, Error> {
        Ok(self.shared.watchers.watch(id))
    }

    async fn uncertain(&self) -> Result<u64, Error> {
        self.ask(|reply| Command::Uncertain { reply }).await
    }

    async fn list(&self, query: &ListQuery) -> Result<ListPage, Error> {
        let mut listed = ListPage { operations: Vec::new(), next: None };
        let mut scanned = 0;
        let mut rest = query.clone();
        // The page is read in parts, so that the writer can do other calls in between.
        loop {
            let part = rest.clone();
            let part = self.ask(|reply| Command::Page { query: part, reply }).await?;
            scanned += page::PART;
            rest.limit = rest.limit.saturating_sub(part.operations.len());
            listed.operations.extend(part.operations);
            listed.next = part.next;
            rest.after = part.next;
            if part.next.is_none() || rest.limit == 0 || scanned >= SCANNED_MAX {
                return Ok(listed);
            }
        }
    }

    async fn sweep(&self, limit: usize) -> Result<SweepReport, Error> {
        self.ask(|reply| Command::Sweep { limit, reply }).await
    }

    async fn probe(&self) -> Result<(), Error> {
        probe::probe(self).await
    }

    async fn close(&self) {
        let (reply, closed) = oneshot::channel();
        let close = async {
            // An error means that the store is already closed.
            if self.commands.send(Command::Close { reply }).await.is_ok() {
                let _ended = closed.await;
            }
        };
        if tokio::time::timeout(CLOSE_DEADLINE, close).await.is_err() {
            tracing::error!("the store did not close within {CLOSE_DEADLINE:?}");
        }
    }
}
