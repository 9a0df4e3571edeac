//! The thread that moves rows from memory to disk.
//!
//! It does one run at a time:
//!
//! ```text
//! 1. the log is synced up to the end of the run, if it is not
//! 2. the rows of each table go into the database, durably
//! 3. the mark is replaced: a start reads the log from there on
//! 4. segments before the mark into which no record points are deleted
//! ```
//!
//! After a crash before step 3 the next start reads the rows of the run from the log again, and they
//! go into the database a second time. A run that fails is tried again until it succeeds.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use super::database::Database;
use super::mark::Mark;
use super::memory::Memory;
use super::rows::Table;
use crate::store::embedded::log::{RealDisk, Segments};
use crate::telemetry::chain;

/// The time between two tries.
const RETRY: Duration = Duration::from_secs(1);

/// A failure is logged once, and then after this many tries.
const TRIES_LOGGED: u32 = 60;

/// Rows that go to disk.
#[derive(Debug)]
pub(super) struct Run {
    pub(super) memory: Arc<Memory>,
    /// The mark that is written behind them.
    pub(super) mark: Mark,
}

/// What the thread is asked to do.
enum Job {
    Ingest(Run),
    /// It takes a while to free many rows.
    Free(Arc<Memory>),
}

/// The end of a run.
#[derive(Debug)]
pub(super) struct Ingested {
    /// The segments that are deleted.
    pub(super) deleted: Vec<u64>,
}

/// Why a try failed.
#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error("the log cannot be synced")]
    Log(#[source] io::Error),
    #[error("the database failed")]
    Database(#[source] fjall::Error),
    #[error("the database panicked")]
    Panicked,
    #[error("the mark cannot be written")]
    Mark(#[source] io::Error),
}

/// The thread.
#[derive(Debug)]
pub(super) struct Ingester {
    /// None while the thread is being ended.
    jobs: Option<Sender<Job>>,
    ends: Receiver<Ingested>,
    is_ending: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

/// The thread's state.
pub(super) struct Worker {
    pub(super) database: Arc<Database>,
    pub(super) segments: Arc<Segments<RealDisk>>,
    /// The folder of the log.
    pub(super) folder: PathBuf,
}

impl Ingester {
    pub(super) fn begin(worker: Worker) -> io::Result<Self> {
        let (jobs, queue) = mpsc::channel();
        let (done, ends) = mpsc::channel();
        let is_ending = Arc::new(AtomicBool::new(false));
        let ending = Arc::clone(&is_ending);
        let thread = thread::Builder::new()
            .name("onceward-rows".to_owned())
            .spawn(move || worker.work(&queue, &done, &ending))?;
        Ok(Self { jobs: Some(jobs), ends, is_ending, thread: Some(thread) })
    }

    /// Begins a run. No other may be under way.
    pub(super) fn ingest(&self, run: Run) {
        self.send(Job::Ingest(run));
    }

    /// Frees rows that are no longer needed.
    pub(super) fn free(&self, memory: Arc<Memory>) {
        self.send(Job::Free(memory));
    }

    /// Returns the end of the run, if it has ended.
    pub(super) fn ended(&self) -> Option<Ingested> {
        self.ends.try_recv().ok()
    }

    /// Waits for the end of the run.
    #[cfg(test)]
    pub(super) fn wait(&self) -> Ingested {
        self.ends.recv().unwrap()
    }

    fn send(&self, job: Job) {
        // The thread ends only with this value, or by a panic, which was logged.
        let _gone = self.jobs.as_ref().map(|jobs| jobs.send(job));
    }
}

impl Drop for Ingester {
    /// Waits for the thread. Otherwise it could still write when the directory is unlocked. A run
    /// that is under way is given up; its rows are in the log.
    fn drop(&mut self) {
        self.is_ending.store(true, Ordering::Relaxed);
        self.jobs = None;
        if self.thread.take().is_some_and(|thread| thread.join().is_err()) {
            tracing::error!("the thread that writes rows has panicked");
        }
    }
}

impl Worker {
    fn work(&self, jobs: &Receiver<Job>, ends: &Sender<Ingested>, is_ending: &AtomicBool) {
        while let Ok(job) = jobs.recv() {
            match job {
                Job::Ingest(run) => {
                    let Some(ended) = self.repeat(&run, jobs, is_ending) else { return };
                    let _gone = ends.send(ended);
                }
                Job::Free(memory) => drop(memory),
            }
        }
    }

    /// Tries until the run has succeeded. Returns none if the thread must end before.
    fn repeat(&self, run: &Run, jobs: &Receiver<Job>, is_ending: &AtomicBool) -> Option<Ingested> {
        let mut left = Table::ALL.as_slice();
        let mut tries = 0_u32;
        loop {
            let tried = catch_unwind(AssertUnwindSafe(|| self.run(run, &mut left, is_ending)));
            let failure = match tried.unwrap_or(Err(Failure::Panicked)) {
                Ok(true) => {
                    if tries > 0 {
                        tracing::info!(tries, "rows go to the disk again");
                    }
                    let deleted = self.delete_dead(&run.mark);
                    return Some(Ingested { deleted });
                }
                Ok(false) => return None,
                Err(failure) => failure,
            };
            if tries.is_multiple_of(TRIES_LOGGED) {
                let error = chain(&failure);
                tracing::error!(%error, tries, "rows stay in memory and in the log; it is tried again");
            }
            tries = tries.saturating_add(1);
            match jobs.recv_timeout(RETRY) {
                Err(RecvTimeoutError::Timeout) => {}
                Ok(Job::Free(memory)) => drop(memory),
                Ok(Job::Ingest(_)) | Err(RecvTimeoutError::Disconnected) => return None,
            }
            // After a failure nobody knows what the database still does.
            let reopened = catch_unwind(AssertUnwindSafe(|| self.database.reopen()));
            if !matches!(reopened, Ok(Ok(()))) {
                tracing::debug!("the database could not be opened again");
            }
        }
    }

    /// Makes a try. Returns false if the thread must end. `left` are the tables whose rows are not
    /// in the database yet.
    fn run(&self, run: &Run, left: &mut &[Table], is_ending: &AtomicBool) -> Result<bool, Failure> {
        if let Some(position) = run.mark.position {
            self.segments.sync_until(position).map_err(Failure::Log)?;
        }
        self.database.check().map_err(Failure::Database)?;
        while let Some((table, rest)) = left.split_first() {
            if is_ending.load(Ordering::Relaxed) {
                return Ok(false);
            }
            self.database.ingest(*table, &run.memory).map_err(Failure::Database)?;
            *left = rest;
        }
        run.mark.write(&self.folder).map_err(Failure::Mark)?;
        Ok(true)
    }

    /// Deletes the segments that nobody needs, according to a mark that is durable. Returns those
    /// that are gone. A segment that cannot be deleted is tried again with the next mark.
    fn delete_dead(&self, mark: &Mark) -> Vec<u64> {
        let before = mark.position.map_or(0, |position| position.segment);
        let mut dead: Vec<_> = mark.accounts.dead_before(before).collect();
        dead.retain(|number| match self.segments.remove(*number) {
            Ok(()) => true,
            Err(error) if error.kind() == io::ErrorKind::NotFound => true,
            Err(error) => {
                tracing::warn!(%error, segment = number, "a segment cannot be deleted");
                false
            }
        });
        dead
    }
}
