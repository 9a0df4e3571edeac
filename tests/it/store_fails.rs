//! Without its store nothing is forwarded, or it is said so; and what was answered is replayed.

use std::time::Duration;

use tokio::join;
use tokio::time::Instant;

use crate::support::{Answer, Builder, Event, Fault, Gate, Onceward, Receiver, Reply, event};

const BROKEN: &str = "a write to its disk failed";
/// The database says it too.
const DATABASE: &str = "fjall::";
const NO_CLAIM: &str = "no claim, so nothing is forwarded";
const UNPROTECTED: &str = "no claim: forwarded unprotected";
const NOT_RECORDED: &str = "an outcome is not recorded yet";
const ANSWERED_BEFORE: &str = "answered before the outcome could be recorded";
const SWEEP: &str = "expired records could not be removed yet";
const ABANDONED: &str = "operations of an earlier process are uncertain now";
const UNSYNCED: &str = "the store was closed unsynced";
const HELD: &str = "nobody knows whether";

/// What an embedded store may log from the moment at which its disk fails.
pub(super) const LOGS: [&str; 5] = [BROKEN, DATABASE, NO_CLAIM, SWEEP, UNSYNCED];

async fn is_not_ready(onceward: &Onceward) {
    let ready = onceward.get_admin("/readyz").await;
    assert_eq!(ready.status, 503, "{ready:?}");
    assert_eq!(onceward.get_admin("/livez").await.status, 200);
}

/// New events get 503 and are not forwarded, what is settled is replayed, and a restart heals it.
async fn refuses_and_replays(onceward: &mut Onceward, receiver: &Receiver, fault: Fault) {
    for number in 1..=3 {
        let refused = onceward.sends(event(&format!("evt_{number}"))).await;
        refused.is_refused(503, "store-unavailable").comes_back();
    }
    receiver.was_called(1);
    let replay = onceward.sends(event("evt_old")).await;
    replay.is_replayed(200);
    assert_eq!(replay.body, b"done\n");
    is_not_ready(onceward).await;
    fault.ends().await;
    onceward.is_killed().await;

    onceward.starts_again().await;
    assert_eq!(onceward.get_admin("/readyz").await.status, 200);
    onceward.sends(event("evt_old")).await.is_replayed(200);
    onceward.sends(event("evt_new")).await.is_executed(200);
    receiver.was_called(2);
}

#[tokio::test]
async fn a_full_disk_refuses_what_is_new_and_replays_what_is_settled() {
    let receiver = Receiver::that_answers(200, "done\n").await;
    let builder = Onceward::in_front_of(&receiver)
        .expects_log(BROKEN)
        .expects_log(DATABASE)
        .expects_log(NO_CLAIM);
    let mut onceward = builder.expects_log(SWEEP).expects_log(ABANDONED).start().await;
    onceward.sends(event("evt_old")).await.is_executed(200);
    let fault = onceward.has_a_full_disk().await;
    refuses_and_replays(&mut onceward, &receiver, fault).await;
}

/// A sync that failed is never tried again: the kernel may have thrown the bytes away.
#[tokio::test]
async fn a_failing_sync_refuses_what_is_new_and_replays_what_is_settled() {
    let receiver = Receiver::that_answers(200, "done\n").await;
    let builder = Onceward::in_front_of(&receiver)
        .expects_log(BROKEN)
        .expects_log(DATABASE)
        .expects_log(NO_CLAIM);
    let mut onceward = builder.expects_log(SWEEP).expects_log(ABANDONED).start().await;
    onceward.sends(event("evt_old")).await.is_executed(200);
    let fault = onceward.has_a_broken_disk().await;
    refuses_and_replays(&mut onceward, &receiver, fault).await;
}

