//! Hands rows to the database, on a thread of its own.
//!
//! A run of rows goes into the tables, then the mark is written, and then segments of the log are
//! removed that nothing needs any more. If the process ends in between, the next start reads the
//! same groups of the log once more, and hands in the same rows.

use std::mem;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use super::database::Database;
use super::mark::Mark;
use super::memory::Memory;
use super::rows::Table;
use crate::store::embedded::log::Segments;
use crate::telemetry::chain;

/// The pause after which a run that could not be handed in is tried again.
const RETRY: Duration = Duration::from_secs(1);

/// A run of rows.
pub(super) struct Run {
    pub(super) rows: Arc<Memory>,
    /// What is true once the database has the rows.
    pub(super) mark: Mark,
    /// The first segment of the log that may not be synced, if there is one. The database must not
    /// know of a record that a loss of power can take away.
    pub(super) unsynced_from: Option<u64>,
}

/// A run that the database has.
pub(super) struct Done {
    /// The segments that were removed.
    pub(super) removed: Vec<u64>,
}

/// The thread.
pub(super) struct Ingest {
    runs: Option<Sender<Run>>,
    done: Receiver<Done>,
    thread: Option<JoinHandle<()>>,
}

impl Ingest {
    pub(super) fn start(
        database: Arc<Database>,
        segments: Arc<Segments>,
        folder: PathBuf,
    ) -> std::io::Result<Self> {
        let (runs, queue) = mpsc::channel();
        let (finished, done) = mpsc::channel();
        let worker = Worker { database, segments, folder, queue, finished, is_failing: false };
        let thread = thread::Builder::new()
            .name("onceward-index".to_owned())
            .spawn(move || worker.run())?;
        Ok(Self { runs: Some(runs), done, thread: Some(thread) })
    }

    pub(super) fn hand_in(&self, run: Run) {
        // The thread ends only after the sender is gone.
        let _ended = self.runs.as_ref().map(|runs| runs.send(run));
    }

    /// Returns the run that was handed in, if the database has it.
    pub(super) fn done(&self) -> Option<Done> {
        self.done.try_recv().ok()
    }

    /// Waits until the database has the run that was handed in. None: the thread has ended.
    pub(super) fn wait(&self) -> Option<Done> {
        self.done.recv().ok()
    }
}

impl Drop for Ingest {
    /// Waits for the thread. A run that fails is given up: the next start reads it from the log.
    fn drop(&mut self) {
        drop(self.runs.take());
        if let Some(thread) = self.thread.take() {
            let _panicked = thread.join();
        }
    }
}

struct Worker {
    database: Arc<Database>,
    segments: Arc<Segments>,
    folder: PathBuf,
    queue: Receiver<Run>,
    finished: Sender<Done>,
    is_failing: bool,
}

impl Worker {
    fn run(mut self) {
        while let Ok(run) = self.queue.recv() {
            loop {
                match self.hand_in(&run) {
                    Ok(done) => {
                        if mem::take(&mut self.is_failing) {
                            tracing::info!("the store writes its tables again");
                        }
                        let _closed = self.finished.send(done);
                        break;
                    }
                    Err(error) => {
                        if !mem::replace(&mut self.is_failing, true) {
                            tracing::error!(
                                error = %chain(&*error),
                                "the store cannot write its tables; it tries again every second"
                            );
                        }
                        // No second run comes before this one is done.
                        if self.queue.recv_timeout(RETRY).err() == Some(RecvTimeoutError::Disconnected)
                        {
                            return;
                        }
                    }
                }
            }
            self.compact();
        }
    }

    fn hand_in(&self, run: &Run) -> Result<Done, Box<dyn std::error::Error + Send + Sync>> {
        let Run { rows, mark, unsynced_from } = run;
        if let Some(from) = unsynced_from {
            self.segments.sync(*from, mark.position)?;
        }
        for table in Table::ALL {
            self.database.ingest(table, rows.rows(table))?;
        }
        mark.write(&self.folder)?;
        let dead = mark.accounts.dead(mark.position.segment);
        let removed = dead.filter(|segment| self.segments.remove(*segment).is_ok());
        Ok(Done { removed: removed.collect() })
    }

    fn compact(&self) {
        for table in Table::ALL {
            if let Err(error) = self.database.compact(table) {
                tracing::error!(
                    error = %chain(&error),
                    "the store cannot merge its tables; it tries again with the next rows"
                );
            }
        }
    }
}
