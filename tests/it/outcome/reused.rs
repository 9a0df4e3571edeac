//! Connections that are used again: nobody gets another one's answer, and nothing is sent twice.

use std::collections::HashMap;
use std::time::Duration;

use super::{HELD, answered, is_held, standing, uncertain};
use crate::support::{Act, Answer, Onceward, Receiver, event};

/// An answer of a server that says that it keeps the connection open.
fn kept_open(answer: Answer) -> Answer {
    answer.header("keep-alive", "timeout=600")
}

/// A client that repeats a request on a dead connection would count two here.
#[tokio::test]
async fn a_request_read_whole_on_a_reused_connection_that_dies_is_not_sent_again() {
    let receiver = Receiver::that(|seen, _| match seen.header("x-second") {
        None => kept_open(Answer::new(200, "first")).into(),
        Some("close") => Act::Close,
        Some(_) => Act::Reset,
    })
    .await;
    for (round, second) in ["close", "reset"].into_iter().enumerate() {
        let onceward = Onceward::in_front_of(&receiver).expects_log(HELD).start().await;
        onceward.sends(event(&format!("evt_{second}"))).await.is_executed(200);
        let dies = event(&format!("dies_{second}")).header("x-second", second);
        let reply = onceward.sends(dies.clone()).await;
        reply.is_executed_as("upstream-broken", 502).comes_back();
        assert_eq!(standing(&onceward, &reply).await, uncertain("connection-lost", None));
        is_held(&onceward, dies).await;
        let seen = receiver.seen();
        let [.., first, last] = seen.as_slice() else { panic!("{seen:?}") };
        assert_eq!(first.connection, last.connection, "the idle connection was used");
        receiver.was_called(2 * round + 2);
    }
}

/// The receiver closes its connections around the moment at which they are used again.
/// What dies before a byte was written goes out on another one, unseen; what dies after is
/// uncertain; nothing is sent twice.
#[tokio::test]
async fn connections_that_close_while_they_are_taken_cause_no_duplicate() {
    let receiver = Receiver::that(|seen, _| {
        let pause = Duration::from_micros(seen.connection as u64 % 20 * 150);
        // It lies: an address that says nothing would be found out before it is trusted.
        Act::AnswerThenClose(kept_open(Answer::new(200, "ok")), pause)
    })
    .await;
    let onceward = Onceward::in_front_of(&receiver).expects_log(HELD).start().await;
    let workers = (0..10).map(|worker| {
        let onceward = &onceward;
        async move {
            for round in 0..30 {
                let event = event(&format!("evt_{worker}_{round}"));
                let reply = onceward.sends(event.clone()).await;
                let stands = standing(onceward, &reply).await;
                if reply.status == 200 {
                    reply.is_executed(200);
                    assert_eq!(stands, answered(1, "succeeded", 200));
                } else {
                    reply.is_executed_as("upstream-broken", 502).comes_back();
                    assert_eq!(stands, uncertain("connection-lost", None));
                    is_held(onceward, event).await;
                }
            }
        }
    });
    futures_util::future::join_all(workers).await;
    let mut times: HashMap<Vec<u8>, usize> = HashMap::new();
    for seen in receiver.seen() {
        *times.entry(seen.body).or_default() += 1;
    }
    assert!(times.values().all(|times| *times == 1), "{times:?}");
}

/// Without idle connections there is nothing that can die so.
#[tokio::test]
async fn without_keepalive_each_event_has_a_connection_of_its_own() {
    let receiver = Receiver::that_answers(200, "ok").await;
    let onceward = Onceward::in_front_of(&receiver).defaults("keepalive = \"0s\"").start().await;
    for round in 0..30 {
        onceward.sends(event(&format!("evt_{round}"))).await.is_executed(200);
    }
    let connections: Vec<_> = receiver.seen().iter().map(|seen| seen.connection).collect();
    assert_eq!(connections, (0..30).collect::<Vec<_>>());
}

#[tokio::test]
async fn a_second_answer_is_nobodys() {
    let receiver = Receiver::that(|seen, _| match seen.connection {
        0 => {
            let one = kept_open(Answer::new(200, "one"));
            let two = [one.raw(), Answer::new(500, "two").raw()].concat();
            Act::RawThenStay(two)
        }
        _ => Answer::new(200, "three").into(),
    })
    .await;
    let onceward = Onceward::in_front_of(&receiver).start().await;
    let first = onceward.sends(event("evt_1")).await;
    first.is_executed(200);
    assert_eq!(first.text(), "one");
    let second = onceward.sends(event("evt_2")).await;
    second.is_executed(200);
    assert_eq!(second.text(), "three");
    for reply in [first, second] {
        assert_eq!(standing(&onceward, &reply).await, answered(1, "succeeded", 200));
    }
    receiver.was_called(2);
}

#[tokio::test]
async fn bytes_after_an_answer_do_not_begin_the_next_one() {
    let receiver = Receiver::that(|seen, _| match seen.connection {
        0 => {
            let more = [kept_open(Answer::new(200, "one")).raw(), b"HTTP/1.1 2".into()].concat();
            Act::RawThenStay(more)
        }
        _ => Answer::new(200, "two").into(),
    })
    .await;
    let onceward = Onceward::in_front_of(&receiver).start().await;
    let first = onceward.sends(event("evt_1")).await;
    assert_eq!(first.is_executed(200).text(), "one");
    let second = onceward.sends(event("evt_2")).await;
    assert_eq!(second.is_executed(200).text(), "two");
    let again = onceward.sends(event("evt_1")).await;
    assert_eq!(again.is_replayed(200).text(), "one");
    receiver.was_called(2);
}

/// What comes on an idle connection, a while after its answer.
#[tokio::test]
async fn an_answer_to_nothing_on_an_idle_connection_is_nobodys() {
    use crate::support::{BareReceiver, Gate};
    let written = Gate::default();
    let says = written.clone();
    let receiver = BareReceiver::that(move |mut bare| {
        let says = says.clone();
        async move {
            while let Some(seen) = bare.reads_request().await {
                let text = format!("{}-{}", bare.connection, seen.body.len());
                bare.writes(&kept_open(Answer::new(200, text)).raw()).await;
                if bare.connection == 0 {
                    bare.writes(&Answer::new(200, "stray").raw()).await;
                }
                says.lets_one_pass();
            }
        }
    })
    .await;
    let onceward = Onceward::in_front_of_url(&receiver.url()).start().await;
    onceward.sends(event("evt_1")).await.is_executed(200);
    written.passes().await;
    let second = onceward.sends(event("evt_2")).await;
    second.is_executed(200);
    assert!(second.text().starts_with("1-"), "{second:?}");
    receiver.was_called(2);
}
