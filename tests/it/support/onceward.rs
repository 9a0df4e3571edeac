//! The proxy as a process of its own.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use reqwest::redirect::Policy;
use serde_json::Value;
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::scraper::{Scraper, metric};
use super::{Event, RawSender, Receiver, Reply};

/// What a process is started with.
#[derive(Debug, Clone)]
pub struct Builder {
    server: String,
    limits: String,
    admin: String,
    store: Option<String>,
    defaults: String,
    routes: String,
    variables: Vec<(&'static str, String)>,
    expected: Vec<&'static str>,
    program: PathBuf,
}

impl Builder {
    /// Settings of `[server]`.
    pub fn server(mut self, toml: &str) -> Self {
        self.server = format!("{}\n{toml}", self.server);
        self
    }

    /// Settings of `[server.limits]`.
    pub fn limits(mut self, toml: &str) -> Self {
        self.limits = format!("{}\n{toml}", self.limits);
        self
    }

    /// Settings of `[admin]`.
    pub fn admin(mut self, toml: &str) -> Self {
        self.admin = format!("{}\n{toml}", self.admin);
        self
    }

    /// Another store than one of its own on disk.
    pub fn store(mut self, toml: &str) -> Self {
        self.store = Some(toml.to_owned());
        self
    }

    /// A store in memory: a short attempt, whose time counts from its claim, loses none of it to a
    /// disk that is busy.
    pub fn in_memory(self) -> Self {
        self.store("[store.memory]").expects_log("the store is in memory")
    }

    /// A variable of the process's environment.
    pub fn variable(mut self, name: &'static str, value: &str) -> Self {
        self.variables.push((name, value.to_owned()));
        self
    }

    /// Settings of `[defaults]` and its tables.
    pub fn defaults(mut self, toml: &str) -> Self {
        self.defaults = format!("{}\n{toml}", self.defaults);
        self
    }

    /// More routes, or tables of the route `hooks`.
    pub fn routes(mut self, toml: &str) -> Self {
        self.routes = format!("{}\n{toml}", self.routes);
        self
    }

    /// A warning or an error with this text is expected in the log; any other one fails the test.
    pub fn expects_log(mut self, text: &'static str) -> Self {
        self.expected.push(text);
        self
    }

    fn toml(&self, directory: &Path) -> String {
        let embedded = || {
            let path = directory.join("store");
            format!("[store.embedded]\npath = \"{}\"", path.display())
        };
        let store = self.store.clone().unwrap_or_else(embedded);
        format!(
            "[server]\nlisten = \"127.0.0.1:0\"\n{}\n[server.limits]\n{}\n\
             [admin]\nlisten = \"127.0.0.1:0\"\n{}\n{store}\n[defaults]\n{}\n{}\n",
            self.server, self.limits, self.admin, self.defaults, self.routes,
        )
    }

    /// Another program than the one that is tested.
    pub fn program(mut self, program: &Path) -> Self {
        program.clone_into(&mut self.program);
        self
    }

    pub async fn start(self) -> Onceward {
        self.start_on(|_| {}).await
    }

    /// The same in a directory that is prepared first; the store on disk is its `store`.
    pub async fn start_on(self, prepare: impl FnOnce(&Path)) -> Onceward {
        let directory = TempDir::new().unwrap();
        prepare(directory.path());
        let file = directory.path().join("onceward.toml");
        std::fs::write(&file, self.toml(directory.path())).unwrap();
        let log: Arc<Mutex<Vec<Value>>> = Arc::default();
        let (child, listening, reading) =
            spawn(serve(&self.program, &file), &self.variables, Arc::clone(&log)).await;
        let [address, admin] = listening;
        let client = client();
        let builder = self;
        let directory = Some(directory);
        let scraper = Scraper::default();
        Onceward { builder, directory, child, address, admin, log, reading, client, scraper }
    }
}

/// A running proxy. When it is dropped its log must hold nothing unexpected.
#[derive(Debug)]
pub struct Onceward {
    builder: Builder,
    directory: Option<TempDir>,
    child: Child,
    pub address: SocketAddr,
    pub admin: SocketAddr,
    log: Arc<Mutex<Vec<Value>>>,
    reading: JoinHandle<()>,
    client: reqwest::Client,
    scraper: Scraper,
}

impl Onceward {
    /// One route `hooks` for `/hooks` and below, to this receiver.
    pub fn in_front_of(receiver: &Receiver) -> Builder {
        Self::in_front_of_url(&receiver.url())
    }

