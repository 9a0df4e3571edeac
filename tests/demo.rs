//! `onceward demo`, which a newcomer runs first, shows what is promised.

#![expect(clippy::unwrap_used, reason = "a test ends where something is not as it should be")]

use std::path::Path;
use std::process::{Output, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::process::{Child, Command};
use tokio::time::timeout;

/// Far longer than the demo takes. A demo that takes longer hangs.
const HANGS: Duration = Duration::from_mins(1);

/// Among the scenes are a burst, a failure that is not remembered, a sender that gives up, and an
/// operation that a person decides about.
#[tokio::test]
async fn the_demo_shows_what_is_promised() {
    let directory = tempfile::tempdir().unwrap();
    let demo = demo(directory.path()).arg("--once").output();
    let Output { status, stdout, stderr } = timeout(HANGS, demo).await.unwrap().unwrap();

    let stdout = String::from_utf8(stdout).unwrap();
    let stdout = without_ids(&without_counts(&without_ports(&stdout)));
    insta::assert_snapshot!(stdout, @r"
    An upstream on http://127.0.0.1:PORT counts the events that it gets. In front of it
    stands the proxy on http://127.0.0.1:PORT, which remembers on disk what was done.
    Senders send each event several times.

    1. A duplicate
       Stripe sends an event again. Its key: id and type in the body.
       copy 1          200 from the upstream
       copy 2          200 with Idempotent-Replayed: true
       2 copies sent, the upstream counted 1: as promised

    2. A redelivery by hand
       Somebody presses GitHub's button, twice. Its key: header X-GitHub-Delivery.
       copy 1          200 from the upstream
       copy 2          200 with Idempotent-Replayed: true
       copy 3          200 with Idempotent-Replayed: true
       3 copies sent, the upstream counted 1: as promised

    3. Eight copies at once
       One is forwarded; Shopify's route lets the others wait for its outcome.
       copy 1          200 from the upstream
       copies 2 to 8   200 with Idempotent-Replayed: true
       8 copies sent, the upstream counted 1: as promised

    4. An upstream that fails first
       A failure is not remembered: PayPal's next copy is a new attempt.
       copy 1          503 from the upstream
       copy 2          200 from the upstream
       copy 3          200 with Idempotent-Replayed: true
       3 copies sent, the upstream counted 2: as promised

    5. An upstream that takes longer than the sender waits
       It takes 12 s; Adyen gives up after 10 s. Then, in this show, a copy comes every 250 ms.
       It began with scene 1: please wait.
       copy 1          no answer for 10 s: the sender gives up
       copies 2 to N   503 in flight, with Retry-After
       copy N+1        200 with Idempotent-Replayed: true
       N+1 copies sent, the upstream counted 1: as promised

    6. An upstream that takes an event and never answers
       Was the transfer made? Nobody knows, so it is held: not sent again until a person decides.
       copy 1          504, no answer from the upstream in time
       copy 2          503 uncertain, with Retry-After

       A person finds the transfer in the ledger, and types:
       onceward operations resolve OPERATION --outcome succeeded --reason 'found in the ledger' --admin http://127.0.0.1:PORT
       OPERATION is resolved as succeeded

       copy 3          200 with Idempotent-Replayed: true
       3 copies sent, the upstream counted 1: as promised
    ");
    assert_eq!(String::from_utf8(stderr).unwrap(), "");
    assert_eq!(status.code(), Some(0));
    assert_eq!(left_in(directory.path()), 0);
}

/// The upstream works on the slow event for 12 s unless it is told to stop, so an earlier answer
/// shows that it was.
#[tokio::test]
async fn an_interrupt_ends_the_demo_early_and_leaves_nothing_behind() {
    let directory = tempfile::tempdir().unwrap();
    let mut demo = demo(directory.path());
    let demo = demo.args(["--log", "info"]).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut demo = demo.spawn().unwrap();
    let mut lines = BufReader::new(demo.stdout.take().unwrap()).lines();
    let introduction = lines.next_line().await.unwrap().unwrap();
    let upstream = introduction.split("http://").nth(1).unwrap().split(' ').next().unwrap();
    let has_slow_event = async { while !counts(upstream).await.contains(SLOW_EVENT) {} };
    timeout(HANGS, has_slow_event).await.unwrap();

    interrupt(&demo);
    let Output { status, stderr, .. } =
        timeout(HANGS, demo.wait_with_output()).await.unwrap().unwrap();
    let log = String::from_utf8(stderr).unwrap();
    assert_eq!(status.code(), Some(0), "{log}");
    let answered = log.lines().find(|line| line.contains("path=/webhooks/adyen")).unwrap();
    let took = answered.split("duration_ms=").nth(1).unwrap().split(' ').next().unwrap();
    assert!(took.parse::<u64>().unwrap() < 12_000, "{answered}");
    assert_eq!(left_in(directory.path()), 0);
}

/// The id of the event of the fifth scene, which is sent beside the others from the beginning.
const SLOW_EVENT: &str = "NC6HT9CRT65ZGN82";

/// The events that the upstream at this address has counted.
async fn counts(upstream: &str) -> String {
    let mut connection = TcpStream::connect(upstream).await.unwrap();
    connection.write_all(b"GET /count HTTP/1.0\r\n\r\n").await.unwrap();
    let mut counts = String::new();
    connection.read_to_string(&mut counts).await.unwrap();
    counts
}

/// Whoever copies the commands that the demo prints may do so after it has ended.
#[tokio::test]
async fn the_configuration_that_the_demo_names_can_be_used_after_its_end() {
    let directory = tempfile::tempdir().unwrap();
    let mut demo = demo(directory.path());
    let mut demo = demo.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut lines = BufReader::new(demo.stdout.take().unwrap()).lines();
    let check = async {
        loop {
            let line = lines.next_line().await.unwrap().unwrap();
            if let Some(arguments) = line.strip_prefix("onceward check ") {
                return arguments.to_owned();
            }
        }
    };
    let arguments = timeout(HANGS, check).await.unwrap();
    interrupt(&demo);
    assert_eq!(timeout(HANGS, demo.wait()).await.unwrap().unwrap().code(), Some(0));

    let mut check = Command::new(env!("CARGO_BIN_EXE_onceward"));
    let check = check.arg("check").args(arguments.split(' ')).current_dir(directory.path());
    let Output { status, stdout, .. } = check.output().await.unwrap();
    let stdout = String::from_utf8(stdout).unwrap();
    assert_eq!(status.code(), Some(0), "{stdout}");
    assert!(stdout.contains(": no problems, "), "{stdout}");
    // The file is left, and nothing of the store.
    assert_eq!(left_in(directory.path()), 1);
}

fn demo(directory: &Path) -> Command {
    let mut demo = Command::new(env!("CARGO_BIN_EXE_onceward"));
    demo.arg("demo").env("TMPDIR", directory).env_remove("ONCEWARD_LOG").kill_on_drop(true);
    demo
}

/// How many copies there is time for in the fifth scene depends on the machine. The counts in it
/// have to agree with each other all the same.
fn without_counts(text: &str) -> String {
    let (before, rest) = text.split_once("\n5. ").unwrap();
    let (scene, after) = rest.split_once("\n6. ").unwrap();
    let line = scene.lines().find(|line| line.contains(" in flight")).unwrap();
    let copies = line.split("503").next().unwrap().trim();
    let last: usize = copies.rsplit(' ').next().unwrap().parse().unwrap();
    let next = last + 1;
    let scene = scene
        .replace(&format!("{copies:<14}"), "copies 2 to N ")
        .replace(&format!("{:<14}", format!("copy {next}")), "copy N+1      ")
        .replace(&format!("{next} copies sent"), "N+1 copies sent");
    format!("{before}\n5. {scene}\n6. {after}")
}

fn interrupt(demo: &Child) {
    let pid = Pid::from_raw(demo.id().unwrap().try_into().unwrap()).unwrap();
    kill_process(pid, Signal::INT).unwrap();
}

/// The operation id in the sixth scene says nothing to a reader.
fn without_ids(text: &str) -> String {
    let id = text.split_whitespace().find(|word| word.starts_with("op_")).unwrap();
    assert_eq!(id.len(), "op_".len() + 32, "{id}");
    text.replace(id, "OPERATION")
}

/// How many files and directories there are.
fn left_in(directory: &Path) -> usize {
    std::fs::read_dir(directory).unwrap().count()
}

fn without_ports(text: &str) -> String {
    let mut parts = text.split("127.0.0.1:");
    let first = parts.next().unwrap_or_default().to_owned();
    let digit = |c: char| c.is_ascii_digit();
    parts.fold(first, |text, part| text + "127.0.0.1:PORT" + part.trim_start_matches(digit))
}
