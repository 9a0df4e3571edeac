//! A PostgreSQL server of a test's own, and PgBouncer in front of it.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, OnceLock, mpsc};
use std::time::Duration;

use rustix::process::{Pid, Signal, getuid, kill_process};
use tempfile::TempDir;
use tokio_postgres::{Client, NoTls, Row};

use super::{ServerClock, free_port, until};

/// The password of the server's user; nothing may ever show it.
pub const PASSWORD: &str = "hunter2-of-the-database";

const PATIENCE: Duration = Duration::from_mins(1);

/// A running server. It ends with its owner.
#[derive(Debug)]
pub struct PostgresServer {
    directory: TempDir,
    pub port: u16,
    process: Process,
    options: Vec<String>,
    clock: Option<ServerClock>,
}

impl PostgresServer {
    pub fn start() -> Self {
        Self::with(&[])
    }

    /// One with these settings.
    pub fn with(settings: &[&str]) -> Self {
        Self::new(settings, None)
    }

    /// One whose time the test moves.
    pub fn with_clock() -> Self {
        Self::new(&["fsync=off"], Some(ServerClock::start()))
    }

    fn new(settings: &[&str], clock: Option<ServerClock>) -> Self {
        let directory = copy_of_template();
        let options = settings.iter().map(ToString::to_string).collect();
        Self::on_free_port(directory, options, clock)
    }

    /// Somebody else may take the port between the look and the start.
    fn on_free_port(directory: TempDir, options: Vec<String>, clock: Option<ServerClock>) -> Self {
        for _ in 0..20 {
            let port = free_port();
            if let Some(process) = spawn(directory.path(), port, &options, clock.as_ref()) {
                return Self { directory, port, process, options, clock };
            }
        }
        panic!("no server starts");
    }

    /// A standby of it.
    pub async fn standby(&self) -> Self {
        let directory = TempDir::new().unwrap();
        give(directory.path());
        let mut backup = as_postgres(program("pg_basebackup"));
        backup.args(["-R", "-X", "stream", "-c", "fast", "-d", &self.url(), "-D"]);
        let made = backup.arg(directory.path().join("data")).output().unwrap();
        assert!(made.status.success(), "{made:?}");
        let standby = Self::on_free_port(directory, self.options.clone(), None);
        let client = self.client().await;
        let streams = "SELECT count(*) FROM pg_stat_replication WHERE state = 'streaming'";
        until("the standby streams", async || {
            client.query_one(streams, &[]).await.unwrap().get::<_, i64>(0) > 0
        })
        .await;
        standby
    }

    pub fn clock(&self) -> &ServerClock {
        self.clock.as_ref().unwrap()
    }

    /// Where it is, with user and password.
    pub fn url(&self) -> String {
        url(self.port)
    }

    /// A connection to look behind the scenes.
    pub async fn client(&self) -> Client {
        let (client, connection) = tokio_postgres::connect(&self.url(), NoTls).await.unwrap();
        tokio::spawn(connection);
        client
    }

    /// Statements behind the scenes.
    pub async fn execute(&self, statements: &str) {
        self.client().await.batch_execute(statements).await.unwrap();
    }

    /// One row behind the scenes.
    pub async fn row(&self, statement: &str) -> Row {
        self.client().await.query_one(statement, &[]).await.unwrap()
    }

    /// Every line of its log that holds this.
    pub fn logged(&self, text: &str) -> usize {
        self.process.log.lock().unwrap().iter().filter(|line| line.contains(text)).count()
    }

    /// It ends at once, as by a crash.
    pub fn crashes(&mut self) {
        self.process.signal_all(Signal::KILL);
        self.process.child.wait().unwrap();
    }

    /// It ends as by its service's stop.
    pub fn stops(&mut self) {
        self.process.signal(Signal::INT);
        self.process.child.wait().unwrap();
    }

    /// It starts again where it was. As long as a session of one that has crashed is not quite
    /// gone, its memory is in use and no other one starts.
    pub fn starts_again(&mut self) {
        for _ in 0..600 {
            let _pid_of_a_crashed_one = fs::remove_file(self.data().join("postmaster.pid"));
            let (directory, clock) = (self.directory.path(), self.clock.as_ref());
            if let Some(process) = spawn(directory, self.port, &self.options, clock) {
                self.process = process;
                return;
            }
        }
        panic!("it does not start again");
    }