    pub fn in_front_of_url(url: &str) -> Builder {
        // The client of the tests needs it too, and it is installed once for each process.
        let _there_is_one = rustls::crypto::ring::default_provider().install_default();
        Builder {
            server: String::new(),
            limits: String::new(),
            admin: String::new(),
            store: None,
            defaults: String::new(),
            routes: format!("[routes.hooks]\npath = \"/hooks/*\"\nupstream = \"{url}\"\n"),
            variables: Vec::new(),
            expected: Vec::new(),
            program: env!("CARGO_BIN_EXE_onceward").into(),
        }
    }

    /// One route `hooks` to several receivers: each one's name, and further settings of the step.
    pub fn in_front_of_steps(steps: &[(&str, &Receiver, &str)]) -> Builder {
        let one = |(name, receiver, more): &(&str, &Receiver, &str)| {
            let url = receiver.url();
            format!("[[routes.hooks.steps]]\nname = \"{name}\"\nupstream = \"{url}\"\n{more}\n")
        };
        let steps: String = steps.iter().map(one).collect();
        let routes = format!("[routes.hooks]\npath = \"/hooks/*\"\n{steps}");
        Builder { routes, ..Self::in_front_of_url("") }
    }

    /// Sends an event and waits for the answer.
    pub async fn sends(&self, event: Event) -> Reply {
        self.try_sends(event).await.expect("an answer")
    }

    pub async fn try_sends(&self, event: Event) -> Result<Reply, reqwest::Error> {
        send(&self.client, self.address, event).await
    }

    /// Sends copies of an event at the same moment.
    pub async fn sends_copies(&self, event: &Event, copies: usize) -> Vec<Reply> {
        let all = (0..copies).map(|_| self.sends(event.clone()));
        futures_util::future::join_all(all).await
    }

    pub async fn connects(&self) -> RawSender {
        RawSender::connect(self.address).await
    }

    /// What is remembered of an operation; none if nothing is.
    pub async fn operation(&self, id: &str) -> Option<Value> {
        let url = format!("http://{}/api/operations/{id}", self.admin);
        let response = self.client.get(url).send().await.unwrap();
        match response.status().as_u16() {
            200 => Some(serde_json::from_slice(&response.bytes().await.unwrap()).unwrap()),
            404 => None,
            other => panic!("{other}: {}", response.text().await.unwrap()),
        }
    }

    /// The state of an operation that is remembered.
    pub async fn state(&self, id: &str) -> String {
        let operation = self.operation(id).await.expect("it is remembered");
        operation["state"].as_str().unwrap().to_owned()
    }

    /// A line of the metrics, such as `onceward_superseded_total` with its labels; 0 if absent.
    pub async fn metric(&self, line: &str) -> f64 {
        metric(&self.scraper.page(self.admin).await, line)
    }

    /// The most memory that the process has had in use so far.
    pub fn peak_bytes(&self) -> u64 {
        let status = format!("/proc/{}/status", self.pid().as_raw_nonzero());
        let status = std::fs::read_to_string(status).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
        line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() * 1024
    }

    pub async fn get_admin(&self, path: &str) -> Reply {
        self.get_admin_with(path, &[]).await
    }

    /// Asks the admin listener with these headers.
    pub async fn get_admin_with(&self, path: &str, headers: &[(&str, &str)]) -> Reply {
        let mut request = self.client.get(format!("http://{}{path}", self.admin));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        Reply::of(request.send().await.unwrap()).await
    }

    pub fn log(&self) -> Vec<Value> {
        self.log.lock().unwrap().clone()
    }

    pub fn directory(&self) -> PathBuf {
        self.directory.as_ref().unwrap().path().to_owned()
    }

    pub fn config_file(&self) -> PathBuf {
        self.directory().join("onceward.toml")
    }

    pub fn pid(&self) -> rustix::process::Pid {
        let pid = self.child.id().expect("it runs");
        rustix::process::Pid::from_raw(pid.try_into().unwrap()).unwrap()
    }

