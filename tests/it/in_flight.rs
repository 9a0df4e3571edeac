//! At most one attempt of an operation is in flight, and what its copies get meanwhile.

use std::time::Duration;

use futures_util::future::join_all;
use tokio::join;
use tokio::time::Instant;

use crate::support::{Act, Answer, Event, Gate, Onceward, RawSender, Receiver, Reply, event};

const WAIT: &str = "when_in_flight = \"wait\"";
const RENEWALS: &str = "onceward_store_duration_seconds_count{call=\"renew\"}";
const REFUSED_THEN_FAILED: &str = "onceward_refused_then_failed_total";

fn of<'r>(replies: &'r [Reply], disposition: &str) -> Vec<&'r Reply> {
    replies.iter().filter(|reply| reply.disposition() == disposition).collect()
}

fn in_flight_answers() -> &'static str {
    "onceward_requests_total{route=\"hooks\",disposition=\"in-flight\"}"
}

/// The first answer to each event is `first`, all later ones are `later`, each through its gate.
async fn twofold((gate, first): (&Gate, Act), (later_gate, later): (&Gate, Act)) -> Receiver {
    let (gate, later_gate) = (gate.clone(), later_gate.clone());
    Receiver::that(move |_, copies| match copies {
        0 => Act::When(gate.clone(), Box::new(first.clone())),
        _ => Act::When(later_gate.clone(), Box::new(later.clone())),
    })
    .await
}

/// A sender that does not wait for its answer, on a connection of its own.
async fn sent_by(onceward: &Onceward, event: &Event) -> RawSender {
    let mut sender = onceward.connects().await;
    sender.writes(&event.raw()).await;
    sender
}

#[tokio::test]
async fn of_fifty_copies_at_once_one_is_forwarded_and_the_others_are_refused() {
    let gate = Gate::default();
    let receiver = Receiver::behind(&gate, 200, "{\"ok\":1}").await;
    let onceward = Onceward::in_front_of(&receiver).start().await;
    let copy = event("evt_1");
    let (replies, ()) = join!(onceward.sends_copies(&copy, 50), async {
        onceward.comes_to_count(in_flight_answers(), 49.0).await;
        gate.opens();
    });
    let executed = of(&replies, "executed");
    assert_eq!(executed.len(), 1, "{replies:?}");
    executed[0].is_executed(200);
    let refused = of(&replies, "in-flight");
    assert_eq!(refused.len(), 49, "{replies:?}");
    for reply in refused {
        reply.is_in_flight(409);
        assert_eq!(reply.operation(), executed[0].operation());
    }
    onceward.sends(copy).await.is_replayed(200);
    receiver.was_called(1);
}

#[tokio::test]
async fn fifty_copies_that_wait_get_one_answer() {
    let gate = Gate::default();
    let receiver = Receiver::behind(&gate, 201, "{\"ok\":1}").await;
    let settings = format!("{WAIT}\nwaiters_max = 100");
    let onceward = Onceward::in_front_of(&receiver).defaults(&settings).start().await;
    let copy = event("evt_1");
    let (replies, ()) = join!(onceward.sends_copies(&copy, 50), async {
        onceward.comes_to_count("onceward_connections", 51.0).await;
        receiver.has_counted(1).await;
        gate.opens();
    });
    for reply in &replies {
        assert_eq!((reply.status, reply.text()), (201, "{\"ok\":1}".to_owned()), "{reply:?}");
    }
    let unmarked = replies.iter().filter(|reply| reply.header("idempotent-replayed").is_none());
    assert_eq!(unmarked.count(), 1, "{replies:?}");
    receiver.was_called(1);
    let operation = onceward.operation(&replies[0].operation()).await.unwrap();
    assert_eq!(
        (&operation["state"], &operation["attempts_total"]),
        (&"succeeded".into(), &1.into())
    );
}

#[tokio::test]
async fn a_hundred_bursts_of_eight_copies_are_a_hundred_forwarded_requests() {
    let receiver = Receiver::that_answers(200, "done\n").await;
    let onceward = Onceward::in_front_of(&receiver).start().await;
    for burst in 1..=100 {
        let copy = event(&format!("evt_{burst}"));
        let replies = onceward.sends_copies(&copy, 8).await;
        assert_eq!(of(&replies, "executed").len(), 1, "{replies:?}");
        for reply in &replies {
            match reply.disposition() {
                "executed" => reply.is_executed(200),
                "replayed" => reply.is_replayed(200),
                _ => reply.is_in_flight(409),
            };
        }
        receiver.was_called(burst);
    }
}

