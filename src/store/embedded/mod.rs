//! On disk, for one machine: survives kill -9 and power loss.
//!
//! One thread of the operating system, the writer, owns the database and makes every change. Calls
//! queue up for it; what queued while it synced is decided, written and synced together, and then
//! answered. A copy of a success is answered from memory, without the writer.

mod batch;
mod cache;
mod contents;
mod directory;
mod group;
mod journal;
mod page;
mod queue;
mod recovery;
mod stuffing;
mod sweep;
mod synced;
mod tables;
mod writer;

pub use directory::OpenError;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::{mpsc, oneshot};

use self::cache::Successes;
use self::directory::Directory;
use self::journal::Journals;
use self::queue::{Command, Reply};
use self::tables::Tables;
use self::writer::Writer;
use super::endings::Endings;
use super::holds::HoldsEnded;
use super::listing::SCANNED_MAX;
use super::{Error, IfUnwritten, ListPage, ListQuery, RuleCall, Store, SweepReport, Watch, probe};
use crate::clock::{Clock, KeptClock};
use crate::operation::state::{self, OperationState};
use crate::operation::{Operation, OperationId, OperationRequest};

/// Where and how durably the embedded store keeps its records.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// The directory. It is made if it does not exist.
    pub path: PathBuf,
    /// What a record has survived before it is acted on.
    pub durability: Durability,
    /// What is done about records that are damaged.
    pub if_damaged: IfDamaged,
}

/// What is done where a journal is damaged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IfDamaged {
    /// The store does not open.
    Refuse,
    /// It opens without what is damaged, and says what that was.
    Accept,
}

/// What a record has survived before it is acted on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// A crash of the machine: it is synced to disk.
    Sync,
    /// A crash of the process: it is with the operating system.
    Os,
}

/// Longest that a call waits for the writer.
const DEADLINE: Duration = Duration::from_secs(2);

/// Longest that [`Store::close`] waits for the writer.
const CLOSE_DEADLINE: Duration = Duration::from_secs(10);

/// Calls that may wait for the writer: twice as many as requests may be in flight by default.
const QUEUE_MAX: usize = 8192;

/// A store on disk. Dropping it lets the writer finish in its own time; [`Store::close`] waits.
#[derive(Debug)]
pub struct Embedded {
    commands: mpsc::Sender<Command>,
    shared: Arc<Shared>,
}

/// What the writer and its callers both use.
#[derive(Debug)]
struct Shared {
    clock: KeptClock,
    successes: Successes,
    endings: Endings,
    holds_ended: HoldsEnded,
}

/// Opens the store, or makes an empty one. What an earlier process had in flight becomes uncertain.
/// Blocks the thread.
///
/// # Errors
///
/// If another process has it open, the directory belongs to something else, or the disk fails.
pub fn open(settings: &Settings, clock: Clock) -> Result<Embedded, OpenError> {
    let directory = Directory::take(&settings.path, settings.if_damaged)?;
    let failed =
        |source| OpenError::Database { path: settings.path.clone(), source: Box::new(source) };
    let io = |source| OpenError::Io { path: settings.path.clone(), source };
    let Settings { path, durability, if_damaged } = settings;
    let contents = directory.contents(*if_damaged)?;
    let contents = contents.as_ref();
    let records = directory.records();
    let journals = Journals::check(path, &records, contents, *durability, *if_damaged)?;
    // The database asserts what it reads: bytes that it did not write may end it in a panic.
    let opened = catch_unwind(AssertUnwindSafe(|| Tables::open(directory, *durability, &journals)));
    let tables = opened.map_err(|_| OpenError::Database {
        path: settings.path.clone(),
        source: Box::new(Unreadable),
    })?;
    let tables = tables.map_err(failed)?;
    if let Some(journal) = journals.cut_off().map_err(io)? {
        return Err(tables.directory().mark_damaged(journal));
    }
    let kept = tables.kept_time().map_err(failed)?;
    let shared = Arc::new(Shared {
        clock: KeptClock::start(clock, kept),
        successes: Successes::new(),
        endings: Endings::default(),
        holds_ended: HoldsEnded::default(),
    });
    let abandoned = recovery::abandon_all(&tables, shared.clock.now());
    let uncertain = abandoned.map_err(|source| OpenError::Database {
        path: settings.path.clone(),
        source: Box::new(source),
    })?;
    let (commands, queue) = mpsc::channel(QUEUE_MAX);
    let writer = Writer::new(tables, queue, Arc::clone(&shared), uncertain);
    std::thread::Builder::new()
        .name("onceward-store".to_owned())
        .spawn(move || writer.run())
        .map_err(|source| OpenError::Io { path: settings.path.clone(), source })?;
    Ok(Embedded { commands, shared })
}

/// The database holds what it cannot have written.
#[derive(Debug, thiserror::Error)]
#[error("it holds what it cannot have written; restore it, or remove the directory to begin anew")]
struct Unreadable;

/// The writer ended without an answer.
#[derive(Debug, thiserror::Error)]
#[error("its writer has ended")]
struct WriterEnded;

impl Embedded {
    /// Has the writer do something, and waits for its answer. If the caller is gone before the
    /// writer gets to it, it is not done.
    async fn ask<T>(&self, command: impl FnOnce(Reply<T>) -> Command) -> Result<T, Error> {
        let (reply, answer) = oneshot::channel();
        self.commands.try_send(command(reply)).map_err(|error| match error {
            mpsc::error::TrySendError::Full(_) => Error::Unavailable("its queue is full"),
            mpsc::error::TrySendError::Closed(_) => Error::Unavailable("it is closed"),
        })?;
        match tokio::time::timeout(DEADLINE, answer).await {
            Ok(Ok(answered)) => answered,
            Ok(Err(_)) => Err(Error::Failed(Box::new(WriterEnded))),
            Err(_) => Err(Error::NoReply(DEADLINE)),
        }
    }
}

#[async_trait]
impl Store for Embedded {
    async fn call(&self, call: Arc<dyn RuleCall>) -> Result<(), Error> {
        self.ask(|reply| Command::Change { call, reply }).await
    }

    fn recall(&self, asked: &OperationRequest) -> Option<OperationState> {
        if self.commands.is_closed() {
            return None;
        }
        let remembered = self.shared.successes.get(asked.id)?;
        state::recall(&remembered, asked, self.shared.clock.now())
    }

    async fn get(&self, id: OperationId) -> Result<Option<Operation>, Error> {
        self.ask(|reply| Command::Get { id, reply }).await
    }

    async fn watch(&self, id: OperationId) -> Result<Watch, Error> {
        Ok(self.shared.endings.watch(id))
    }

    async fn uncertain(&self) -> Result<u64, Error> {
        self.ask(|reply| Command::Uncertain { reply }).await
    }

    async fn list(&self, listing: &ListQuery) -> Result<ListPage, Error> {
        let mut listed = ListPage { operations: Vec::new(), next: None };
        let mut scanned = 0;
        let mut rest = listing.clone();
        // In parts, so that the writer comes to others in between.
        loop {
            let part = rest.clone();
            let part = self.ask(|reply| Command::Page { listing: part, reply }).await?;
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
            // an error means that it is closed already
            if self.commands.send(Command::Close { reply }).await.is_ok() {
                let _ended = closed.await;
            }
        };
        if tokio::time::timeout(CLOSE_DEADLINE, close).await.is_err() {
            tracing::error!("the store did not close within {CLOSE_DEADLINE:?}");
        }
    }
}