    /// It starts again without anything of before.
    pub fn starts_again_empty(&mut self) {
        fs::remove_dir_all(self.data()).unwrap();
        copy(&template().join("data"), &self.data());
        self.starts_again();
    }

    /// It stands still with all its sessions.
    pub fn pauses(&self) {
        self.process.signal_all(Signal::STOP);
    }

    pub fn goes_on(&self) {
        self.process.signal_all(Signal::CONT);
    }

    fn data(&self) -> PathBuf {
        self.directory.path().join("data")
    }
}

impl Drop for PostgresServer {
    fn drop(&mut self) {
        self.process.signal_all(Signal::CONT);
        self.process.signal(Signal::QUIT);
    }
}

/// PgBouncer in transaction mode. It ends with its owner.
#[derive(Debug)]
pub struct PgBouncer {
    pub port: u16,
    _process: Process,
    _directory: TempDir,
}

impl PgBouncer {
    pub fn before(server: &PostgresServer) -> Self {
        for _ in 0..20 {
            let (port, directory) = (free_port(), TempDir::new().unwrap());
            let users = directory.path().join("users");
            fs::write(&users, format!("\"onceward\" \"{PASSWORD}\"\n")).unwrap();
            let file = directory.path().join("pgbouncer.ini");
            let ini = format!(
                "[databases]\n* = host=127.0.0.1 port={}\n[pgbouncer]\nlisten_addr = 127.0.0.1\n\
                 listen_port = {port}\nunix_socket_dir =\nauth_type = scram-sha-256\n\
                 auth_file = {}\npool_mode = transaction\ndefault_pool_size = 4\n",
                server.port,
                users.display(),
            );
            fs::write(&file, ini).unwrap();
            give(directory.path());
            let mut command = as_postgres("/usr/sbin/pgbouncer");
            command.arg(&file);
            if let Some(process) = Process::start(command, "process up") {
                return Self { port, _process: process, _directory: directory };
            }
        }
        panic!("no pgbouncer starts");
    }

    pub fn url(&self) -> String {
        url(self.port)
    }
}

fn url(port: u16) -> String {
    format!("postgres://onceward:{PASSWORD}@127.0.0.1:{port}/postgres")
}

/// A process that has said that it is ready. It is killed with its owner.
#[derive(Debug)]
struct Process {
    child: Child,
    log: Arc<Mutex<Vec<String>>>,
}

impl Process {
    /// None if it ends before it is ready.
    fn start(mut command: Command, ready: &'static str) -> Option<Self> {
        let command = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("it is installed");
        let (lines, log) = (BufReader::new(child.stderr.take().unwrap()).lines(), Arc::default());
        let (says, is_ready) = mpsc::channel();
        let process = Self { child, log: Arc::clone(&log) };
        std::thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                if line.contains(ready) {
                    let _nobody_waits = says.send(());
                }
                let mut log: std::sync::MutexGuard<'_, Vec<String>> = log.lock().unwrap();
                log.push(line);
            }
        });
        is_ready.recv_timeout(PATIENCE).ok().map(|()| process)
    }

    fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    fn signal(&self, signal: Signal) {
        let _has_ended = kill_process(self.pid(), signal);
    }

    /// Sessions are processes too.
    fn signal_all(&self, signal: Signal) {
        let pid = self.pid().as_raw_nonzero();
        let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"));
        // first, so that it starts no more
        self.signal(signal);
        for child in children.unwrap_or_default().split_whitespace() {
            let child = Pid::from_raw(child.parse().unwrap()).unwrap();
            let _has_ended = kill_process(child, signal);
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let log = self.log.lock().unwrap();
            let errors = log.iter().filter(|line| !line.contains("LOG: "));
            let errors = errors.cloned().collect::<Vec<_>>().join("\n");
            let _nobody_reads = writeln!(std::io::stderr(), "the server says:\n{errors}");
        }
        self.signal(Signal::QUIT);
        for _ in 0..200 {
            if self.child.try_wait().is_ok_and(|ended| ended.is_some()) {
                return;
            }
            // What is dropped cannot await: it looks again and again, with an end.
            #[expect(clippy::disallowed_methods, reason = "it is given time to end its sessions")]
            std::thread::sleep(Duration::from_millis(10));
        }
        self.signal_all(Signal::KILL);
        let _has_ended = self.child.wait();
    }
}

