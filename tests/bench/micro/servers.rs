//! Servers for the shared stores. Each has a free port, and ends with its owner.

use std::fs::{self, File};
use std::net::TcpListener;
use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, getuid, kill_process};
use tempfile::TempDir;

/// A server that was started. It may not be ready yet.
#[derive(Debug)]
pub(crate) struct Server {
    pub(crate) port: u16,
    process: Child,
    directory: TempDir,
}

impl Server {
    /// One that syncs what it acknowledges, as the page about Redis asks for.
    pub(crate) fn redis(program: &Path) -> Self {
        let (directory, port) = (tempfile::tempdir().unwrap(), free_port());
        let mut command = Command::new(program);
        command.args(["--port", &port.to_string(), "--bind", "127.0.0.1", "--save", ""]);
        command.args(["--appendonly", "yes", "--appendfsync", "always"]);
        command.arg("--dir").arg(directory.path());
        Self::start(command, directory, port)
    }

    /// One with the settings that PostgreSQL has from the start.
    pub(crate) fn postgres(program: &Path) -> Self {
        let (directory, port) = (tempfile::tempdir().unwrap(), free_port());
        let data = directory.path().join("data");
        let user = User::of_postgres();
        if let Some(User { uid, gid }) = user {
            chown(directory.path(), Some(uid), Some(gid)).unwrap();
        }
        let mut initdb = User::command(user, &program.with_file_name("initdb"));
        initdb.args(["--auth", "trust", "--username", "onceward", "--no-locale"]);
        let made = initdb.args(["--encoding", "UTF8", "--pgdata"]).arg(&data).output().unwrap();
        assert!(made.status.success(), "{made:?}");
        let mut command = User::command(user, program);
        command.arg("-D").arg(data).args(["-p", &port.to_string(), "-h", "127.0.0.1", "-k", ""]);
        Self::start(command, directory, port)
    }

    fn start(mut command: Command, directory: TempDir, port: u16) -> Self {
        let log = File::create(directory.path().join("log")).unwrap();
        command.stdin(Stdio::null()).stdout(log.try_clone().unwrap()).stderr(log);
        let process = command.spawn().unwrap();
        Self { port, process, directory }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let log = fs::read_to_string(self.directory.path().join("log"));
            println!("the server says:\n{}", log.unwrap_or_default());
        }
        // Both servers end their connections and themselves on this signal.
        let _has_ended = kill_process(Pid::from_child(&self.process), Signal::INT);
        let _has_ended = self.process.wait();
    }
}

/// Whom PostgreSQL runs as. It refuses to run as root.
#[derive(Debug, Clone, Copy)]
struct User {
    uid: u32,
    gid: u32,
}

impl User {
    /// None: whoever runs the benchmark.
    fn of_postgres() -> Option<Self> {
        if !getuid().is_root() {
            return None;
        }
        let users = fs::read_to_string("/etc/passwd").unwrap();
        let user = users.lines().find(|line| line.starts_with("postgres:")).unwrap();
        let mut ids = user.split(':').skip(2).map(|id| id.parse().unwrap());
        Some(Self { uid: ids.next().unwrap(), gid: ids.next().unwrap() })
    }

    fn command(user: Option<Self>, program: &Path) -> Command {
        let mut command = Command::new(program);
        // It may not be allowed to be where the benchmark is.
        command.current_dir("/").env("LC_ALL", "C");
        if let Some(Self { uid, gid }) = user {
            command.uid(uid).gid(gid);
        }
        command
    }
}

/// Where a program is, if it is installed. Debian keeps every version of PostgreSQL in a directory
/// of its own.
pub(crate) fn installed(program: &str) -> Option<PathBuf> {
    let of_debian = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let mut of_debian: Vec<_> = of_debian.map(|version| version.path().join("bin")).collect();
    of_debian.sort();
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = of_debian.into_iter().rev().chain(std::env::split_paths(&path));
    folders.map(|folder| folder.join(program)).find(|path| path.is_file())
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}
