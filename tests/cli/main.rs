//! Runs the commands as an operator does, and looks at output, exit status and files.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on must end")]

mod check;
mod explain;
mod serve;
mod usage;
mod written;

use std::io::{BufRead as _, BufReader, Read as _};
use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;

/// A directory in which commands are run, and their environment variables.
struct Shell {
    directory: TempDir,
    variables: Vec<(String, String)>,
}

/// The result of a command.
struct Ended {
    stdout: String,
    stderr: String,
    status: Option<i32>,
}

impl Shell {
    fn new() -> Self {
        Self { directory: tempfile::tempdir().unwrap(), variables: Vec::new() }
    }

    fn with(file: &str, text: &str) -> Self {
        Self::new().and(file, text)
    }

    fn and(self, file: &str, text: &str) -> Self {
        std::fs::write(self.path().join(file), text).unwrap();
        self
    }

    fn variable(mut self, name: &str, value: &str) -> Self {
        self.variables.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Both listeners on ports that the system chooses.
    fn anywhere(self) -> Self {
        self.variable("ONCEWARD_SERVER__LISTEN", "127.0.0.1:0")
            .variable("ONCEWARD_ADMIN__LISTEN", "127.0.0.1:0")
    }

    fn path(&self) -> &Path {
        self.directory.path()
    }

    fn command(&self, line: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_onceward"));
        command.args(line.split_whitespace()).current_dir(self.path()).stdin(Stdio::null());
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("ONCEWARD_") {
                command.env_remove(name);
            }
        }
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        command
    }

    /// Runs a command, and waits until it ends by itself.
    fn types(&self, line: &str) -> Ended {
        let output = self.command(line).output().unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        Ended {
            stdout: text(output.stdout),
            stderr: text(output.stderr),
            status: output.status.code(),
        }
    }

    /// Runs a command that serves, and waits until it does.
    fn serves(&self, line: &str) -> Serving {
        let mut command = self.command(line);
        command.args(["--log-format", "json"]).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut serving = Serving { child: command.spawn().unwrap(), said: None };
        let mut stderr = BufReader::new(serving.child.stderr.take().unwrap());
        let line = loop {
            let mut line = String::new();
            assert_ne!(stderr.read_line(&mut line).unwrap(), 0, "it does not serve");
            if line.contains("\"message\":\"serving\"") {
                break line;
            }
        };
        let rest = std::thread::spawn(move || {
            let mut rest = String::new();
            stderr.read_to_string(&mut rest).unwrap();
            rest
        });
        serving.said = Some((serde_json::from_str(&line).unwrap(), rest));
        serving
    }
}

impl Ended {
    #[track_caller]
    fn printed(self, status: i32) -> String {
        assert_eq!(self.status, Some(status), "{}{}", self.stdout, self.stderr);
        assert_eq!(self.stderr, "");
        self.stdout
    }

    #[track_caller]
    fn complained(self, status: i32) -> String {
        assert_eq!(self.status, Some(status), "{}{}", self.stdout, self.stderr);
        assert_eq!(self.stdout, "");
        self.stderr
    }
}

/// A process that serves. It is killed when this value is dropped.
struct Serving {
    child: Child,
    /// The log line that says that it serves, and the rest of the log once it has ended.
    said: Option<(Value, JoinHandle<String>)>,
}

impl Serving {
    fn listen(&self) -> SocketAddr {
        self.address("listen")
    }

    fn admin(&self) -> SocketAddr {
        self.address("admin")
    }

    fn address(&self, name: &str) -> SocketAddr {
        let (serving, _) = self.said.as_ref().unwrap();
        serving[name].as_str().unwrap().parse().unwrap()
    }

    /// Ends the process with a signal. Gives its exit status and its log since it began to serve.
    fn ends_by(mut self, signal: Signal) -> (Option<i32>, String) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
        let (_, rest) = self.said.take().unwrap();
        (self.child.wait().unwrap().code(), rest.join().unwrap())
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        let _ended_before = self.child.kill();
        let _reaped = self.child.wait();
    }
}

/// Sends a request. Gives the status of the answer and one of its headers.
fn ask(to: SocketAddr, request: &str, header: &str) -> (u16, Option<String>) {
    use std::io::Write as _;
    let mut stream = std::net::TcpStream::connect(to).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut lines = BufReader::new(stream).lines().map(Result::unwrap);
    let status = lines.next().unwrap()["HTTP/1.1 ".len()..][..3].parse().unwrap();
    let mut head = lines.take_while(|line| !line.is_empty());
    let name = format!("{header}: ");
    let value = head.find_map(|line| line.strip_prefix(&name).map(str::to_owned));
    (status, value)
}

fn get(to: SocketAddr, path: &str) -> u16 {
    ask(to, &format!("GET {path} HTTP/1.1\r\nhost: {to}\r\n\r\n"), "date").0
}

/// An upstream that answers every request with 200.
fn receiver() -> SocketAddr {
    use std::io::Write as _;
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            std::thread::spawn(move || {
                let mut bytes = [0; 4096];
                while stream.read(&mut bytes).is_ok_and(|read| read > 0) {
                    let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";
                    if stream.write_all(answer).is_err() {
                        return;
                    }
                }
            });
        }
    });
    address
}

/// A route with all that `check` wants of one.
const SIGNED: &str = "[routes.orders]\npath = \"/orders\"\nupstream = \"http://127.0.0.1:3000\"\n\
    provider = \"acme\"\nsecrets = [{ file = \"secret\" }]\nkey.header = []\nkey.event.type = \"json:/type\"\n[providers.acme]\n\
    signature = { scheme = \"hmac\", header = \"x-acme\" }\n";

const ROUTE: &str = "[routes.orders]\npath = \"/orders\"\nupstream = \"http://127.0.0.1:3000\"\n";
