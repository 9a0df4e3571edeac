//! `kill -9` at any moment: what was answered is replayed, what was in flight is held, nothing runs
//! twice.

use std::collections::HashMap;
use std::time::Duration;

use futures_util::future::join_all;
use tokio::time::{Instant, sleep, timeout};

use crate::support::segments::{SECTOR, content, groups, newest, replace};
use crate::support::{Act, Answer, Event, Onceward, Receiver, Reply, event};

const ABANDONED: &str = "operations of an earlier process are uncertain now";

/// How many rounds of load and kill: `ONCEWARD_CRASH_ROUNDS`, else 20.
fn rounds() -> usize {
    let set = std::env::var("ONCEWARD_CRASH_ROUNDS").ok();
    set.map_or(20, |set| set.parse().expect("a number"))
}

/// What the receiver is to do with an event stands in it.
fn planned(plan: &str, round: usize, count: usize) -> Vec<Event> {
    let one =
        |number| event("evt").keyed(&format!("{plan}-{round}-{number}")).header("x-plan", plan);
    (0..count).map(one).collect()
}

fn key(event: &Event) -> &str {
    let (_, key) = event.headers.iter().find(|(name, _)| name == "x-idempotency-key").unwrap();
    key
}

async fn receiver() -> Receiver {
    Receiver::that(|seen, copies| {
        let key = seen.header("x-idempotency-key").unwrap().to_owned();
        let done = Answer::new(201, format!("done {key}\n")).header("x-of", &key);
        match seen.header("x-plan").unwrap() {
            "fails" if copies == 0 => Answer::new(500, "broken\n").into(),
            "hangs" => Act::Hang,
            _ => done.into(),
        }
    })
    .await
}

/// How often the receiver has read each event.
fn counts(receiver: &Receiver) -> HashMap<String, usize> {
    let mut counts = HashMap::new();
    for seen in receiver.seen() {
        *counts.entry(seen.header("x-idempotency-key").unwrap().to_owned()).or_default() += 1;
    }
    counts
}

async fn all(onceward: &Onceward, events: &[Event]) -> Vec<Option<Reply>> {
    join_all(events.iter().map(async |event| onceward.try_sends(event.clone()).await.ok())).await
}

fn is_the_same(replay: &Reply, first: &Reply) {
    replay.is_replayed(first.status);
    assert_eq!(replay.body, first.body);
    for name in ["x-of", "content-length", "onceward-operation"] {
        assert_eq!(replay.header(name), first.header(name), "{name}");
    }
}

/// What was going on when the process was killed.
struct Killed {
    answered: Vec<(Event, Reply)>,
    failed: Vec<Event>,
    hanging: Vec<Event>,
    racing: Vec<(Event, Option<Reply>)>,
}

/// Load, and the kill in the middle of it: 200 requests are in flight, most of them for good.
async fn is_killed_under_load(
    onceward: &mut Onceward,
    receiver: &Receiver,
    round: usize,
) -> Killed {
    let answered = planned("answers", round, 20);
    let failed = planned("fails", round, 10);
    let hanging = planned("hangs", round, 150);
    let racing = planned("races", round, 50);
    let replies = all(onceward, &answered).await;
    let answered: Vec<_> =
        answered.into_iter().zip(replies.into_iter().map(Option::unwrap)).collect();
    for (_, reply) in &answered {
        reply.is_executed(201);
    }
    for reply in all(onceward, &failed).await {
        reply.unwrap().is_executed(500);
    }
    let before = receiver.count();
    let pid = onceward.pid();
    let (hung, raced, ()) = tokio::join!(
        all(onceward, &hanging),
        async {
            receiver.has_counted(before + 150).await;
            all(onceward, &racing).await
        },
        async {
            // In the middle of the race, at another point in each round.
            receiver.has_counted(before + 150 + (round * 7) % 50).await;
            rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
        }
    );
    assert!(hung.iter().all(Option::is_none), "nobody has answered them");
    assert!(!onceward.ends().await.success());
    let racing = racing.into_iter().zip(raced).collect();
    Killed { answered, failed, hanging, racing }
}