/// Each route has the status after which its sender tries again.
#[tokio::test]
async fn a_copy_is_refused_with_the_status_of_its_route_for_the_rest_of_the_lease() {
    let gate = Gate::default();
    let receiver = Receiver::behind(&gate, 200, "done\n").await;
    let mut builder = Onceward::in_front_of(&receiver).defaults("lease = \"4s\"");
    let statuses = [409, 425, 429, 503];
    for status in statuses {
        builder = builder.routes(&format!(
            "[routes.r{status}]\npath = \"/{status}\"\nupstream = \"{}\"\nin_flight_status = {status}",
            receiver.url(),
        ));
    }
    let onceward = builder.start().await;
    for (before, status) in statuses.into_iter().enumerate() {
        let copy = event("evt_7").to(&format!("/{status}"));
        let (first, ()) = join!(onceward.sends(copy.clone()), async {
            receiver.has_counted(before + 1).await;
            let second = onceward.sends(copy.clone()).await;
            second.is_in_flight(status);
            assert!(second.retry_after() <= 4, "{second:?}");
            gate.lets_one_pass();
        });
        first.is_executed(200);
    }
    receiver.was_called(4);
}

/// If the sender does not try again after this, the event is lost, and somebody must see it.
#[tokio::test]
async fn a_failure_after_a_refused_copy_is_counted_and_logged() {
    let gate = Gate::default();
    let receiver = Receiver::behind(&gate, 500, "broken\n").await;
    let text = "a copy was refused, then the attempt failed";
    let onceward = Onceward::in_front_of(&receiver).expects_log(text).start().await;
    gate.lets_one_pass();
    onceward.sends(event("evt_6")).await.is_executed(500);
    assert_eq!(onceward.metric(REFUSED_THEN_FAILED).await, 0.0, "no copy was refused");

    let (first, ()) = join!(onceward.sends(event("evt_7")), async {
        receiver.has_counted(2).await;
        onceward.sends(event("evt_7")).await.is_in_flight(409);
        onceward.sends(event("evt_7")).await.is_in_flight(409);
        gate.lets_one_pass();
    });
    first.is_executed(500);
    onceward.logs(text).await;
    assert_eq!(onceward.metric(REFUSED_THEN_FAILED).await, 1.0);

    assert_eq!(onceward.state(&first.operation()).await, "failed");
    gate.opens();
    onceward.sends(event("evt_7")).await.is_executed(500);
    receiver.was_called(3);
}

/// A copy whose patience is over does not do the work itself.
#[tokio::test]
async fn a_sender_that_has_waited_for_long_enough_is_told_so_and_the_attempt_goes_on() {
    let gate = Gate::default();
    let receiver = Receiver::behind(&gate, 200, "done\n").await;
    let settings = format!("{WAIT}\nanswer_within = \"500ms\"");
    let onceward = Onceward::in_front_of(&receiver).defaults(&settings).start().await;
    let began = Instant::now();
    let (own, copy) = join!(onceward.sends(event("evt_1")), async {
        receiver.has_counted(1).await;
        let began = Instant::now();
        let copy = onceward.sends(event("evt_1")).await;
        assert!(began.elapsed() >= Duration::from_millis(500), "it waits");
        copy
    });
    assert!(began.elapsed() >= Duration::from_millis(500));
    own.is_in_flight(504);
    copy.is_in_flight(409);
    assert_eq!(onceward.state(&own.operation()).await, "in_flight");
    receiver.was_called(1);

    gate.opens();
    onceward.comes_to_be(&own.operation(), "succeeded").await;
    onceward.sends(event("evt_1")).await.is_replayed(200);
    receiver.was_called(1);
}