/// The disk works again, but the store knows no more what is on it.
#[tokio::test]
async fn a_store_whose_sync_has_failed_takes_nothing_until_it_is_started_again() {
    let receiver = Receiver::that_answers(200, "done\n").await;
    let builder = Onceward::in_front_of(&receiver)
        .expects_log(BROKEN)
        .expects_log(DATABASE)
        .expects_log(NO_CLAIM);
    let builder = builder.expects_log(SWEEP).expects_log(ABANDONED).expects_log(UNSYNCED);
    let mut onceward = builder.start().await;
    let fault = onceward.has_a_broken_disk().await;
    onceward.sends(event("evt_1")).await.is_refused(503, "store-unavailable");
    fault.ends().await;
    onceward.sends(event("evt_2")).await.is_refused(503, "store-unavailable").comes_back();
    is_not_ready(&onceward).await;
    receiver.was_called(0);
    onceward.signal(rustix::process::Signal::TERM);
    assert_eq!(onceward.ends().await.code(), Some(0));

    onceward.starts_again().await;
    onceward.sends(event("evt_2")).await.is_executed(200);
    receiver.was_called(1);
}

/// Its claim was written and not synced, so nothing was forwarded; nobody could record that.
#[tokio::test]
async fn after_a_failed_sync_and_a_restart_nobody_says_that_something_was_sent() {
    let receiver = Receiver::that_answers(200, "done\n").await;
    let builder = Onceward::in_front_of(&receiver)
        .expects_log(BROKEN)
        .expects_log(DATABASE)
        .expects_log(NO_CLAIM);
    let mut onceward = builder.expects_log(SWEEP).expects_log(ABANDONED).start().await;
    let fault = onceward.has_a_broken_disk().await;
    onceward.sends(event("evt_1")).await.is_refused(503, "store-unavailable");
    fault.ends().await;
    onceward.is_killed().await;

    onceward.starts_again().await;
    let held = onceward.get_admin("/api/operations?key=evt_1").await;
    let held: serde_json::Value = serde_json::from_slice(&held.body).unwrap();
    let attempt = &held["operations"][0]["attempts"][0];
    assert_eq!((&attempt["outcome"], &attempt["sent"]), (&"uncertain".into(), &().into()));
    receiver.was_called(0);
}

#[tokio::test]
async fn a_route_that_forwards_without_its_store_says_so_and_counts_it() {
    let receiver = Receiver::that_answers(200, "done\n").await;
    let builder = Onceward::in_front_of(&receiver).defaults("when_store_fails = \"forward\"");
    let builder = builder
        .expects_log(BROKEN)
        .expects_log(DATABASE)
        .expects_log(UNPROTECTED)
        .expects_log(SWEEP);
    let onceward = builder.start().await;
    onceward.sends(event("evt_old")).await.is_executed(200);
    assert_eq!(onceward.metric("onceward_unprotected_total").await, 0.0);
    let _fault = onceward.has_a_full_disk().await;
    onceward.sends(event("evt_1")).await.is_passed(200);
    onceward.sends(event("evt_1")).await.is_passed(200);
    receiver.was_called(3);
    assert_eq!(receiver.seen()[2].header("onceward-operation"), None, "it is not one");
    onceward.sends(event("evt_old")).await.is_replayed(200);
    receiver.was_called(3);
    assert_eq!(onceward.metric("onceward_unprotected_total").await, 2.0);
}

/// It is for requests that nobody has met: a copy that heard of an attempt comes again, and so do
/// others.
#[tokio::test]
async fn a_copy_of_what_is_in_flight_is_not_forwarded_when_its_store_fails() {
    let gate = Gate::default();
    let receiver = Receiver::behind(&gate, 200, "done\n").await;
    let settings = "when_store_fails = \"forward\"\nwhen_in_flight = \"wait\"\nwaiters_max = 1";
    let builder = Onceward::in_front_of(&receiver).defaults(settings);
    let builder = builder.expects_log(BROKEN).expects_log(DATABASE).expects_log(NO_CLAIM);
    let builder = builder.expects_log(UNPROTECTED).expects_log(NOT_RECORDED).expects_log(SWEEP);
    let onceward = builder.expects_log("a lease could not be renewed yet").start().await;
    let copy = event("evt_1");
    let mut senders = Vec::new();
    for _first_and_waiter_and_refused in 0..3 {
        let mut sender = onceward.connects().await;
        sender.writes(&copy.raw()).await;
        receiver.has_counted(1).await;
        senders.push(sender);
    }
    let refused = "onceward_limits_reached_total{limit=\"waiters_max\"}";
    onceward.comes_to_count(refused, 1.0).await;
    let _fault = onceward.has_a_full_disk().await;
    for _ in 0..3 {
        let next = onceward.sends(copy.clone()).await;
        assert!(["in-flight", "refused"].contains(&next.disposition()), "{next:?}");
    }
    receiver.was_called(1);
    assert_eq!(onceward.metric("onceward_unprotected_total").await, 0.0);
    gate.opens();
    onceward.sends(event("evt_2")).await.is_passed(200);
    receiver.was_called(2);
}