async fn nothing_is_lost_and_nothing_runs_twice(
    onceward: &Onceward,
    receiver: &Receiver,
    Killed { answered, failed, hanging, racing }: &Killed,
) {
    let before = counts(receiver);
    let times =
        |counts: &HashMap<String, usize>, event| counts.get(key(event)).copied().unwrap_or(0);
    let copies = async |events: Vec<&Event>| -> Vec<Reply> {
        join_all(events.into_iter().map(|event| onceward.sends(event.clone()))).await
    };
    let replays = copies(answered.iter().map(|(event, _)| event).collect()).await;
    for (replay, (_, first)) in replays.iter().zip(answered) {
        is_the_same(replay, first);
    }
    for reply in copies(failed.iter().collect()).await {
        reply.is_executed(201);
    }
    for reply in copies(hanging.iter().collect()).await {
        reply.is_uncertain();
    }
    let after_the_race = copies(racing.iter().map(|(event, _)| event).collect()).await;
    for (reply, (event, first)) in after_the_race.iter().zip(racing) {
        match (first, reply.disposition()) {
            (Some(first), _) => is_the_same(reply, first),
            // It was recorded, and the kill came before the answer.
            (None, "replayed") => {
                reply.is_replayed(201);
            }
            (None, "uncertain") => {
                reply.is_uncertain();
            }
            (None, _) => {
                assert_eq!(times(&before, event), 0, "an event in flight is free: {event:?}");
                reply.is_executed(201);
            }
        }
    }
    let after = counts(receiver);
    for event in hanging.iter().chain(answered.iter().map(|(event, _)| event)) {
        assert_eq!(times(&after, event), 1, "{event:?}");
    }
    for event in failed {
        assert_eq!(times(&after, event), 2, "a failure, and a new attempt: {event:?}");
    }
    for (event, _) in racing {
        assert!(times(&after, event) <= 1, "{event:?}");
    }
}

/// A crash leaves no lock behind, and an answer that was given is remembered.
#[tokio::test]
async fn killed_under_load_it_replays_what_was_answered_and_holds_what_was_in_flight() {
    let receiver = receiver().await;
    let builder = Onceward::in_front_of(&receiver).expects_log(ABANDONED);
    let mut onceward = builder.start().await;
    for round in 0..rounds() {
        let killed = is_killed_under_load(&mut onceward, &receiver, round).await;
        onceward.starts_again().await;
        nothing_is_lost_and_nothing_runs_twice(&onceward, &receiver, &killed).await;
        let held = onceward.sends(killed.hanging[0].clone()).await;
        let operation = onceward.operation(&held.operation()).await.unwrap();
        assert_eq!(operation["state"], "uncertain", "{operation}");
        assert_eq!(operation["attempts"][0]["reason"], "holder-ended", "{operation}");
    }
}

/// The first start after a kill writes what it found; it may be killed while it does so.
#[tokio::test]
async fn killed_again_and_again_it_forgets_nothing() {
    let receiver = receiver().await;
    let builder = Onceward::in_front_of(&receiver).expects_log(ABANDONED);
    let mut onceward = builder.start().await;
    let killed = is_killed_under_load(&mut onceward, &receiver, 1).await;
    for millis in (0..60).step_by(3) {
        let mut starting = onceward.another().spawn().unwrap();
        // Time itself is what is waited for: the kill comes later and later into the start.
        sleep(Duration::from_millis(millis)).await;
        starting.kill().await.unwrap();
    }
    onceward.starts_again().await;
    onceward.is_killed().await;
    onceward.starts_again().await;
    nothing_is_lost_and_nothing_runs_twice(&onceward, &receiver, &killed).await;
}

/// A crash while the directory is made leaves nothing that stands in the way.
#[tokio::test]
async fn killed_in_its_first_start_it_starts_the_next_time() {
    let receiver = receiver().await;
    let mut onceward = Onceward::in_front_of(&receiver).start().await;
    onceward.is_killed().await;
    let store = onceward.directory().join("store");
    for millis in 0..30 {
        if millis % 3 == 0 {
            std::fs::remove_dir_all(&store).unwrap();
            std::fs::create_dir(&store).unwrap();
        }
        let mut starting = onceward.another().spawn().unwrap();
        // Time itself is what is waited for: the kill comes later and later into the start.
        sleep(Duration::from_millis(millis)).await;
        starting.kill().await.unwrap();
    }
    onceward.starts_again().await;
    let copy = &planned("answers", 0, 1)[0];
    onceward.sends(copy.clone()).await.is_executed(201);
    onceward.sends(copy.clone()).await.is_replayed(201);
    receiver.was_called(1);
}

/// What another process on its store says, which ends with an error.
async fn does_not_start(onceward: &Onceward) -> String {
    let output = timeout(Duration::from_secs(20), onceward.another().output()).await;
    let output = output.unwrap().unwrap();
    assert_eq!(output.status.code(), Some(1));
    String::from_utf8(output.stderr).unwrap()
}

