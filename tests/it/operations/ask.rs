//! On a terminal, a person is asked first.

use std::process::Stdio;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::Command;

use super::{HELD, before_forgetful, held, masked};
use crate::support::{Onceward, Receiver, event};

/// Types a command on a terminal, and an answer to its question. What is on the screen, and the
/// exit status.
async fn types_on_a_terminal(
    onceward: &Onceward,
    line: &str,
    answer: &str,
) -> (String, Option<i32>) {
    let onceward_at = env!("CARGO_BIN_EXE_onceward");
    let mut script = Command::new("script");
    script
        .args(["--quiet", "--return", "--echo", "never", "--command"])
        .arg(format!("{onceward_at} operations {line}"))
        .arg("/dev/null")
        .env("ONCEWARD_ADMIN_URL", format!("http://{}", onceward.admin))
        .env("USER", "ann")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .kill_on_drop(true);
    let mut terminal = script.spawn().unwrap();
    let (mut keyboard, mut screen) =
        (terminal.stdin.take().unwrap(), terminal.stdout.take().unwrap());
    let mut shown = Vec::new();
    while !shown.ends_with(b"[y/N] ") {
        let mut chunk = [0; 1024];
        let read = screen.read(&mut chunk).await.unwrap();
        assert_ne!(read, 0, "nothing was asked: {}", String::from_utf8_lossy(&shown));
        shown.extend_from_slice(&chunk[..read]);
    }
    keyboard.write_all(answer.as_bytes()).await.unwrap();
    screen.read_to_end(&mut shown).await.unwrap();
    let status = terminal.wait().await.unwrap().code();
    (String::from_utf8(shown).unwrap().replace("\r\n", "\n"), status)
}

#[tokio::test]
async fn what_would_be_done_is_shown_and_only_a_yes_does_it() {
    let (_receiver, onceward) = before_forgetful().await;
    let id = held(&onceward, "e").await;
    let line = format!("resolve {id} --outcome succeeded --reason seen");
    for answer in ["n\n", "\n", "yess\n"] {
        let (screen, status) = types_on_a_terminal(&onceward, &line, answer).await;
        let screen = masked(&onceward, &screen);
        insta::allow_duplicates!(insta::assert_snapshot!(screen, @"
        op_4877c7ed7894b94d2d85dcab8125a873 on route `hooks`, created TIME, is uncertain; attempt 1: sent, connection-lost
        key: hooks e payment.paid (event)
        to be resolved as succeeded: later copies get an empty 200
        reason: seen
        Go on? [y/N] error: nothing was changed
        "));
        assert_eq!(status, Some(1));
        assert_eq!(onceward.state(&id).await, "uncertain");
    }
    let (screen, status) = types_on_a_terminal(&onceward, &line, "y\n").await;
    assert!(screen.ends_with(&format!("{id} is resolved as succeeded\n")), "{screen}");
    assert_eq!(status, Some(0));
    onceward.sends(event("e")).await.is_replayed(200);

    let line = format!("forget {id} --reason mistake");
    let (screen, status) = types_on_a_terminal(&onceward, &line, "yes\n").await;
    insta::assert_snapshot!(masked(&onceward, &screen), @"
    op_4877c7ed7894b94d2d85dcab8125a873 on route `hooks`, created TIME, is succeeded; attempt 1: sent, connection-lost
    key: hooks e payment.paid (event)
    to be forgotten: the next copy is a new attempt
    danger: the upstream has done it: the next copy does it again
    reason: mistake
    Go on? [y/N] op_4877c7ed7894b94d2d85dcab8125a873 is forgotten
    ");
    assert_eq!(status, Some(0));
    onceward.sends(event("e")).await.is_executed(200);
}

/// What is set free may run twice: that is said before anybody says yes.
#[tokio::test]
async fn the_key_and_the_danger_are_shown_before_an_operation_is_set_free() {
    let (_receiver, onceward) = before_forgetful().await;
    let id = held(&onceward, "e").await;
    for line in [
        format!("resolve {id} --outcome failed --reason down"),
        format!("forget {id} --reason down"),
    ] {
        let (screen, status) = types_on_a_terminal(&onceward, &line, "n\n").await;
        assert_eq!(status, Some(1));
        let (shown, _) = screen.split_once("Go on?").unwrap();
        assert!(shown.contains("key: hooks e payment.paid (event)"), "{screen}");
        assert!(shown.contains("danger: the upstream may have done it"), "{screen}");
    }
}

#[tokio::test]
async fn many_are_shown_before_a_person_is_asked() {
    let (_receiver, onceward) = before_forgetful().await;
    let id = held(&onceward, "e").await;
    let line = "resolve --all-of-route hooks --state uncertain --before 0s --outcome failed \
                --reason down";
    let (screen, status) = types_on_a_terminal(&onceward, line, "n\n").await;
    assert!(screen.contains(&id) && screen.contains("1 operation to be resolved as failed"));
    assert!(screen.contains("danger: "), "{screen}");
    assert_eq!((status, &*onceward.state(&id).await), (Some(1), "uncertain"));
    let (_, status) = types_on_a_terminal(&onceward, line, "y\n").await;
    assert_eq!((status, &*onceward.state(&id).await), (Some(0), "failed"));
}

/// An answer that is too long to be kept is none that copies can get.
#[tokio::test]
async fn of_a_stored_answer_no_more_is_promised_than_is_there() {
    let receiver = Receiver::that_answers(202, "twelve bytes").await;
    for (kept, promised) in [
        ("12B", "later copies get the stored answer, status 202"),
        ("11B", "later copies get an empty 200"),
    ] {
        let outcome = format!(
            "[defaults.outcome]\nsucceeded = [\"200\"]\nuncertain = [\"202\"]\n\
             [defaults.replay]\nbody_bytes_max = \"{kept}\""
        );
        let builder = Onceward::in_front_of(&receiver).defaults(&outcome).expects_log(HELD);
        let onceward = builder.start().await;
        let id = onceward.sends(event("e")).await.is_executed(202).operation();
        let line = format!("resolve {id} --outcome succeeded --reason seen");
        let (screen, status) = types_on_a_terminal(&onceward, &line, "y\n").await;
        assert!(screen.contains(promised), "{screen}");
        assert_eq!(status, Some(0));
        let copy = onceward.sends(event("e")).await;
        let is_stored =
            copy.is_replayed(if kept == "12B" { 202 } else { 200 }).body == b"twelve bytes";
        assert_eq!(is_stored, kept == "12B");
    }
}