/// A route that forwards without its store, and whose operations are uncertain from the first
/// attempt on. It asks the receiver about them, or makes the next attempt a second later.
async fn of_uncertain_operations(policy: &str) -> (Receiver, Builder) {
    let receiver = Receiver::that(|seen, _| match &*seen.method {
        "GET" => Answer::new(404, "not done").into(),
        _ => Answer::new(504, "who knows").into(),
    });
    let receiver = receiver.await;
    let settings = format!(
        "when_store_fails = \"forward\"\nwhen_uncertain = \"{policy}\"\nattempt_timeout = \"1s\""
    );
    let mut builder = Onceward::in_front_of(&receiver).defaults(&settings).expects_log(HELD);
    if policy == "lookup" {
        let url = receiver.url();
        builder = builder.routes(&format!("[routes.hooks.lookup]\nurl = \"{url}/{{key}}\""));
    }
    (receiver, builder)
}

fn events(receiver: &Receiver) -> usize {
    receiver.seen().iter().filter(|seen| seen.method == "POST").count()
}

async fn is_turned_away(onceward: &Onceward, copy: Event) {
    let reply = onceward.sends(copy).await;
    assert!(["uncertain", "refused"].contains(&reply.disposition()), "{reply:?}");
}

/// The store has read that the operation is uncertain before it failed, whatever the copy would
/// have been granted.
#[tokio::test]
async fn a_copy_of_what_is_uncertain_is_not_forwarded_when_its_store_fails() {
    for policy in ["hold", "retry", "lookup"] {
        let (receiver, builder) = of_uncertain_operations(policy).await;
        let builder = builder.expects_log(BROKEN).expects_log(DATABASE).expects_log(NO_CLAIM);
        let builder = builder.expects_log(UNPROTECTED).expects_log(SWEEP);
        let onceward = builder.expects_log("could not be recorded").start().await;
        let first = onceward.sends(event("evt_1")).await;
        first.is_executed(504);
        onceward.must_have_ended(&first.operation(), Duration::from_secs(1)).await;
        let _fault = onceward.has_a_full_disk().await;
        // Under `retry` the write that fails is that of this copy.
        is_turned_away(&onceward, event("evt_1")).await;
        onceward.sends(event("evt_2")).await.is_passed(504);
        // From then on it only reads, and says what it has read.
        for _ in 0..2 {
            let copy = onceward.sends(event("evt_1")).await;
            assert_eq!(copy.is_uncertain().operation(), first.operation(), "{policy}");
        }
        assert_eq!(events(&receiver), 2, "{policy}");
        assert_eq!(onceward.metric("onceward_unprotected_total").await, 1.0);
    }
}

/// Its claim was granted, and nobody waited until that was on the disk.
#[tokio::test]
async fn a_copy_of_what_is_uncertain_is_not_forwarded_when_its_store_is_slow() {
    let (receiver, builder) = of_uncertain_operations("retry").await;
    let onceward = builder.expects_log(NO_CLAIM).expects_log(SWEEP).start().await;
    let first = onceward.sends(event("evt_1")).await;
    onceward.must_have_ended(&first.operation(), Duration::from_secs(1)).await;
    let fault = onceward.has_a_slow_disk(Duration::from_secs(3)).await;
    is_turned_away(&onceward, event("evt_1")).await;
    receiver.was_called(1);
    fault.ends().await;
}