#[tokio::test]
async fn a_second_process_on_one_directory_does_not_start_and_the_first_goes_on() {
    let receiver = receiver().await;
    let onceward = Onceward::in_front_of(&receiver).start().await;
    let copy = &planned("answers", 0, 1)[0];
    onceward.sends(copy.clone()).await.is_executed(201);
    let began = Instant::now();
    let says = does_not_start(&onceward).await;
    assert!(began.elapsed() < Duration::from_secs(10), "it does not wait for the first one");
    let directory = onceward.directory().join("store").display().to_string();
    assert!(says.contains("another process") && says.contains(&directory), "{says}");
    onceward.sends(copy.clone()).await.is_replayed(201);
    onceward.sends(planned("answers", 1, 1).remove(0)).await.is_executed(201);
}

/// An empty store in place of one that remembered would forward everything again.
#[tokio::test]
async fn without_the_records_that_it_had_it_does_not_start() {
    let receiver = receiver().await;
    let mut onceward = Onceward::in_front_of(&receiver).start().await;
    onceward.sends(planned("answers", 0, 1).remove(0)).await.is_executed(201);
    onceward.is_killed().await;
    std::fs::remove_dir_all(onceward.store().join("log")).unwrap();
    let says = does_not_start(&onceward).await;
    assert!(says.contains("are gone"), "{says}");
}

/// An empty store in place of one that remembered would forward everything again.
#[tokio::test]
async fn without_a_part_of_its_store_it_does_not_start_until_that_is_accepted() {
    let segment = "a segment of the log is missing";
    let rows = "the rows of the store are made anew from its log";
    let receiver = receiver().await;
    let builder = Onceward::in_front_of(&receiver).expects_log(segment).expects_log(rows);
    // The records of probes may be in it, whose rows the database has.
    let builder = builder.expects_log("a damaged part of the log").expects_log("a record is kept");
    let builder =
        builder.expects_log("the damaged rows are kept").expects_log("the mark of the log");
    let mut onceward = builder.start().await;
    let event = planned("answers", 0, 1).remove(0);
    onceward.sends(event.clone()).await.is_executed(201);
    let of_the_event = newest(&onceward.store());
    onceward.is_killed().await;
    onceward.starts_again().await;
    for (part, says_then) in
        [(of_the_event, segment), (onceward.store().join("rows/keyspaces/1"), rows)]
    {
        onceward.is_killed().await;
        if part.is_dir() { std::fs::remove_dir_all(&part) } else { std::fs::remove_file(&part) }
            .unwrap();
        let says = does_not_start(&onceward).await;
        for part in [part.to_str().unwrap(), "is missing", "`--accept-damaged-store`"] {
            assert!(says.contains(part), "{says}");
        }
        onceward.starts_again_with(&["--accept-damaged-store"]).await;
        onceward.logs(says_then).await;
        let again = onceward.sends(event.clone()).await;
        // The rows have nothing that the log has not.
        if says_then == segment {
            again.is_executed(201)
        } else {
            again.is_replayed(201)
        };
        onceward.is_killed().await;
        onceward.starts_again().await;
        onceward.sends(event.clone()).await.is_replayed(201);
    }
    receiver.was_called(2);
}

/// What the log says of a group whose sync never came.
const UNSYNCED: &str = "an unfinished group of changes is dropped";

/// Power is lost before the last group was synced: of its sectors only some are there.
#[tokio::test]
async fn after_a_loss_of_power_it_starts_without_what_was_not_synced_and_says_so() {
    let receiver = receiver().await;
    let builder = Onceward::in_front_of(&receiver).expects_log(ABANDONED);
    let mut onceward = builder.start().await;
    let first = planned("answers", 0, 1).remove(0);
    onceward.sends(first.clone()).await.is_executed(201);
    let segment = newest(&onceward.store());
    let before = content(&segment).len();
    let synced = onceward.store().join("log/synced");
    let noted = std::fs::read(&synced).unwrap();
    // Its answer has its key.
    let big = event("evt").keyed(&"k".repeat(200)).header("x-plan", "answers");
    onceward.sends(big.clone()).await.is_executed(201);
    onceward.is_killed().await;
    let mut bytes = content(&segment);
    // the claim and the end of the second event; of the end nothing in its first sector is there
    let groups = groups(&bytes);
    let [.., claim, end] = &*groups else { panic!("{groups:?}") };
    assert_eq!(claim.start, before);
    assert!(end.len() > SECTOR, "the group is longer than its first sector");
    bytes[end.start..end.start + SECTOR].fill(0);
    replace(&segment, &bytes);
    // nobody was told of the second event yet
    std::fs::write(synced, noted).unwrap();

    onceward.starts_again().await;
    onceward.logs(UNSYNCED).await;
    let log = onceward.log();
    let dropped = log.iter().find(|line| line.to_string().contains(UNSYNCED)).unwrap();
    assert_eq!(dropped["segment"], segment.to_str().unwrap());
    assert_eq!(dropped["offset"], end.start);
    onceward.sends(first).await.is_replayed(201);
    onceward.sends(big).await.is_uncertain();
    receiver.was_called(2);
}

