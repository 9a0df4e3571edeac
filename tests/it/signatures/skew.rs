//! What signatures say of this machine's clock.

use std::ops::Range;

use super::{stripe_event, verifying};
use crate::support::{Event, Onceward, Receiver, event, signing};

const SECRET: &str = "whsec_x";
const SKEW: &str = "onceward_clock_skew_suspected{route=\"hooks\"}";
const BEGINS: &str = "clock skew is suspected";
const ENDS: &str = "clock skew is no longer suspected";
const READY: &str = "ready\n";
const WARNED: &str = "ready\nwarning: clock-skew\n";
/// The tolerance of the preset is 5 min. Time passes while the test runs.
const AGE: u32 = 600;
const SLOWNESS: f64 = 60.0;

/// An event that its sender has signed so long ago, as it seems to a clock that is ahead.
fn old(id: &str, secret: &str) -> Event {
    let event = event(id);
    let signature = signing::stripe(secret, signing::now() - u64::from(AGE), &event.body);
    event.header("stripe-signature", &signature)
}

async fn start(receiver: &Receiver, mode: &str) -> Onceward {
    let builder = verifying(receiver, "stripe", SECRET).routes(&format!("mode = \"{mode}\""));
    builder.expects_log(BEGINS).start().await
}

async fn sends_old(onceward: &Onceward, numbers: Range<usize>) {
    for number in numbers {
        let reply = onceward.sends(old(&format!("evt_old_{number}"), SECRET)).await;
        reply.is_refused(401, "signature-stale");
    }
}

async fn readiness(onceward: &Onceward) -> String {
    let reply = onceward.get_admin("/readyz").await;
    assert_eq!(reply.status, 200);
    reply.text()
}

/// Levels and sizes of the lines with this text.
fn told(onceward: &Onceward, text: &str) -> Vec<(String, Option<f64>)> {
    let lines = onceward.log().into_iter();
    let lines = lines.filter(|line| line["message"].as_str().unwrap().starts_with(text));
    lines
        .map(|line| {
            assert_eq!(line["route.name"], "hooks");
            assert_eq!(line["concern"], "clock-skew");
            (line["level"].as_str().unwrap().to_owned(), line["skew_seconds"].as_f64())
        })
        .collect()
}

#[tokio::test]
async fn twenty_right_signatures_of_one_wrong_time_make_the_clock_suspected() {
    let receiver = Receiver::that_answers(200, "ok").await;
    let onceward = start(&receiver, "enforce").await;
    let is_shown = async || {
        let page = onceward.get_admin("/metrics").await.text();
        assert!(page.contains(&format!("{SKEW} ")), "{page}");
    };
    is_shown().await;
    sends_old(&onceward, 0..19).await;
    assert_eq!(onceward.metric(SKEW).await, 0.0);
    assert_eq!(readiness(&onceward).await, READY);

    sends_old(&onceward, 19..20).await;
    let size = onceward.metric(SKEW).await;
    assert!((0.0..SLOWNESS).contains(&(size - f64::from(AGE))), "{size}");
    assert_eq!(readiness(&onceward).await, WARNED);
    onceward.logs(BEGINS).await;

    // The first of the stale ones leaves the window with the 51st signature, the 11th with the
    // 61st.
    for number in 0..41 {
        assert_eq!(readiness(&onceward).await, WARNED, "{number}");
        onceward.sends(stripe_event(&format!("evt_{number}"), SECRET)).await.is_executed(200);
    }
    assert_eq!(onceward.metric(SKEW).await, 0.0);
    assert_eq!(readiness(&onceward).await, READY);
    onceward.logs(ENDS).await;

    let begins = told(&onceward, BEGINS);
    let [(level, Some(logged))] = begins.as_slice() else { panic!("{begins:?}") };
    assert_eq!((level.as_str(), *logged), ("WARN", size));
    let line = onceward.log().into_iter().find(|line| line["concern"] == "clock-skew").unwrap();
    assert!(line["message"].as_str().unwrap().contains(&format!("{size} s ahead of the sender's")));
    assert!(line["hint"].as_str().unwrap().contains("NTP"));
    assert_eq!(told(&onceward, ENDS), [("INFO".to_owned(), None)]);
    receiver.was_called(41);
}

/// Whoever has captured a few requests cannot raise the suspicion with them.
#[tokio::test]
async fn a_captured_request_that_is_sent_again_counts_once() {
    let receiver = Receiver::that_answers(200, "ok").await;
    let onceward = start(&receiver, "enforce").await;
    for _ in 0..6 {
        sends_old(&onceward, 0..19).await;
    }
    assert_eq!(onceward.metric(SKEW).await, 0.0);
    assert_eq!(readiness(&onceward).await, READY);
    sends_old(&onceward, 0..20).await;
    assert!(onceward.metric(SKEW).await > 0.0);
}

/// Whoever does not have the secret neither raises the suspicion nor ends it.
#[tokio::test]
async fn a_forged_signature_says_nothing_of_the_clock() {
    let receiver = Receiver::that_answers(200, "ok").await;
    let onceward = start(&receiver, "enforce").await;
    for number in 0..60 {
        let id = format!("evt_{number}");
        let reply = onceward.sends(old(&id, "whsec_guessed")).await;
        reply.is_refused(401, "signature-invalid");
        onceward.sends(event(&id)).await.is_refused(401, "signature-missing");
    }
    assert_eq!(onceward.metric(SKEW).await, 0.0);
    assert_eq!(readiness(&onceward).await, READY);

    sends_old(&onceward, 0..20).await;
    assert!(onceward.metric(SKEW).await > 0.0);
    for number in 0..60 {
        let now = stripe_event(&format!("evt_{number}"), "whsec_guessed");
        onceward.sends(now).await.is_refused(401, "signature-invalid");
    }
    assert!(onceward.metric(SKEW).await > 0.0);
    assert_eq!(readiness(&onceward).await, WARNED);
    receiver.was_called(0);
}

#[tokio::test]
async fn a_route_that_only_observes_suspects_the_clock_too() {
    let receiver = Receiver::that_answers(200, "ok").await;
    let onceward = start(&receiver, "observe").await;
    for number in 0..20 {
        onceward.sends(old(&format!("evt_{number}"), SECRET)).await.is_passed(200);
    }
    assert!(onceward.metric(SKEW).await > 0.0);
    assert_eq!(readiness(&onceward).await, WARNED);
}