/// The store has not even looked at it, since another event takes it so long.
#[tokio::test]
async fn a_copy_of_what_is_in_flight_is_not_forwarded_when_its_store_is_slow() {
    let gate = Gate::default();
    let receiver = Receiver::behind(&gate, 200, "done\n").await;
    let builder = Onceward::in_front_of(&receiver).defaults("when_store_fails = \"forward\"");
    let builder = builder.expects_log(NO_CLAIM).expects_log(UNPROTECTED).expects_log(SWEEP);
    let builder = builder.expects_log(NOT_RECORDED);
    let onceward = builder.expects_log("a lease could not be renewed yet").start().await;
    let mut first = onceward.connects().await;
    first.writes(&event("evt_1").raw()).await;
    receiver.has_counted(1).await;
    let fault = onceward.has_a_slow_disk(Duration::from_secs(5)).await;
    let mut other = onceward.connects().await;
    other.writes(&event("evt_2").raw()).await;
    fault.meets_a_sync().await;
    onceward.sends(event("evt_1")).await.is_refused(503, "store-unavailable");
    let of_first = receiver.seen().iter().filter(|seen| seen.body == event("evt_1").body).count();
    assert_eq!(of_first, 1);
    gate.opens();
    fault.ends().await;
}

/// The upstream has done it, and the store knew that for a moment.
#[tokio::test]
async fn a_copy_is_not_forwarded_when_the_success_that_it_found_cannot_be_written() {
    let gate = Gate::default();
    let receiver = Receiver::behind(&gate, 200, "done\n").await;
    let settings = "when_store_fails = \"forward\"\nlease = \"4s\"";
    let builder = Onceward::in_front_of(&receiver).defaults(settings);
    let builder = builder.expects_log(BROKEN).expects_log(DATABASE).expects_log(NO_CLAIM);
    let builder = builder.expects_log(NOT_RECORDED).expects_log(ANSWERED_BEFORE);
    let onceward = builder.expects_log(SWEEP).start().await;
    let first = onceward.sends(event("evt_1"));
    let others = async {
        receiver.has_counted(1).await;
        let fault = onceward.has_a_disk_that_becomes_full(Duration::from_millis(1500)).await;
        let mut sender = onceward.connects().await;
        // While this claim is written, the attempt ends and a copy comes.
        sender.writes(&event("evt_2").raw()).await;
        fault.meets_a_sync().await;
        // The request is given up just before its outcome goes to the store.
        let both = onceward.metric("onceward_buffered_bytes").await;
        gate.lets_one_pass();
        onceward.comes_down_to("onceward_buffered_bytes", both - 1.0).await;
        let copy = onceward.sends(event("evt_1")).await;
        // The store may have been asked something else in between.
        assert!(["refused", "in-flight"].contains(&copy.disposition()), "{copy:?}");
        // What was claimed in time is forwarded.
        receiver.was_called(2);
        gate.opens();
    };
    let (first, ()) = join!(first, others);
    first.is_executed(200);
    assert_eq!(onceward.metric("onceward_unprotected_total").await, 0.0);
}

/// It was done, so its sender must not hear that it was not.
#[tokio::test]
async fn a_store_that_fails_after_the_upstream_answered_keeps_the_answer_from_nobody() {
    let gate = Gate::default();
    let receiver = Receiver::behind(&gate, 200, "done\n").await;
    let mut onceward = Onceward::in_front_of(&receiver)
        .defaults("lease = \"2s\"")
        .expects_log(BROKEN)
        .expects_log(DATABASE)
        .expects_log(NOT_RECORDED)
        .expects_log(ANSWERED_BEFORE)
        .expects_log(SWEEP)
        .expects_log("a lease could not be renewed yet")
        .expects_log(ABANDONED)
        .start()
        .await;
    let (first, fault) = join!(onceward.sends(event("evt_96")), async {
        receiver.has_counted(1).await;
        let fault = onceward.has_a_full_disk().await;
        let answered = Instant::now();
        gate.opens();
        onceward.logs(ANSWERED_BEFORE).await;
        assert!(answered.elapsed() < Duration::from_secs(6), "at the lease's end at the latest");
        fault
    });
    first.is_executed(200);
    assert_eq!(first.body, b"done\n");
    onceward.comes_to_be(&first.operation(), "uncertain").await;
    onceward.sends(event("evt_96")).await.is_uncertain();
    fault.ends().await;
    onceward.is_killed().await;

    onceward.starts_again().await;
    assert_eq!(onceward.state(&first.operation()).await, "uncertain");
    onceward.sends(event("evt_96")).await.is_uncertain();
    receiver.was_called(1);
}

