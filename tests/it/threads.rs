//! The threads that serve connections: so many as are set, and together they are one process.

use tokio::join;

use crate::support::{Gate, Onceward, Receiver, event};

/// How many threads of the process serve connections.
fn serving(onceward: &Onceward) -> usize {
    let threads = format!("/proc/{}/task", onceward.pid().as_raw_nonzero());
    let threads = std::fs::read_dir(threads).unwrap();
    let names = threads
        .filter_map(|thread| std::fs::read_to_string(thread.unwrap().path().join("comm")).ok());
    names.filter(|name| name.starts_with("connections-")).count()
}

#[tokio::test]
async fn copies_on_every_thread_wait_for_one_attempt() {
    let gate = Gate::default();
    let receiver = Receiver::behind(&gate, 200, "done\n").await;
    let builder = Onceward::in_front_of(&receiver).server("threads = 3");
    let onceward = builder.defaults("when_in_flight = \"wait\"").start().await;
    assert_eq!(serving(&onceward), 3);
    let copy = event("evt_1");
    let (replies, ()) = join!(onceward.sends_copies(&copy, 30), async {
        // One more connection asks for the metrics.
        onceward.comes_to_count("onceward_connections", 31.0).await;
        receiver.has_counted(1).await;
        gate.opens();
    });
    let (executed, replayed): (Vec<_>, Vec<_>) =
        replies.into_iter().partition(|reply| reply.disposition() == "executed");
    assert_eq!(executed.len(), 1);
    for reply in replayed {
        reply.is_replayed(200);
    }
    receiver.was_called(1);
}