#[tokio::test]
async fn a_failure_after_its_own_sender_was_told_to_come_back_is_counted() {
    let gate = Gate::default();
    let receiver = Receiver::behind(&gate, 500, "broken\n").await;
    let text = "a copy was refused, then the attempt failed";
    let builder = Onceward::in_front_of(&receiver).defaults("answer_within = \"300ms\"");
    let onceward = builder.expects_log(text).start().await;
    let own = onceward.sends(event("evt_1")).await;
    own.is_in_flight(504);
    gate.opens();
    onceward.comes_to_be(&own.operation(), "failed").await;
    onceward.logs(text).await;
    assert_eq!(onceward.metric(REFUSED_THEN_FAILED).await, 1.0);
}

/// On a tie the attempt's end answers; whoever answers, the outcome is recorded once.
#[tokio::test]
async fn an_attempt_that_ends_just_when_its_sender_has_waited_enough_has_one_answer() {
    let receiver = Receiver::that(|seen, _| {
        let pause = seen.header("x-pause").unwrap().parse().unwrap();
        Act::After(Duration::from_millis(pause), Box::new(Answer::new(200, "done\n").into()))
    })
    .await;
    let onceward =
        Onceward::in_front_of(&receiver).defaults("answer_within = \"100ms\"").start().await;
    let rounds = (0..60_usize).map(async |round| {
        let pause = (90 + round % 20).to_string();
        let copy = event(&format!("evt_{round}")).header("x-pause", &pause);
        let first = onceward.sends(copy.clone()).await;
        match first.disposition() {
            "executed" => first.is_executed(200),
            _ => first.is_in_flight(504),
        };
        onceward.comes_to_be(&first.operation(), "succeeded").await;
        onceward.sends(copy).await.is_replayed(200);
    });
    join_all(rounds).await;
    receiver.was_called(60);
}

#[tokio::test]
async fn after_a_failure_one_waiter_makes_the_next_attempt_and_the_others_wait_for_it() {
    let (gate, later) = (Gate::default(), Gate::default());
    let fails = Answer::new(500, "broken\n").into();
    let succeeds = Answer::new(200, "done\n").into();
    let receiver = twofold((&gate, fails), (&later, succeeds)).await;
    let onceward = Onceward::in_front_of(&receiver).defaults(WAIT).start().await;
    let copy = event("evt_1");
    let (replies, ()) = join!(onceward.sends_copies(&copy, 4), async {
        onceward.comes_to_count("onceward_connections", 5.0).await;
        receiver.has_counted(1).await;
        gate.opens();
        receiver.has_counted(2).await;
        let id = receiver.seen()[1].header("onceward-operation").unwrap().to_owned();
        assert_eq!(onceward.state(&id).await, "in_flight");
        receiver.was_called(2);
        later.opens();
    });
    let executed = of(&replies, "executed");
    let mut statuses: Vec<_> = executed.iter().map(|reply| reply.status).collect();
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 500], "{replies:?}");
    let replayed = of(&replies, "replayed");
    assert_eq!(replayed.len(), 2, "{replies:?}");
    for reply in replayed {
        reply.is_replayed(200);
        assert_eq!(reply.body, b"done\n");
    }
    receiver.was_called(2);
}

/// However often it fails, the waiters do not all rush at the upstream.
#[tokio::test]
async fn waiters_make_their_attempts_strictly_one_after_the_other() {
    let gate = Gate::default();
    let receiver = Receiver::behind(&gate, 500, "broken\n").await;
    let onceward = Onceward::in_front_of(&receiver).defaults(WAIT).start().await;
    let copy = event("evt_1");
    let (replies, ()) = join!(onceward.sends_copies(&copy, 6), async {
        onceward.comes_to_count("onceward_connections", 7.0).await;
        for attempt in 1..=6 {
            receiver.has_counted(attempt).await;
            let id = receiver.seen()[0].header("onceward-operation").unwrap().to_owned();
            let operation = onceward.operation(&id).await.unwrap();
            assert_eq!(operation["state"], "in_flight", "{operation}");
            assert_eq!(operation["attempts_total"], attempt, "{operation}");
            receiver.was_called(attempt);
            gate.lets_one_pass();
        }
    });
    for reply in &replies {
        reply.is_executed(500);
    }
    let mut numbers: Vec<_> = receiver
        .seen()
        .iter()
        .map(|seen| seen.header("onceward-attempt").unwrap().to_owned())
        .collect();
    numbers.sort_unstable();
    assert_eq!(numbers, ["1", "2", "3", "4", "5", "6"]);
}

