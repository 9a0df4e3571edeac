//! Faults of the disk under a running proxy, made by `strace` between it and the kernel.

use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStderr, Command};
use tokio::time::timeout;

use super::Onceward;

/// A fault that lasts until it is ended.
#[derive(Debug)]
pub struct Fault {
    strace: Child,
    _says: Lines<BufReader<ChildStderr>>,
}

impl Onceward {
    /// The directory of its store.
    pub fn store(&self) -> PathBuf {
        self.directory().join("store")
    }

    /// Every write to the store's log fails: there is no room.
    pub async fn has_a_full_disk(&self) -> Fault {
        self.breaks_the_log(&["inject=write,pwrite64,writev:error=ENOSPC"]).await
    }

    /// There is room for one more write to the store's log, and every sync of it takes this long.
    pub async fn has_a_disk_that_becomes_full(&self, sync_takes: Duration) -> Fault {
        let micros = sync_takes.as_micros();
        let slow = format!("inject=fdatasync,fsync:delay_enter={micros}");
        let full = "inject=write,pwrite64,writev:error=ENOSPC:when=2+";
        self.breaks_the_log(&[&slow, full]).await
    }

    async fn breaks_the_log(&self, faults: &[&str]) -> Fault {
        let files = std::fs::read_dir(self.store().join("log")).unwrap();
        let segments: Vec<PathBuf> = files
            .map(|entry| entry.unwrap().path())
            .filter(|path| path.extension().is_some_and(|extension| extension == "log"))
            .collect();
        assert!(!segments.is_empty(), "the store has a log");
        let mut strace = self.strace(faults);
        for segment in segments {
            strace.arg("-P").arg(segment);
        }
        Fault::begins(strace).await
    }

    /// Every sync of a file fails.
    pub async fn has_a_broken_disk(&self) -> Fault {
        Fault::begins(self.strace(&["inject=fdatasync,fsync:error=EIO"])).await
    }

    /// Every sync of a file takes this long.
    pub async fn has_a_slow_disk(&self, sync_takes: Duration) -> Fault {
        let micros = sync_takes.as_micros();
        let fault = format!("inject=fdatasync,fsync:delay_enter={micros}");
        Fault::begins(self.strace(&[&fault])).await
    }

    fn strace(&self, faults: &[&str]) -> Command {
        let mut strace = Command::new("strace");
        let pid = self.pid().as_raw_nonzero().to_string();
        strace.args(["-f", "-p", &pid, "-o", "/dev/null"]);
        for fault in faults {
            strace.args(["-e", fault]);
        }
        strace
    }
}

impl Fault {
    async fn begins(mut strace: Command) -> Self {
        let strace = strace.stdout(Stdio::null()).stderr(Stdio::piped()).kill_on_drop(true);
        let mut strace = strace.spawn().expect("`strace` is installed");
        let mut says = BufReader::new(strace.stderr.take().unwrap()).lines();
        let attached = async {
            let mut all = Vec::new();
            while let Some(line) = says.next_line().await.unwrap() {
                if line.contains("attached") {
                    return;
                }
                all.push(line);
            }
            panic!("strace cannot attach: {all:?}");
        };
        timeout(Duration::from_secs(20), attached).await.expect("strace attaches");
        Self { strace, _says: says }
    }

    /// The disk works again.
    pub async fn ends(mut self) {
        let pid = self.strace.id().expect("it runs").try_into().unwrap();
        let pid = rustix::process::Pid::from_raw(pid).unwrap();
        // Unlike a kill, this lets it detach.
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
        let ended = timeout(Duration::from_secs(20), self.strace.wait()).await;
        ended.expect("strace ends").unwrap();
    }
}
