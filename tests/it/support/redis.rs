//! Real Redis servers, on free ports, with their data in directories that go with them.

use std::net::TcpListener;
use std::path::Path;
use std::process::Stdio;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::Duration;

use onceward::secret::Secret;
use onceward::store::redis::{Mode, Settings};
use onceward::store::{Certificates, WhenEmptied};
use redis::Value;
use redis::aio::MultiplexedConnection;
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;
use tokio::net::TcpStream;
use tokio::process::{Child, Command};
use tokio::time::timeout;

use super::{PATIENCE, ServerClock, until};

/// Somebody else may take a port between the look at it and the start of a server.
const STARTS_MAX: usize = 20;

/// A server. It is killed when it is dropped.
#[derive(Debug)]
pub struct RedisServer {
    pub port: u16,
    program: &'static str,
    directory: TempDir,
    arguments: Vec<String>,
    clock: Option<ServerClock>,
    process: Child,
}

/// A port that nobody listens on, and that no connection of anybody's begins at by chance.
pub fn free_port() -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let process = u16::try_from(std::process::id() % 200).unwrap();
    loop {
        let next = NEXT.fetch_add(1, Ordering::Relaxed) % 20_000;
        let port = 10_000 + (process * 100 + next) % 20_000;
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
}

impl RedisServer {
    /// One that keeps nothing on disk.
    pub async fn start() -> Self {
        Self::start_with(&[]).await
    }

    /// One whose time the test moves.
    pub async fn start_on(clock: ServerClock) -> Self {
        Self::launch("redis-server", free_port(), &[], Some(clock)).await
    }

    /// One with further arguments.
    pub async fn start_with(arguments: &[&str]) -> Self {
        for _ in 0..STARTS_MAX {
            let started = Self::try_launch("redis-server", free_port(), arguments, None);
            if let Some(server) = started.await {
                return server;
            }
        }
        panic!("no server starts with {arguments:?}");
    }

    /// Another program, on a port, with the arguments of a server.
    pub async fn launch(
        program: &'static str,
        port: u16,
        arguments: &[&str],
        clock: Option<ServerClock>,
    ) -> Self {
        let started = Self::try_launch(program, port, arguments, clock).await;
        started.expect("it starts, and does not end")
    }

    async fn try_launch(
        program: &'static str,
        port: u16,
        arguments: &[&str],
        clock: Option<ServerClock>,
    ) -> Option<Self> {
        let directory = TempDir::new().unwrap();
        let mut all: Vec<String> = arguments.iter().map(|&argument| argument.into()).collect();
        if !arguments.contains(&"--port") {
            all.extend(["--port".to_owned(), port.to_string()]);
        }
        if program == "redis-server" && !arguments.contains(&"--save") {
            all.extend(["--save".to_owned(), String::new()]);
        }
        let process = run(program, directory.path(), &all, clock.as_ref());
        let mut server = Self { port, program, directory, arguments: all, clock, process };
        server.is_up().await.then_some(server)
    }

    /// Its clock.
    pub fn clock(&self) -> &ServerClock {
        self.clock.as_ref().expect("the server was started on a clock")
    }

    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    /// How a store uses this server.
    pub fn settings(&self) -> Settings {
        settings(&[&self.url()])
    }

    /// Waits until it accepts connections. Whether it does; else it has ended.
    async fn is_up(&mut self) -> bool {
        let address = ("127.0.0.1", self.port);
        let process = Mutex::new(&mut self.process);
        let has_ended = || process.lock().unwrap().try_wait().unwrap().is_some();
        until("the server is up", async || {
            has_ended() || TcpStream::connect(address).await.is_ok()
        })
        .await;
        !has_ended()
    }

    /// A connection of the test's own.
    pub async fn connection(&self) -> MultiplexedConnection {
        let client = redis::Client::open(self.url()).unwrap();
        client.get_multiplexed_async_connection().await.unwrap()
    }

    /// Has the server do something.
    pub async fn does(&self, command: &str) -> Value {
        self.tries(command).await.unwrap_or_else(|error| panic!("`{command}`: {error}"))
    }

    /// The same, if it can.
    pub async fn tries(&self, command: &str) -> redis::RedisResult<Value> {
        let mut words = command.split(' ');
        let mut asked = redis::cmd(words.next().unwrap());
        words.for_each(|word| {
            asked.arg(word);
        });
        asked.query_async(&mut self.connection().await).await
    }

    /// The same, read as text.
    pub async fn tells(&self, command: &str) -> String {
        redis::from_redis_value(self.does(command).await).unwrap()
    }

    /// How often the server was asked for a command, those inside scripts included.
    pub async fn calls(&self, command: &str) -> u64 {
        let stats = self.tells("INFO commandstats").await;
        let start = format!("cmdstat_{command}:calls=");
        let line = stats.lines().find_map(|line| line.strip_prefix(&start));
        line.map_or(0, |line| line.split(',').next().unwrap().parse().unwrap())
    }

    fn signal(&self, signal: Signal) {
        let pid = i32::try_from(self.process.id().expect("it runs")).unwrap();
        kill_process(Pid::from_raw(pid).unwrap(), signal).unwrap();
    }

    /// It does nothing until it goes on; its connections stay.
    pub fn pauses(&self) {
        self.signal(Signal::STOP);
    }

    pub fn goes_on(&self) {
        self.signal(Signal::CONT);
    }

    /// It dies at once.
    pub async fn dies(&mut self) {
        self.process.kill().await.unwrap();
    }

    /// It ends as if it were asked to.
    pub async fn shuts_down(&mut self) {
        self.signal(Signal::TERM);
        timeout(PATIENCE, self.process.wait()).await.expect("the server ends").unwrap();
    }

    /// It runs again, on the same port and data.
    pub async fn comes_back(&mut self) {
        let (program, directory) = (self.program, self.directory.path());
        self.process = run(program, directory, &self.arguments, self.clock.as_ref());
        assert!(self.is_up().await, "it ended; see its log");
    }
}

impl Drop for RedisServer {
    fn drop(&mut self) {
        // a stopped process is killed as well; `kill_on_drop` reaps it
        let _gone = self.process.start_kill();
    }
}

/// How a store uses these servers.
pub fn settings(urls: &[&str]) -> Settings {
    Settings {
        urls: urls.iter().map(|&url| Secret::new(url.to_owned())).collect(),
        mode: Mode::Single,
        prefix: "onceward".to_owned(),
        replica_acks: 0,
        timeout: Duration::from_secs(2),
        username: None,
        password: None,
        certificates: Certificates::default(),
        when_emptied: WhenEmptied::Continue,
    }
}

fn run(
    program: &str,
    directory: &Path,
    arguments: &[String],
    clock: Option<&ServerClock>,
) -> Child {
    let mut command = Command::new(program);
    command.args(arguments).arg("--dir").arg(directory);
    command.envs(clock.map(ServerClock::envs).into_iter().flatten());
    let log = std::fs::File::create(directory.join("log")).unwrap();
    command.stdout(log).stderr(Stdio::null()).kill_on_drop(true);
    command.spawn().expect("redis is installed")
}
