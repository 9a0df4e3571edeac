//! A person decides: the operator's API and commands.

mod access;
mod ask;
mod commands;
mod decide;
mod hostile;
mod list;
mod many;

use std::process::Stdio;

use serde_json::{Value, json};
use tokio::process::Command;

use crate::support::{Act, Answer, Event, Onceward, Receiver, Reply, a_later_millisecond, event};

/// What the log says of an operation that became uncertain.
const HELD: &str = "nobody knows whether the operation was done";

/// A receiver that hangs up on the first copy of an event, and does every later one. An event that
/// says it is fine is done at once.
async fn forgetful() -> Receiver {
    Receiver::that(|seen, copies| {
        let fine = seen.body.windows(4).any(|found| found == b"fine");
        if copies == 0 && !fine { Act::Close } else { Answer::new(200, "again").into() }
    })
    .await
}

/// A proxy in front of one.
async fn before_forgetful() -> (Receiver, Onceward) {
    let receiver = forgetful().await;
    let onceward = Onceward::in_front_of(&receiver).expects_log(HELD).start().await;
    (receiver, onceward)
}

/// An event that has become uncertain: its operation, which is older than what is sent after it.
async fn held(onceward: &Onceward, id: &str) -> String {
    let held = onceward.sends(event(id)).await.is_executed_as("upstream-broken", 502).operation();
    a_later_millisecond().await;
    held
}

/// Calls the admin listener.
async fn calls(onceward: &Onceward, method: &str, path: &str, body: Option<Value>) -> Reply {
    let headers = [("content-type", "application/json")];
    let body = body.map(|body| body.to_string());
    calls_with(onceward, method, path, &headers, body.unwrap_or_default()).await
}

async fn calls_with(
    onceward: &Onceward,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: impl Into<reqwest::Body>,
) -> Reply {
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let url = format!("http://{}{path}", onceward.admin);
    let mut request = client.request(method.parse().unwrap(), url).body(body);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    Reply::of(request.send().await.unwrap()).await
}

async fn resolves(onceward: &Onceward, id: &str, body: Value) -> Reply {
    calls(onceward, "POST", &format!("/api/operations/{id}/resolve"), Some(body)).await
}

async fn forgets(onceward: &Onceward, id: &str, body: Value) -> Reply {
    calls(onceward, "DELETE", &format!("/api/operations/{id}"), Some(body)).await
}

/// What the answer says, and that it is a success.
#[track_caller]
fn told(reply: &Reply) -> Value {
    assert_eq!(reply.status, 200, "{reply:?}");
    serde_json::from_slice(&reply.body).unwrap()
}

#[track_caller]
fn is_problem(reply: &Reply, status: u16, code: &str) -> Value {
    let problem = reply.problem();
    let expected = (status, json!(format!("urn:onceward:problem:{code}")));
    assert_eq!((reply.status, problem["type"].clone()), expected, "{problem}");
    problem
}

/// The decisions about an operation: who, what and why.
async fn decisions(onceward: &Onceward, id: &str) -> Vec<[String; 3]> {
    let operation = onceward.operation(id).await.unwrap();
    let decisions = operation["decisions"].as_array().unwrap().iter();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    decisions.map(|found| ["by", "decision", "reason"].map(|name| text(&found[name]))).collect()
}

/// What a command came to.
#[derive(Debug)]
struct Typed {
    stdout: String,
    stderr: String,
    status: Option<i32>,
}

/// A command of the operator Ann, who has no terminal.
fn command(onceward: &Onceward, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_onceward"));
    command.arg("operations").args(args).stdin(Stdio::null()).kill_on_drop(true);
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("ONCEWARD_") {
            command.env_remove(name);
        }
    }
    command.env("ONCEWARD_ADMIN_URL", format!("http://{}", onceward.admin)).env("USER", "ann");
    command
}

async fn types(onceward: &Onceward, args: &[&str]) -> Typed {
    ends(command(onceward, args)).await
}

async fn ends(mut command: Command) -> Typed {
    let output = command.output().await.unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    Typed { stdout: text(output.stdout), stderr: text(output.stderr), status: output.status.code() }
}

impl Typed {
    #[track_caller]
    fn printed(self) -> String {
        assert_eq!((self.status, &*self.stderr), (Some(0), ""), "{}", self.stdout);
        self.stdout
    }

    #[track_caller]
    fn complained(self, status: i32) -> String {
        assert_eq!((self.status, &*self.stdout), (Some(status), ""), "{}", self.stderr);
        self.stderr
    }
}

/// Text with a word for each time and for the process, and columns that do not depend on them.
fn masked(onceward: &Onceward, text: &str) -> String {
    let word = |word: &str| {
        let (bare, comma) = word.strip_suffix(',').map_or((word, ""), |bare| (bare, ","));
        if bare.parse::<jiff::Timestamp>().is_ok() {
            format!("TIME{comma}")
        } else if word.ends_with(|end: char| end.is_ascii_hexdigit())
            && word.contains(&format!("-{}-", onceward.pid().as_raw_nonzero()))
        {
            "HOLDER".to_owned()
        } else {
            word.replace(&onceward.admin.to_string(), "ADMIN")
        }
    };
    let line = |line: &str| {
        let columns = line.split("  ").map(str::trim).filter(|column| !column.is_empty());
        let words = |column: &str| column.split(' ').map(word).collect::<Vec<_>>().join(" ");
        let indent = if line.starts_with("  ") { "  " } else { "" };
        format!("{indent}{}", columns.map(words).collect::<Vec<_>>().join("  "))
    };
    text.lines().map(line).collect::<Vec<_>>().join("\n")
}

/// An event whose key is in a header, so that its fingerprint is over the body.
fn keyed(key: &str, body: &str) -> Event {
    Event::bytes(body).keyed(key)
}