    pub fn signal(&self, signal: rustix::process::Signal) {
        rustix::process::kill_process(self.pid(), signal).unwrap();
    }

    /// `kill -9`.
    pub async fn is_killed(&mut self) {
        self.child.kill().await.unwrap();
    }

    /// Waits until the process has ended by itself.
    pub async fn ends(&mut self) -> ExitStatus {
        let ended = timeout(Duration::from_mins(1), self.child.wait()).await;
        ended.expect("it ends").unwrap()
    }

    /// A process on the same directory, for one that must not start, or not live for long.
    pub fn another(&self) -> Command {
        serve(&self.builder.program, &self.config_file())
    }

    /// Starts a new process on the same directory, after the old one has ended.
    pub async fn starts_again(&mut self) {
        self.starts_again_with(&[]).await;
    }

    /// The same with further arguments.
    pub async fn starts_again_with(&mut self, arguments: &[&str]) {
        let mut command = self.another();
        command.args(arguments);
        let (child, [address, admin], reading) =
            spawn(command, &self.builder.variables, Arc::clone(&self.log)).await;
        (self.child, self.address, self.admin, self.reading) = (child, address, admin, reading);
        self.scraper = Scraper::default();
    }

    fn unexpected(&self) -> Vec<Value> {
        let expected = |line: &Value| {
            let text = line.to_string();
            self.builder.expected.iter().any(|expected| text.contains(expected))
        };
        let serious =
            |line: &&Value| matches!(line["level"].as_str(), Some("WARN" | "ERROR") | None);
        self.log().iter().filter(serious).filter(|line| !expected(line)).cloned().collect()
    }
}

impl Drop for Onceward {
    #[expect(clippy::print_stdout, reason = "the test runner shows it where it helps")]
    fn drop(&mut self) {
        let _ended_before = self.child.start_kill();
        if std::thread::panicking() {
            println!("the log of the proxy: {:#?}", self.log());
        } else {
            let unexpected = self.unexpected();
            assert!(unexpected.is_empty(), "unexpected in the log: {unexpected:#?}");
        }
    }
}

/// A sender that does nothing by itself.
pub fn client() -> reqwest::Client {
    // It is installed once for each process.
    let _there_is_one = rustls::crypto::ring::default_provider().install_default();
    reqwest::Client::builder()
        .no_proxy()
        .redirect(Policy::none())
        .retry(reqwest::retry::never())
        .build()
        .unwrap()
}

pub async fn send(
    client: &reqwest::Client,
    address: SocketAddr,
    event: Event,
) -> Result<Reply, reqwest::Error> {
    let url = format!("http://{address}{}", event.path);
    let mut request = client.request(event.method.parse().unwrap(), url).body(event.body);
    for (name, value) in event.headers {
        request = request.header(name, value);
    }
    Ok(Reply::of(request.send().await?).await)
}

fn serve(program: &Path, file: &Path) -> Command {
    let mut command = Command::new(program);
    command
        .args(["serve", "--log-format", "json", "--config"])
        .arg(file)
        .stderr(Stdio::piped())
        .stdout(Stdio::null())
        .kill_on_drop(true);
    command
}

/// Starts a process and waits until it serves.
async fn spawn(
    mut command: Command,
    variables: &[(&'static str, String)],
    log: Arc<Mutex<Vec<Value>>>,
) -> (Child, [SocketAddr; 2], JoinHandle<()>) {
    let mut child =
        command.envs(variables.iter().map(|(name, value)| (name, value))).spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let (serving, served) = tokio::sync::oneshot::channel();
    let reading = tokio::spawn(async move {
        let mut serving = Some(serving);
        while let Ok(Some(line)) = lines.next_line().await {
            let parsed = serde_json::from_str(&line).unwrap_or(Value::String(line));
            if parsed["message"] == "serving"
                && let Some(serving) = serving.take()
            {
                let address = |name: &str| parsed[name].as_str().unwrap().parse().unwrap();
                let _test_ended = serving.send([address("listen"), address("admin")]);
            }
            log.lock().unwrap().push(parsed);
        }
    });
    match timeout(Duration::from_secs(30), served).await {
        Ok(Ok(addresses)) => (child, addresses, reading),
        Ok(Err(_)) | Err(_) => panic!("the proxy does not serve"),
    }
}