/// The last free place of the route is for the next attempt, not a reason to be turned away.
#[tokio::test]
async fn waiters_go_on_waiting_where_one_attempt_at_a_time_is_allowed() {
    let gate = Gate::default();
    let receiver = Receiver::behind(&gate, 500, "broken\n").await;
    let settings = format!("{WAIT}\nwaiters_max = 5\nin_flight_max = 1");
    let builder = Onceward::in_front_of(&receiver).defaults(&settings);
    let onceward = builder.expects_log("a copy was refused, then").start().await;
    let (first, copies, ()) = join!(
        onceward.sends(event("evt_1")),
        async {
            receiver.has_counted(1).await;
            onceward.sends_copies(&event("evt_1"), 6).await
        },
        async {
            // The one that is too many shows that the others wait.
            onceward.comes_to_count(in_flight_answers(), 1.0).await;
            for attempt in 1..=6 {
                receiver.has_counted(attempt).await;
                gate.lets_one_pass();
            }
        }
    );
    first.is_executed(500);
    let executed = of(&copies, "executed");
    assert_eq!(executed.len(), 5, "{copies:?}");
    for reply in executed {
        reply.is_executed(500);
    }
    receiver.was_called(6);
}

#[tokio::test]
async fn waiters_beyond_their_number_are_refused_at_once_and_counted() {
    let gate = Gate::default();
    let receiver = Receiver::behind(&gate, 200, "done\n").await;
    let settings = format!("{WAIT}\nwaiters_max = 2");
    let onceward = Onceward::in_front_of(&receiver).defaults(&settings).start().await;
    let reached = "onceward_limits_reached_total{limit=\"waiters_max\"}";
    let (first, copies, ()) = join!(
        onceward.sends(event("evt_1")),
        async {
            receiver.has_counted(1).await;
            onceward.sends_copies(&event("evt_1"), 5).await
        },
        async {
            onceward.comes_to_count(reached, 3.0).await;
            onceward.comes_to_count(in_flight_answers(), 3.0).await;
            gate.opens();
        }
    );
    first.is_executed(200);
    assert_eq!(of(&copies, "replayed").len(), 2, "{copies:?}");
    for reply in of(&copies, "in-flight") {
        reply.is_in_flight(409);
    }
    assert_eq!(onceward.metric(reached).await, 3.0);
    receiver.was_called(1);
}

/// The attempt is not starved by the copies that wait for it.
#[tokio::test]
async fn two_hundred_waiters_do_not_keep_the_attempt_from_its_end() {
    let gate = Gate::default();
    let receiver = Receiver::behind(&gate, 200, "done\n").await;
    let settings = format!("{WAIT}\nwaiters_max = 200\nin_flight_max = 4");
    let onceward = Onceward::in_front_of(&receiver).defaults(&settings).start().await;
    let (first, copies, ()) = join!(
        onceward.sends(event("evt_1")),
        async {
            receiver.has_counted(1).await;
            onceward.sends_copies(&event("evt_1"), 200).await
        },
        async {
            onceward.comes_to_count("onceward_connections", 202.0).await;
            gate.opens();
        }
    );
    first.is_executed(200);
    for reply in &copies {
        reply.is_replayed(200);
    }
    receiver.was_called(1);
}

/// The first copy never arrived, so this one is the first.
#[tokio::test]
async fn a_copy_that_calls_itself_a_retry_is_forwarded_if_it_is_the_first_to_arrive() {
    let receiver = Receiver::that_answers(200, "done\n").await;
    let onceward = Onceward::in_front_of(&receiver).start().await;
    let retry = |number: &str| {
        let copy = event("Ev1").header("x-slack-retry-num", number);
        copy.header("x-slack-retry-reason", "http_timeout")
    };
    onceward.sends(retry("1")).await.is_executed(200);
    onceward.sends(retry("2")).await.is_replayed(200);
    receiver.was_called(1);
    assert_eq!(receiver.seen()[0].header("x-slack-retry-num"), Some("1"));
}