/// What is left of the log is whole: only its end is gone, with what was acknowledged.
#[tokio::test]
async fn with_its_log_cut_off_it_does_not_start_until_that_is_accepted() {
    let left_out = "a damaged part of the log is left out";
    let receiver = receiver().await;
    let builder = Onceward::in_front_of(&receiver).expects_log(left_out);
    let mut onceward = builder.expects_log("the damaged segment is kept").start().await;
    let events = planned("answers", 0, 3);
    onceward.sends(events[0].clone()).await.is_executed(201);
    let first = newest(&onceward.store());
    let whole = content(&first).len();
    for (round, behind) in [0, 100].into_iter().enumerate() {
        let segment = newest(&onceward.store());
        // After the first round, the segment has only what comes now.
        let left = if segment == first { whole } else { SECTOR };
        for event in &events[1..] {
            onceward.sends(event.clone()).await.is_executed(201);
        }
        onceward.is_killed().await;
        let file = std::fs::File::options().write(true).open(&segment).unwrap();
        file.set_len((left + behind) as u64).unwrap();
        let says = does_not_start(&onceward).await;
        let segment = segment.display().to_string();
        for part in [&*segment, &format!("damaged at byte {left}:"), "`--accept-damaged-store`"] {
            assert!(says.contains(part), "{says}");
        }
        onceward.starts_again_with(&["--accept-damaged-store"]).await;
        onceward.sends(events[0].clone()).await.is_replayed(201);
        receiver.was_called(1 + 2 * (1 + round));
    }
    for event in &events[1..] {
        onceward.sends(event.clone()).await.is_executed(201);
    }
    onceward.is_killed().await;
    onceward.starts_again().await;
    onceward.sends(events[2].clone()).await.is_replayed(201);
    receiver.was_called(1 + 2 * 3);
}

#[tokio::test]
async fn a_damaged_store_does_not_start_until_that_is_accepted() {
    let left_out = "a damaged part of the log is left out";
    let receiver = receiver().await;
    let builder = Onceward::in_front_of(&receiver).expects_log(ABANDONED).expects_log(left_out);
    let mut onceward = builder.expects_log("the damaged segment is kept").start().await;
    let events = planned("answers", 0, 3);
    let operation = onceward.sends(events[0].clone()).await.is_executed(201).operation();
    let segment = newest(&onceward.store());
    let written = content(&segment);
    let damaged = groups(&written).pop().unwrap();
    let place = written.iter().rposition(|byte| *byte != 0).unwrap() - 20;
    for event in &events[1..] {
        onceward.sends(event.clone()).await.is_executed(201);
    }
    onceward.is_killed().await;
    let mut bytes = content(&segment);
    bytes[place] ^= 4;
    replace(&segment, &bytes);

    let says = does_not_start(&onceward).await;
    let named = segment.display().to_string();
    let at = format!("damaged at byte {}:", damaged.start);
    for part in [&*named, &at, "`--accept-damaged-store`"] {
        assert!(says.contains(part), "{says}");
    }

    onceward.starts_again_with(&["--accept-damaged-store"]).await;
    onceward.logs(left_out).await;
    let lines = onceward.log();
    let lost = lines.iter().find(|line| line.to_string().contains(left_out)).unwrap();
    assert_eq!((&lost["changes"], &lost["operations"]), (&"1".into(), &operation.into()));
    assert_eq!((&lost["offset"], &lost["bytes"]), (&damaged.start.into(), &damaged.len().into()));
    for event in &events[1..] {
        onceward.sends(event.clone()).await.is_replayed(201);
    }
    // its claim is still there
    onceward.sends(events[0].clone()).await.is_uncertain();
    onceward.is_killed().await;
    onceward.starts_again().await;
    receiver.was_called(3);
}
