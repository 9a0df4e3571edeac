//! What a newcomer sees first is what was promised.

#![expect(clippy::unwrap_used, reason = "a test ends where something is not as it should be")]

use std::path::Path;
use std::process::{Output, Stdio};
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::Command;
use tokio::time::timeout;

/// Far more than the show takes; it hangs if it takes so long.
const HANGS: Duration = Duration::from_mins(1);

/// A burst, a failure that is not kept, and a sender that gives up are among them.
#[tokio::test]
async fn the_demo_shows_what_is_promised() {
    let directory = tempfile::tempdir().unwrap();
    let demo = demo(directory.path()).arg("--once").output();
    let Output { status, stdout, stderr } = timeout(HANGS, demo).await.unwrap().unwrap();

    let stdout = without_counts(&without_ports(&String::from_utf8(stdout).unwrap()));
    insta::assert_snapshot!(stdout, @r"
    A receiver on http://127.0.0.1:PORT counts what it gets. In front of it stands
    the proxy on http://127.0.0.1:PORT, which remembers on disk what was done.
    Senders send each event several times.

    1. A duplicate
       Stripe sends an event again. Its key: id and type in the body.
       copy 1          200 from the receiver
       copy 2          200 with Idempotent-Replayed: true
       2 copies sent, the receiver counted 1: as promised

    2. A redelivery by hand
       Somebody presses GitHub's button, twice. Its key: header X-GitHub-Delivery.
       copy 1          200 from the receiver
       copy 2          200 with Idempotent-Replayed: true
       copy 3          200 with Idempotent-Replayed: true
       3 copies sent, the receiver counted 1: as promised

    3. Eight copies at once
       One is forwarded; Shopify's route lets the others wait for its outcome.
       copy 1          200 from the receiver
       copies 2 to 8   200 with Idempotent-Replayed: true
       8 copies sent, the receiver counted 1: as promised

    4. A receiver that fails first
       A failure is not remembered: PayPal's next copy is a new attempt.
       copy 1          503 from the receiver
       copy 2          200 from the receiver
       copy 3          200 with Idempotent-Replayed: true
       3 copies sent, the receiver counted 2: as promised

    5. A receiver that takes longer than the sender waits
       It takes 12 s; Adyen gives up after 10 s. Then, in this show, a copy comes every 250 ms.
       It began with scene 1: please wait.
       copy 1          no answer for 10 s: the sender gives up
       copies 2 to N   503 in flight, with Retry-After
       copy N+1        200 with Idempotent-Replayed: true
       N+1 copies sent, the receiver counted 1: as promised
    ");
    assert_eq!(String::from_utf8(stderr).unwrap(), "");
    assert_eq!(status.code(), Some(0));
    assert_eq!(left_in(directory.path()), 0);
}

/// The slow receiver still has most of its 12 s before it.
#[tokio::test]
async fn an_interrupt_ends_the_demo_early_and_leaves_nothing_behind() {
    let directory = tempfile::tempdir().unwrap();
    let mut demo = demo(directory.path());
    let mut demo = demo.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut lines = BufReader::new(demo.stdout.take().unwrap()).lines();
    while !lines.next_line().await.unwrap().unwrap().starts_with("5. ") {}

    let interrupt = format!("kill -INT {}", demo.id().unwrap());
    assert!(Command::new("sh").args(["-c", &interrupt]).status().await.unwrap().success());
    let status = timeout(Duration::from_secs(8), demo.wait()).await.unwrap().unwrap();
    assert_eq!(status.code(), Some(0));
    assert_eq!(left_in(directory.path()), 0);
}

fn demo(directory: &Path) -> Command {
    let mut demo = Command::new(env!("CARGO_BIN_EXE_onceward"));
    demo.arg("demo").env("TMPDIR", directory).env_remove("ONCEWARD_LOG").kill_on_drop(true);
    demo
}

/// How many copies there is time for in the last scene depends on the machine. What is counted there
/// has to fit together all the same.
fn without_counts(text: &str) -> String {
    let title = "5. A receiver";
    let (before, scene) = text.split_once(title).unwrap();
    let line = scene.lines().find(|line| line.contains(" in flight")).unwrap();
    let copies = line.split("503").next().unwrap().trim();
    let last: usize = copies.rsplit(' ').next().unwrap().parse().unwrap();
    let next = last + 1;
    let scene = scene
        .replace(&format!("{copies:<14}"), "copies 2 to N ")
        .replace(&format!("{:<14}", format!("copy {next}")), "copy N+1      ")
        .replace(&format!("{next} copies sent"), "N+1 copies sent");
    format!("{before}{title}{scene}")
}

fn left_in(directory: &Path) -> usize {
    std::fs::read_dir(directory).unwrap().count()
}

fn without_ports(text: &str) -> String {
    let mut parts = text.split("127.0.0.1:");
    let first = parts.next().unwrap_or_default().to_owned();
    let digit = |c: char| c.is_ascii_digit();
    parts.fold(first, |text, part| text + "127.0.0.1:PORT" + part.trim_start_matches(digit))
}