/// The work is slow, and the sender's patience short.
#[tokio::test]
async fn a_sender_that_gives_up_and_sends_again_gets_the_answer_of_its_first_request() {
    let gate = Gate::default();
    let receiver = Receiver::behind(&gate, 200, "done\n").await;
    let onceward = Onceward::in_front_of(&receiver).start().await;
    let first = sent_by(&onceward, &event("evt_11")).await;
    receiver.has_counted(1).await;
    first.hangs_up();
    let second = onceward.sends(event("evt_11")).await;
    second.is_in_flight(409);
    gate.opens();
    onceward.comes_to_be(&second.operation(), "succeeded").await;
    onceward.sends(event("evt_11")).await.is_replayed(200);
    receiver.was_called(1);
}

/// Neither by FIN nor by RST does a waiter take anything from the attempt or from other waiters.
#[tokio::test]
async fn a_waiter_that_hangs_up_changes_nothing() {
    let gate = Gate::default();
    let receiver = Receiver::behind(&gate, 200, "done\n").await;
    let settings = format!("{WAIT}\nwaiters_max = 3");
    let onceward = Onceward::in_front_of(&receiver).defaults(&settings).start().await;
    let (first, third) = join!(onceward.sends(event("evt_1")), async {
        receiver.has_counted(1).await;
        let leaves = sent_by(&onceward, &event("evt_1")).await;
        let breaks = sent_by(&onceward, &event("evt_1")).await;
        onceward.comes_to_count("onceward_connections", 4.0).await;
        leaves.hangs_up();
        breaks.resets();
        assert_eq!(onceward.metric("onceward_in_flight").await, 1.0);
        receiver.was_called(1);
        let (third, ()) = join!(onceward.sends(event("evt_1")), async { gate.opens() });
        third
    });
    first.is_executed(200);
    third.is_replayed(200);
    receiver.was_called(1);
}

/// No waiter makes the next attempt: nobody knows whether the first one was done.
#[tokio::test]
async fn an_uncertain_outcome_is_told_to_every_waiter() {
    let gate = Gate::default();
    let closed = gate.clone();
    let receiver =
        Receiver::that(move |_, _| Act::When(closed.clone(), Box::new(Act::Close))).await;
    let settings = format!("{WAIT}\nuncertain_status = 425");
    let builder = Onceward::in_front_of(&receiver).defaults(&settings);
    let onceward = builder.expects_log("nobody knows whether the operation was done").start().await;
    let copy = event("evt_1");
    let (replies, ()) = join!(onceward.sends_copies(&copy, 6), async {
        onceward.comes_to_count("onceward_connections", 7.0).await;
        receiver.has_counted(1).await;
        gate.opens();
    });
    let executed = of(&replies, "executed");
    assert_eq!(executed.len(), 1, "{replies:?}");
    executed[0].is_executed_as("upstream-broken", 502).comes_back();
    let uncertain = of(&replies, "uncertain");
    assert_eq!(uncertain.len(), 5, "{replies:?}");
    for reply in uncertain {
        assert_eq!(reply.status, 425, "{reply:?}");
        assert_eq!(reply.problem()["type"], "urn:onceward:problem:uncertain");
        reply.comes_back();
    }
    assert_eq!(onceward.state(&executed[0].operation()).await, "uncertain");
    receiver.was_called(1);
}

#[tokio::test]
async fn above_the_attempts_of_a_route_new_events_are_refused_and_nothing_is_claimed() {
    let gate = Gate::default();
    let receiver = Receiver::behind(&gate, 200, "done\n").await;
    let onceward = Onceward::in_front_of(&receiver).defaults("in_flight_max = 1").start().await;
    gate.lets_one_pass();
    onceward.sends(event("evt_old")).await.is_executed(200);
    let (first, ()) = join!(onceward.sends(event("evt_1")), async {
        receiver.has_counted(2).await;
        onceward.sends(event("evt_2")).await.is_refused(503, "overloaded").comes_back();
        onceward.sends(event("evt_old")).await.is_replayed(200);
        onceward.sends(event("evt_1")).await.is_in_flight(409);
        gate.opens();
    });
    first.is_executed(200);
    let reached = "onceward_limits_reached_total{limit=\"in_flight_max\"}";
    assert_eq!(onceward.metric(reached).await, 1.0);
    onceward.sends(event("evt_2")).await.is_executed(200);
    assert_eq!(receiver.seen()[2].header("onceward-attempt"), Some("1"), "it had claimed nothing");
    receiver.was_called(3);
}

