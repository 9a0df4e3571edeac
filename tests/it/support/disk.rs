//! Faults of the disk under a running proxy, made by `strace` between it and the kernel.

use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStderr, Command};
use tokio::time::timeout;

use super::{Onceward, until};

/// A fault that lasts until it is ended.
#[derive(Debug)]
pub struct Fault {
    strace: Child,
    /// Where each write and each sync stands as soon as it has begun.
    seen: PathBuf,
    _says: Lines<BufReader<ChildStderr>>,
}

impl Onceward {
    /// The newest journal of its store.
    pub fn journal(&self) -> PathBuf {
        let journals = std::fs::read_dir(self.directory().join("store/records")).unwrap();
        let journals = journals.map(|entry| entry.unwrap().path());
        let number = |path: &PathBuf| -> Option<u64> {
            let name = path.file_name()?.to_str()?;
            name.strip_suffix(".jnl")?.parse().ok()
        };
        journals.filter(|path| number(path).is_some()).max_by_key(number).unwrap()
    }

    /// The same, without the zeros that it is made with.
    pub fn journal_bytes(&self) -> Vec<u8> {
        let mut bytes = std::fs::read(self.journal()).unwrap();
        bytes.truncate(bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1));
        bytes
    }

    /// Every write to the store's journal fails: there is no room.
    pub async fn has_a_full_disk(&self) -> Fault {
        self.breaks_journals(&["inject=write,pwrite64,writev:error=ENOSPC"]).await
    }

    /// There is room for one more write to the store's journal, and every sync of it takes this
    /// long.
    pub async fn has_a_disk_that_becomes_full(&self, sync_takes: Duration) -> Fault {
        let micros = sync_takes.as_micros();
        let slow = format!("inject=fdatasync,fsync:delay_enter={micros}");
        let full = "inject=write,pwrite64,writev:error=ENOSPC:when=2+";
        self.breaks_journals(&[&slow, full]).await
    }

    async fn breaks_journals(&self, faults: &[&str]) -> Fault {
        let journals = std::fs::read_dir(self.directory().join("store/records")).unwrap();
        let journals: Vec<PathBuf> = journals
            .map(|entry| entry.unwrap().path())
            .filter(|path| path.extension().is_some_and(|extension| extension == "jnl"))
            .collect();
        assert!(!journals.is_empty(), "the store has a journal");
        let mut strace = self.strace(faults);
        for journal in journals {
            strace.arg("-P").arg(journal);
        }
        Fault::begins(strace, self.seen_calls()).await
    }

    /// Every sync of a file fails.
    pub async fn has_a_broken_disk(&self) -> Fault {
        let strace = self.strace(&["inject=fdatasync,fsync:error=EIO"]);
        Fault::begins(strace, self.seen_calls()).await
    }

    /// Every sync of a file takes this long.
    pub async fn has_a_slow_disk(&self, sync_takes: Duration) -> Fault {
        let micros = sync_takes.as_micros();
        let fault = format!("inject=fdatasync,fsync:delay_enter={micros}");
        Fault::begins(self.strace(&[&fault]), self.seen_calls()).await
    }

    fn strace(&self, faults: &[&str]) -> Command {
        let mut strace = Command::new("strace");
        let pid = self.pid().as_raw_nonzero().to_string();
        strace.args(["-f", "-p", &pid, "-e", "trace=fdatasync,fsync,write,pwrite64,writev"]);
        strace.arg("-o").arg(self.seen_calls());
        for fault in faults {
            strace.args(["-e", fault]);
        }
        strace
    }

    fn seen_calls(&self) -> PathBuf {
        self.directory().join("strace")
    }
}

impl Fault {
    async fn begins(mut strace: Command, seen: PathBuf) -> Self {
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
        Self { strace, seen, _says: says }
    }

    /// Waits until a sync has begun. It may take long, or fail.
    pub async fn meets_a_sync(&self) {
        let has_begun = async || {
            let seen = std::fs::read(&self.seen).unwrap_or_default();
            seen.windows(5).any(|found| found == b"sync(")
        };
        until("a sync has begun", has_begun).await;
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
