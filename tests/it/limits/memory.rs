//! However a stranger goes about it, the process stays within its memory.

use futures_util::future::join_all;

use super::{KIB, big, reached};
use crate::support::http2::{Http2Sender, LAST_KEPT, field, kept_field, post};
use crate::support::{Onceward, Receiver, event};

const MIB: u64 = 1 << 20;
/// What the process may take beside its budget.
const BESIDE: u64 = 100 * MIB;

/// The bodies never end, so nothing of them is verified, stored or forwarded.
#[tokio::test]
async fn bodies_that_do_not_end_stay_within_the_memory() {
    const BUDGET: u64 = 128 * MIB;
    const BODY: usize = 530_000;
    let receiver = Receiver::that_answers(200, "ok").await;
    let limits = "buffered_bytes_max = \"128MiB\"\nbody_timeout = \"120s\"";
    let onceward = Onceward::in_front_of(&receiver).limits(limits).start().await;
    let upload = |number: usize| {
        let onceward = &onceward;
        async move {
            let mut sender = onceward.connects().await;
            let raw = if number.is_multiple_of(2) {
                big("declared", BODY).raw()
            } else {
                super::chunked(&big("chunked", BODY))
            };
            sender.writes(&raw[..raw.len() - 1]).await;
            sender
        }
    };
    let senders = join_all((0..400).map(upload)).await;
    onceward.comes_to_count(&reached("buffered_bytes_max"), 1.0).await;
    onceward.comes_to_rest().await;
    let peak = onceward.peak_bytes();
    assert!(peak < BUDGET + BESIDE, "{} MiB", peak / MIB);
    receiver.was_called(0);
    drop(senders);
    onceward.comes_down_to("onceward_buffered_bytes", 0.0).await;
    onceward.sends(event("evt_after")).await.is_executed(200);
}

/// Each field is one byte on the wire, and a hundred in memory.
#[tokio::test]
async fn heads_of_many_small_fields_stay_within_the_memory() {
    const BUDGET: u64 = 64 * MIB;
    let receiver = Receiver::that_answers(200, "ok").await;
    let limits = "buffered_bytes_max = \"64MiB\"\nbody_timeout = \"120s\"";
    for fields in [1_700, 240, 30_000] {
        let onceward = Onceward::in_front_of(&receiver).limits(limits).start().await;
        let floods = |_| {
            let address = onceward.address;
            async move {
                let mut sender = Http2Sender::connects(address, 1 << 16).await;
                for stream in 0..100 {
                    let mut block = post("/hooks");
                    if stream == 0 {
                        block.extend(kept_field("a", "b"));
                    }
                    block.extend(std::iter::repeat_n(LAST_KEPT, fields));
                    sender.asks(&block, None).await;
                }
                sender
            }
        };
        let senders = join_all((0..40).map(floods)).await;
        onceward.comes_to_rest().await;
        let peak = onceward.peak_bytes();
        assert!(peak < BUDGET + BESIDE, "{fields} fields: {} MiB", peak / MIB);
        drop(senders);
        onceward.comes_down_to("onceward_buffered_bytes", 0.0).await;
        onceward.sends(event("evt_after")).await;
    }
}

/// A head whose end does not come is in memory too, on both versions of HTTP.
#[tokio::test]
async fn heads_that_do_not_end_stay_within_the_memory() {
    const BUDGET: u64 = 16 * MIB;
    let receiver = Receiver::that_answers(200, "ok").await;
    let limits = "buffered_bytes_max = \"16MiB\"\nheader_timeout = \"120s\"\n\
                  header_bytes_max = \"1MiB\"\nconnections_max = 2000";
    let onceward = Onceward::in_front_of(&receiver).limits(limits).start().await;
    let begins = |number: usize| {
        let address = onceward.address;
        async move {
            if number.is_multiple_of(2) {
                let mut sender = Http2Sender::connects(address, 1 << 16).await;
                sender
                    .begins_to_ask(
                        &[post("/hooks"), field("x-long", &"v".repeat(300 * KIB))].concat(),
                    )
                    .await;
                return Box::new(sender) as Box<dyn std::any::Any>;
            }
            let mut sender = crate::support::RawSender::connect(address).await;
            let head =
                format!("POST /hooks HTTP/1.1\r\nhost: h\r\nx-long: {}", "v".repeat(300 * KIB));
            sender.tries_to_write(head.as_bytes()).await;
            Box::new(sender)
        }
    };
    let senders = join_all((0..400).map(begins)).await;
    onceward.comes_to_count(&reached("buffered_bytes_max"), 1.0).await;
    onceward.comes_to_rest().await;
    let peak = onceward.peak_bytes();
    assert!(peak < BUDGET + BESIDE, "{} MiB", peak / MIB);
    drop(senders);
    onceward.comes_down_to("onceward_buffered_bytes", 0.0).await;
    onceward.sends(event("evt_after")).await.is_executed(200);
}

/// Copies that only wait for an attempt, and those that are refused, need no request for its steps.
#[tokio::test]
async fn heads_of_events_with_many_steps_stay_within_the_memory() {
    const BUDGET: u64 = 64 * MIB;
    const FIELDS: usize = 4_000;
    // It reads no head of so many fields, so it never answers.
    let receiver = Receiver::that_answers(200, "ok").await;
    let steps: Vec<String> = (0..16).map(|number| format!("step-{number}")).collect();
    let steps: Vec<_> = steps.iter().map(|name| (name.as_str(), &receiver, "")).collect();
    for at_once in [false, true] {
        let limits = "buffered_bytes_max = \"64MiB\"\nheader_lines_max = 5000";
        let defaults = "when_in_flight = \"wait\"\nwaiters_max = 1000";
        let defaults = format!("{defaults}\nsteps_at_once = {at_once}");
        let builder = Onceward::in_front_of_steps(&steps).limits(limits).defaults(&defaults);
        let onceward = builder.start().await;
        let event = (0..FIELDS)
            .fold(event("evt"), |event, number| event.header(&format!("x-{number}"), "v"));
        let raw = event.raw();
        let mut senders = Vec::new();
        for _ in 0..60 {
            let mut sender = onceward.connects().await;
            sender.writes(&raw).await;
            senders.push(sender);
        }
        onceward.comes_to_count(&reached("buffered_bytes_max"), 1.0).await;
        onceward.comes_to_rest().await;
        let peak = onceward.peak_bytes();
        assert!(peak < BUDGET + BESIDE, "at once: {at_once}: {} MiB", peak / MIB);
        assert_eq!(senders.len(), 60);
    }
}