/// A mismatch is told before that the operation is in flight, and does the first request no harm.
#[tokio::test]
async fn another_request_under_the_key_of_one_in_flight_is_mismatched() {
    let gate = Gate::default();
    let receiver = Receiver::behind(&gate, 200, "done\n").await;
    let waiting =
        format!("[routes.waiting]\npath = \"/waiting\"\nupstream = \"{}\"\n{WAIT}", receiver.url());
    let onceward = Onceward::in_front_of(&receiver).routes(&waiting).start().await;
    for (before, path) in ["/hooks", "/waiting"].into_iter().enumerate() {
        let original = Event::bytes("{\"amount\":1}").keyed("key_1").to(path);
        let other = Event::bytes("{\"amount\":2}").keyed("key_1").to(path);
        let (first, ()) = join!(onceward.sends(original.clone()), async {
            receiver.has_counted(before + 1).await;
            onceward.sends(other.clone()).await.is_mismatched();
            gate.lets_one_pass();
        });
        first.is_executed(200);
        onceward.sends(other).await.is_mismatched();
        onceward.sends(original).await.is_replayed(200);
        receiver.was_called(before + 1);
    }
}

#[tokio::test]
async fn work_that_outlives_the_lease_many_times_is_done_once() {
    let gate = Gate::default();
    let receiver = Receiver::behind(&gate, 200, "done\n").await;
    let onceward = Onceward::in_front_of(&receiver).defaults("lease = \"3s\"").start().await;
    let (first, ()) = join!(onceward.sends(event("evt_1")), async {
        receiver.has_counted(1).await;
        // A lease is renewed at each third of it, so nine renewals take three leases.
        for renewals in 1..=9 {
            onceward.comes_to_count(RENEWALS, f64::from(renewals)).await;
            onceward.sends(event("evt_1")).await.is_in_flight(409);
        }
        gate.opens();
    });
    first.is_executed(200);
    let operation = onceward.operation(&first.operation()).await.unwrap();
    assert_eq!(operation["attempts_total"], 1, "{operation}");
    assert_eq!(operation["state"], "succeeded", "{operation}");
    onceward.sends(event("evt_1")).await.is_replayed(200);
    receiver.was_called(1);
}

/// Whoever was told to come back, and the person who reads the log, learn how it ended.
#[tokio::test]
async fn a_success_after_its_sender_was_told_to_come_back_is_logged() {
    let gate = Gate::default();
    let receiver = Receiver::behind(&gate, 200, "done\n").await;
    let builder = Onceward::in_front_of(&receiver).defaults("answer_within = \"50ms\"");
    let onceward = builder.start().await;
    let first = onceward.sends(event("evt_1")).await;
    first.is_in_flight(504);
    gate.opens();
    onceward.logs("a slow attempt has succeeded").await;
    let log = onceward.log();
    let is_it = |line: &&serde_json::Value| line.to_string().contains("a slow attempt");
    let line = log.iter().find(is_it).unwrap();
    assert_eq!((&line["level"], &line["route.name"]), (&"INFO".into(), &"hooks".into()));
    assert_eq!(line["operation.id"], first.operation());
    onceward.sends(event("evt_1")).await.is_replayed(200);
}

/// A person has to act: the line has all that this needs.
#[tokio::test]
async fn the_warning_about_an_uncertain_operation_says_what_it_is_and_what_to_type_next() {
    let receiver = Receiver::that(|_, _| Act::Close).await;
    let held = "nobody knows whether the operation was done";
    let onceward = Onceward::in_front_of(&receiver).expects_log(held).start().await;
    let first = onceward.sends(Event::bytes("{}").keyed("order-7")).await;
    first.is_executed_as("upstream-broken", 502);
    onceward.logs(held).await;
    let log = onceward.log();
    let line = log.iter().find(|line| line["message"] == held).unwrap();
    let id = first.operation();
    assert_eq!(line["operation.id"], id);
    assert_eq!(line["operation.key"], "order-7");
    assert_eq!(line["route.name"], "hooks");
    assert_eq!(
        line["next"],
        format!("onceward operations show {id} --admin http://{}", onceward.admin)
    );
}
