//! Makes the next segment ahead, on a thread of its own, so that the writer never waits for a new
//! file. The thread also cuts off what a full segment does not need.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use super::disk::{Disk, DiskFile};
use super::segment;
use super::{SEGMENT_BYTES, Segments};
use crate::telemetry::chain;

/// The pause after which a segment that could not be made is tried again.
const RETRY: Duration = Duration::from_secs(1);
/// The longest that the writer waits for a segment that is being made.
const PATIENCE: Duration = Duration::from_secs(1);

/// A segment that is ready, but not used yet.
#[derive(Debug)]
pub(super) struct Prepared {
    pub(super) number: u64,
    pub(super) file: Arc<dyn DiskFile>,
}

enum Job {
    Make { number: u64 },
    CutOff { file: Arc<dyn DiskFile>, end: u64 },
}

/// The thread, and the segment that it makes.
#[derive(Debug)]
pub(super) struct Spare {
    jobs: Option<Sender<Job>>,
    made: Receiver<Prepared>,
    is_failing: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Spare {
    /// Starts the thread, and lets it make a segment with this number.
    pub(super) fn start(segments: &Segments, number: u64) -> io::Result<Self> {
        let (jobs, queue) = mpsc::channel();
        let (ready, made) = mpsc::channel();
        let is_failing = Arc::new(AtomicBool::new(false));
        let maker = Maker {
            disk: Arc::clone(&segments.disk),
            folder: segments.folder.clone(),
            queue,
            ready,
            is_failing: Arc::clone(&is_failing),
        };
        let thread = thread::Builder::new()
            .name("onceward-segment".to_owned())
            .spawn(move || maker.run())?;
        let spare = Self { jobs: Some(jobs), made, is_failing, thread: Some(thread) };
        spare.make(number);
        Ok(spare)
    }

    /// Lets the thread make the next segment.
    pub(super) fn make(&self, number: u64) {
        self.send(Job::Make { number });
    }

    /// Lets the thread cut a full segment off behind its last group.
    pub(super) fn cut_off(&self, file: Arc<dyn DiskFile>, end: u64) {
        self.send(Job::CutOff { file, end });
    }

    fn send(&self, job: Job) {
        // The thread ends only after the sender is gone.
        let _ended = self.jobs.as_ref().map(|jobs| jobs.send(job));
    }

    /// Whether the disk had no room for the segment at the last try.
    pub(super) fn is_failing(&self) -> bool {
        self.is_failing.load(Ordering::Relaxed)
    }

    /// Takes the segment.
    pub(super) fn take(&self) -> io::Result<Prepared> {
        let taken = if self.is_failing() {
            self.made.try_recv().map_err(|_| RecvTimeoutError::Timeout)
        } else {
            self.made.recv_timeout(PATIENCE)
        };
        taken.map_err(|_| io::Error::other("the next segment of the log could not be made"))
    }
}

impl Drop for Spare {
    /// Waits for the thread, so that nothing is written after the store is closed.
    fn drop(&mut self) {
        drop(self.jobs.take());
        if let Some(thread) = self.thread.take() {
            let _panicked = thread.join();
        }
    }
}

struct Maker {
    disk: Arc<dyn Disk>,
    folder: PathBuf,
    queue: Receiver<Job>,
    ready: Sender<Prepared>,
    is_failing: Arc<AtomicBool>,
}

impl Maker {
    fn run(self) {
        let mut number = None;
        loop {
            let job = match number {
                // A segment that could not be made is tried again, and other jobs go on.
                Some(_) => self.queue.recv_timeout(RETRY),
                None => self.queue.recv().map_err(|_| RecvTimeoutError::Disconnected),
            };
            match job {
                Ok(Job::Make { number: next }) => number = Some(next),
                Ok(Job::CutOff { file, end }) => {
                    // If it fails, the file stays longer than it must be.
                    let _longer = file.set_length(end).and_then(|()| file.sync());
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
            number = number.filter(|number| !self.make(*number));
        }
    }

    /// Makes a segment. Returns whether it was made.
    fn make(&self, number: u64) -> bool {
        match prepared(&*self.disk, &self.folder, number) {
            Ok(file) => {
                if self.is_failing.swap(false, Ordering::Relaxed) {
                    tracing::info!("the store's disk has room again");
                }
                self.ready.send(Prepared { number, file }).is_ok()
            }
            Err(error) => {
                if !self.is_failing.swap(true, Ordering::Relaxed) {
                    tracing::error!(
                        error = %chain(&error),
                        "the store's disk has no room for the next segment of the log: no event is \
                         taken until it has"
                    );
                }
                false
            }
        }
    }
}

/// Makes a segment. What was made of one that cannot be completed is removed, to leave its room.
fn prepared(disk: &dyn Disk, folder: &Path, number: u64) -> io::Result<Arc<dyn DiskFile>> {
    segment::prepare(disk, folder, number, SEGMENT_BYTES).inspect_err(|_| {
        let _left = disk.remove(&segment::path(folder, number));
    })
}
