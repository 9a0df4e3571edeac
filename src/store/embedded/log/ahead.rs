//! Makes the next segment ahead, and does other work that no call should wait for.

use std::io;
use std::mem;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, SendError, Sender};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

use super::disk::{Disk, DiskFile};
use super::note::Note;
use super::segment::{self, Segment};

/// The time after which a segment that could not be made is tried again.
const RETRY: Duration = Duration::from_secs(1);

/// The thread that makes segments, and the segment that it has made.
#[derive(Debug)]
pub(super) struct Ahead<D: Disk> {
    shared: Arc<Shared<D>>,
    /// A disk of a test has none: then the caller does the work.
    thread: Option<Worker<D::File>>,
}

#[derive(Debug)]
struct Worker<F> {
    jobs: Sender<Job<F>>,
    handle: JoinHandle<()>,
}

#[derive(Debug)]
struct Shared<D: Disk> {
    disk: D,
    folder: PathBuf,
    bytes: u64,
    numbers: Arc<AtomicU64>,
    spare: Mutex<Spare<D::File>>,
    is_decided: Condvar,
}

/// The next segment.
#[derive(Debug)]
enum Spare<F> {
    BeingMade,
    Made(NewFile<F>),
    Failed { number: u64, error: io::Error },
}

/// A file full of zeros.
#[derive(Debug)]
pub(super) struct NewFile<F> {
    pub(super) number: u64,
    pub(super) file: F,
    pub(super) bytes: u64,
}

/// Work that no call waits for.
#[derive(Debug)]
pub(super) enum Job<F> {
    /// Make the segment with this number.
    Make(u64),
    /// A segment is full. Its zeros are cut off, and the note is synced.
    Finish { full: Segment<F>, note: Arc<Note<F>> },
}

impl<D: Disk> Ahead<D> {
    /// Begins to make the first segment. Its number is the next one.
    pub(super) fn begin(
        disk: D,
        folder: PathBuf,
        bytes: u64,
        numbers: Arc<AtomicU64>,
    ) -> io::Result<Self> {
        let spare = Mutex::new(Spare::BeingMade);
        let is_decided = Condvar::new();
        let shared = Arc::new(Shared { disk, folder, bytes, numbers, spare, is_decided });
        let mut ahead = Self { shared: Arc::clone(&shared), thread: None };
        if D::HAS_THREADS {
            let (jobs, queue) = mpsc::channel();
            let handle = thread::Builder::new()
                .name("onceward-log".to_owned())
                .spawn(move || shared.work(&queue))?;
            ahead.thread = Some(Worker { jobs, handle });
        }
        ahead.make_next();
        Ok(ahead)
    }

    /// Whether the next segment is made or being made.
    pub(super) fn has_room(&self) -> bool {
        self.try_again();
        !matches!(*self.shared.spare.lock(), Spare::Failed { .. })
    }

    /// Takes the next segment, with at least this many bytes, and begins to make another. Waits for
    /// a segment that is being made.
    pub(super) fn take(&self, bytes: u64) -> io::Result<NewFile<D::File>> {
        self.try_again();
        let mut spare = self.shared.spare.lock();
        while matches!(*spare, Spare::BeingMade) {
            self.shared.is_decided.wait(&mut spare);
        }
        let mut new = match mem::replace(&mut *spare, Spare::BeingMade) {
            Spare::Made(new) => new,
            Spare::Failed { number, error } => {
                let again = io::Error::new(error.kind(), error.to_string());
                *spare = Spare::Failed { number, error };
                return Err(again);
            }
            Spare::BeingMade => return Err(io::ErrorKind::WouldBlock.into()),
        };
        if new.bytes < bytes {
            if let Err(error) = segment::fill(&new.file, new.bytes, bytes) {
                // What a failed sync left undone, a later one does not do. So the file is made anew.
                let again = io::Error::new(error.kind(), error.to_string());
                *spare = Spare::Failed { number: new.number, error };
                drop(spare);
                self.order(Job::Make(new.number));
                return Err(again);
            }
            new.bytes = bytes;
        }
        drop(spare);
        self.make_next();
        Ok(new)
    }

    pub(super) fn order(&self, job: Job<D::File>) {
        let left = match &self.thread {
            // The thread ends only with this value, or by a panic.
            Some(worker) => worker.jobs.send(job).err().map(|SendError(job)| job),
            None => Some(job),
        };
        if let Some(job) = left {
            self.shared.execute(job);
        }
    }

    /// Waits for the end of all work, and removes the segment that nobody needs.
    pub(super) fn end(mut self) {
        self.join();
        if let Spare::Made(new) = &*self.shared.spare.lock() {
            let path = segment::path(&self.shared.folder, new.number);
            // If it stays, the next start removes it.
            let _best_effort = self.shared.disk.remove(&path);
        }
    }

    fn make_next(&self) {
        self.order(Job::Make(self.shared.numbers.fetch_add(1, Ordering::Relaxed)));
    }

    /// Without a thread, nothing else tries again.
    fn try_again(&self) {
        if let Some(number) = self.shared.failed()
            && self.thread.is_none()
        {
            self.shared.execute(Job::Make(number));
        }
    }

    fn join(&mut self) {
        if let Some(Worker { jobs, handle }) = self.thread.take() {
            drop(jobs);
            if handle.join().is_err() {
                tracing::error!("the thread that makes segments has panicked");
            }
        }
    }
}

impl<D: Disk> Drop for Ahead<D> {
    /// Waits for the thread. Otherwise it could still write when the directory is unlocked.
    fn drop(&mut self) {
        self.join();
    }
}

impl<D: Disk> Shared<D> {
    fn work(&self, jobs: &Receiver<Job<D::File>>) {
        loop {
            let job = match self.failed() {
                None => jobs.recv().map_err(|_| RecvTimeoutError::Disconnected),
                Some(_) => jobs.recv_timeout(RETRY),
            };
            match (job, self.failed()) {
                (Ok(job), _) => self.execute(job),
                (Err(RecvTimeoutError::Timeout), Some(number)) => self.execute(Job::Make(number)),
                (Err(_), _) => return,
            }
        }
    }

    /// Returns the number of the segment that could not be made.
    fn failed(&self) -> Option<u64> {
        match &*self.spare.lock() {
            Spare::Failed { number, .. } => Some(*number),
            Spare::BeingMade | Spare::Made(_) => None,
        }
    }

    fn execute(&self, job: Job<D::File>) {
        match job {
            Job::Make(number) => self.make(number),
            Job::Finish { full, note } => {
                let finished = full.file.set_bytes(full.end).and_then(|()| note.sync());
                if let Err(error) = finished {
                    tracing::warn!(%error, segment = full.number, "a full segment keeps its zeros");
                }
            }
        }
    }

    fn make(&self, number: u64) {
        let made = segment::make(&self.disk, &self.folder, number, self.bytes);
        let mut spare = self.spare.lock();
        let has_failed = matches!(*spare, Spare::Failed { .. });
        *spare = match made {
            Ok(file) => {
                if has_failed {
                    tracing::info!("the next segment of the log is made");
                }
                Spare::Made(NewFile { number, file, bytes: self.bytes })
            }
            Err(error) => {
                if !has_failed {
                    tracing::error!(%error, "the next segment of the log cannot be made");
                }
                Spare::Failed { number, error }
            }
        };
        self.is_decided.notify_all();
    }
}
