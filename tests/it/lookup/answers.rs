//! Answers to a look-up that say nothing: the operation stays held.

use super::{Asked, is_held};
use crate::support::{Act, Answer, event};

/// One copy is held after the receiver has answered a look-up like this.
async fn holds_after(answer: impl Fn() -> Act + Send + Sync + 'static, found: &str) {
    let asked = Asked::that(|_, _| Act::Close, move |_, _| answer()).await;
    let lookup = "timeout = \"1s\"\ndone_when = { \"json:/status\" = \"done\" }";
    let onceward = asked.with("attempt_timeout = \"1s\"", lookup).start().await;
    onceward.sends(event("evt_1")).await.is_executed_as("upstream-broken", 502);
    let before = tokio::time::Instant::now();
    is_held(&onceward, &onceward.sends(event("evt_1")).await, found).await;
    assert!(before.elapsed().as_secs() < 10, "a look-up is bounded in time");
    assert_eq!((asked.attempts(), asked.lookups().len()), (1, 1));
    assert!(asked.lookups().iter().all(|seen| seen.target == "/internal/events/evt_1"));
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    let to = || Answer::new(302, "").header("location", "/elsewhere").into();
    holds_after(to, "unknown: answered 302").await;
}

#[tokio::test]
async fn an_error_is_no_finding() {
    for status in [400, 401, 410, 429, 500, 503] {
        let found = format!("unknown: answered {status}");
        holds_after(move || Answer::new(status, r#"{"status":"done"}"#).into(), &found).await;
    }
}

#[tokio::test]
async fn a_slow_answer_is_no_finding() {
    holds_after(|| Act::Hang, "unknown: no answer in time").await;
    let head = || Act::RawThenHang(b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n{".to_vec());
    holds_after(head, "unknown: no answer in time").await;
    let none =
        || Act::RawThenHang(b"HTTP/1.1 404 Not Found\r\ncontent-length: 9\r\n\r\n{".to_vec());
    holds_after(none, "unknown: no answer in time").await;
}

#[tokio::test]
async fn a_huge_answer_is_no_finding() {
    let huge = || Answer::new(200, format!(r#"{{"status":"done","x":"{}"}}"#, "x".repeat(70_000)));
    holds_after(move || huge().into(), "unknown: its answer is too long").await;
    let none = || Answer::new(404, "x".repeat(70_000)).into();
    holds_after(none, "unknown: its answer is too long").await;
}

#[tokio::test]
async fn an_answer_that_breaks_off_is_no_finding() {
    holds_after(|| Act::Close, "unknown: no answer").await;
    holds_after(|| Act::Raw(b"nonsense\r\n\r\n".to_vec()), "unknown: no answer").await;
    let part = b"HTTP/1.1 200 OK\r\ncontent-length: 99\r\n\r\n{\"status\":\"done\"}";
    holds_after(|| Act::Raw(part.to_vec()), "unknown: its answer broke off").await;
    let part = b"HTTP/1.1 404 Not Found\r\ncontent-length: 99\r\n\r\nno such";
    holds_after(|| Act::Raw(part.to_vec()), "unknown: its answer broke off").await;
}

#[tokio::test]
async fn an_answer_that_does_not_say_that_it_is_done_is_no_finding() {
    for body in [
        "",
        "done",
        r#"{"status":"pending"}"#,
        r#"{"status":["done"]}"#,
        r#"{"status":"pending","status":"done"}"#,
    ] {
        let found = "unknown: answered 200, and not that it is done";
        holds_after(move || Answer::new(200, body).into(), found).await;
    }
}

#[tokio::test]
async fn what_a_look_up_sends_along_reaches_the_receiver_and_nobody_else() {
    let asked = Asked::that(|_, _| Act::Close, |_, _| Answer::new(200, "").into()).await;
    let headers = "headers = { authorization = { env = \"LOOKUP_TOKEN\" }, x-plain = \"yes\" }";
    let builder = asked.with("", headers).variable("LOOKUP_TOKEN", "Bearer s3cret");
    let onceward = builder.start().await;
    onceward.sends(event("evt_1")).await.is_executed_as("upstream-broken", 502);
    onceward.sends(event("evt_1")).await.is_replayed(200);
    let [lookup] = &*asked.lookups() else { panic!("{:?}", asked.lookups()) };
    assert_eq!(lookup.header("authorization"), Some("Bearer s3cret"));
    assert_eq!(lookup.header("x-plain"), Some("yes"));
    assert_eq!(lookup.header("x-forwarded-for"), None);
    assert!(!format!("{:?}", onceward.log()).contains("s3cret"), "a secret in the log");
}