fn spawn(
    directory: &Path,
    port: u16,
    options: &[String],
    clock: Option<&ServerClock>,
) -> Option<Process> {
    let mut command = as_postgres(program("postgres"));
    command.arg("-D").arg(directory.join("data")).arg("-k").arg(directory);
    let fixed = [
        format!("port={port}"),
        "listen_addresses=127.0.0.1".to_owned(),
        "shared_buffers=16MB".to_owned(),
        "max_connections=60".to_owned(),
        "autovacuum=off".to_owned(),
        "lc_messages=C".to_owned(),
    ];
    for option in fixed.iter().chain(options) {
        command.arg("-c").arg(option);
    }
    if let Some(clock) = clock {
        let [(preload, shim), (page, time)] = clock.envs();
        // the server's user may not see where the tests are built
        let own = directory.join("clock.so");
        fs::copy(shim, &own).unwrap();
        for (name, file) in [(preload, own), (page, time)] {
            fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
            command.env(name, file);
        }
    }
    Process::start(command, "ready to accept")
}

/// A new data directory, made once and kept: a copy takes a tenth of the time.
fn template() -> &'static Path {
    static TEMPLATE: OnceLock<PathBuf> = OnceLock::new();
    TEMPLATE.get_or_init(|| {
        let initdb = program("initdb");
        let version = initdb.iter().rev().nth(2).unwrap_or_default().to_string_lossy();
        let kept = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("postgresql-{version}"));
        if !kept.exists() {
            make_template(&initdb, &kept);
        }
        kept
    })
}

fn make_template(initdb: &Path, kept: &Path) {
    let directory = TempDir::new().unwrap();
    fs::write(directory.path().join("password"), PASSWORD).unwrap();
    give(directory.path());
    let mut initdb = as_postgres(initdb);
    initdb.args(["-A", "scram-sha-256", "-U", "onceward", "-E", "UTF8", "--no-locale", "-N"]);
    initdb.arg("--wal-segsize=1").arg("--pwfile").arg(directory.path().join("password"));
    initdb.arg("-D").arg(directory.path().join("data"));
    let made = initdb.output().expect("PostgreSQL is installed");
    assert!(made.status.success(), "{made:?}");
    let new = TempDir::new_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let whole = new.path().join("whole");
    fs::create_dir(&whole).unwrap();
    copy(&directory.path().join("data"), &whole.join("data"));
    // another process may have been first
    let _there_is_one = fs::rename(whole, kept);
}

fn copy_of_template() -> TempDir {
    let directory = TempDir::new().unwrap();
    give(directory.path());
    copy(&template().join("data"), &directory.path().join("data"));
    directory
}

fn copy(from: &Path, to: &Path) {
    let status = Command::new("cp").arg("-a").args([from, to]).status().unwrap();
    assert!(status.success());
}

/// The server does not run as root.
pub(super) fn as_postgres(program: impl AsRef<std::ffi::OsStr>) -> Command {
    let mut command = Command::new(program);
    command.current_dir("/").env("LC_ALL", "C");
    if let Some((uid, gid)) = postgres_user() {
        command.uid(uid).gid(gid);
    }
    command
}

/// Lets the server's user have a file or a directory.
pub fn give(path: &Path) {
    if let Some((uid, gid)) = postgres_user() {
        chown(path, Some(uid), Some(gid)).unwrap();
    }
}

/// Whom the server runs as, if not as the test.
fn postgres_user() -> Option<(u32, u32)> {
    if !getuid().is_root() {
        return None;
    }
    let users = fs::read_to_string("/etc/passwd").unwrap();
    let user = users.lines().find(|line| line.starts_with("postgres:")).unwrap();
    let mut fields = user.split(':').skip(2).map(|field| field.parse().unwrap());
    Some((fields.next().unwrap(), fields.next().unwrap()))
}

/// Debian keeps every version in a directory of its own.
pub fn program(name: &str) -> PathBuf {
    let versions = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let programs = versions.map(|version| version.path().join("bin").join(name));
    programs.filter(|path| path.exists()).max().unwrap_or_else(|| name.into())
}