/// Whether a settle that was written and not synced is there after the restart is up to the disk.
/// Either way its event is not free.
#[tokio::test]
async fn a_settle_whose_sync_failed_leaves_nothing_to_be_forwarded_again() {
    let gate = Gate::default();
    let receiver = Receiver::behind(&gate, 200, "done\n").await;
    let mut onceward = Onceward::in_front_of(&receiver)
        .defaults("lease = \"1s\"")
        .expects_log(BROKEN)
        .expects_log(DATABASE)
        .expects_log(NOT_RECORDED)
        .expects_log(ANSWERED_BEFORE)
        .expects_log(SWEEP)
        .expects_log(ABANDONED)
        .start()
        .await;
    let (first, fault) = join!(onceward.sends(event("evt_96")), async {
        receiver.has_counted(1).await;
        let fault = onceward.has_a_broken_disk().await;
        gate.opens();
        fault
    });
    first.is_executed(200);
    fault.ends().await;
    onceward.is_killed().await;

    onceward.starts_again().await;
    let copy = onceward.sends(event("evt_96")).await;
    match copy.disposition() {
        "replayed" => copy.is_replayed(200),
        _ => copy.is_uncertain(),
    };
    receiver.was_called(1);
}

/// The settle is only late, and the lease is kept until the outcome is written.
#[tokio::test]
async fn a_settle_that_takes_the_store_long_is_waited_for() {
    let gate = Gate::default();
    let receiver = Receiver::behind(&gate, 200, "done\n").await;
    let builder = Onceward::in_front_of(&receiver).expects_log(NOT_RECORDED).expects_log(SWEEP);
    let onceward = builder.start().await;
    let (first, ()) = join!(onceward.sends(event("evt_96")), async {
        receiver.has_counted(1).await;
        let fault = onceward.has_a_slow_disk(Duration::from_secs(3)).await;
        gate.opens();
        onceward.logs(NOT_RECORDED).await;
        fault.ends().await;
    });
    first.is_executed(200);
    assert_eq!(onceward.state(&first.operation()).await, "succeeded");
    onceward.sends(event("evt_96")).await.is_replayed(200);
    receiver.was_called(1);
}

/// A claim without a reply is no grant; and it is taken back, so that the event is not held.
#[tokio::test]
async fn a_slow_store_forwards_nothing_and_leaves_nothing_held_behind() {
    let receiver = Receiver::that_answers(200, "done\n").await;
    let builder = Onceward::in_front_of(&receiver).expects_log(NO_CLAIM).expects_log(SWEEP);
    let onceward = builder.start().await;
    let fault = onceward.has_a_slow_disk(Duration::from_secs(3)).await;
    let refused = onceward.sends(event("evt_1")).await;
    refused.is_refused(503, "store-unavailable").comes_back();
    receiver.was_called(0);
    fault.ends().await;
    let began = Instant::now();
    let is_executed = |copy: &Reply| {
        assert_ne!(copy.disposition(), "uncertain", "it is held: {copy:?}");
        copy.disposition() == "executed"
    };
    let copy = onceward.sends_until(&event("evt_1"), is_executed).await;
    assert!(began.elapsed() < Duration::from_secs(14), "before the lease would have ended");
    copy.is_executed(200);
    receiver.was_called(1);
    let operation = onceward.operation(&copy.operation()).await.unwrap();
    assert_eq!(operation["attempts_total"], 2, "{operation}");
    let first = &operation["attempts"][0];
    assert_eq!((&first["outcome"], &first["sent"]), (&"failed".into(), &false.into()));
    assert_eq!(first["reason"], "withdrawn", "{operation}");
    onceward.sends(event("evt_1")).await.is_replayed(200);
    receiver.was_called(1);
}
