//! A copy that waits learns of the end, whichever process records it.

use std::time::Duration;

use tokio::join;
use tokio::time::Instant;

use super::server::Server;
use super::{on_every_server, two_patient_proxies};
use crate::support::{Gate, Receiver, event};

on_every_server! {
    a_copy_that_waits_elsewhere_gets_the_answer_within_50_ms
}

const CLAIMS: &str = "onceward_store_duration_seconds_count{call=\"claim\"}";

/// The median of twenty: on a busy machine some are late.
async fn a_copy_that_waits_elsewhere_gets_the_answer_within_50_ms<S: Server>() {
    let (server, gate) = (S::start().await, Gate::default());
    let receiver = Receiver::behind(&gate, 200, "done\n").await;
    let (a, b) = two_patient_proxies(&server, &receiver, "when_in_flight = \"wait\"").await;
    let mut delays = Vec::new();
    for round in 1..=20 {
        let (copy, claims) = (event(&format!("evt_{round}")), b.metric(CLAIMS).await);
        let timed = async |reply| (Box::pin(reply).await, Instant::now());
        let ((first, recorded), (second, told), ()) = join!(
            timed(a.sends(copy.clone())),
            async {
                receiver.has_counted(round).await;
                timed(b.sends(copy.clone())).await
            },
            async {
                receiver.has_counted(round).await;
                // it looks twice: to claim, and once it listens
                b.comes_to_count(CLAIMS, claims + 2.0).await;
                gate.lets_one_pass();
            }
        );
        first.is_executed(200);
        second.is_replayed(200);
        delays.push(told.saturating_duration_since(recorded));
    }
    receiver.was_called(20);
    delays.sort_unstable();
    assert!(delays[10] <= Duration::from_millis(50), "{delays:?}");
}
