//! Who sends a body slowly takes no place from those who are served.

use std::time::Duration;

use tokio::time::{Instant, timeout};

use super::{KIB, big, chunked, reached};
use crate::support::http2::{Http2Sender, field, post};
use crate::support::{Event, Gate, Onceward, PATIENCE, RawSender, Receiver, event};

/// All but the last byte of an event.
async fn begins(onceward: &Onceward) -> RawSender {
    let mut sender = onceward.connects().await;
    let raw = event("evt_slow").raw();
    sender.writes(&raw[..raw.len() - 1]).await;
    sender
}

#[tokio::test]
async fn bodies_that_have_not_arrived_take_no_place_of_requests_in_flight() {
    let receiver = Receiver::that_answers(200, "ok").await;
    // A few, as a place is given back only a moment after the last byte of its answer was read.
    let limits = "requests_in_flight_max = 8\nbodies_pending_max = 64\nbody_timeout = \"120s\"\n\
                  body_rate_min = \"0B\"";
    let onceward = Onceward::in_front_of(&receiver).limits(limits).start().await;
    let mut slow = Vec::new();
    for _ in 0..63 {
        slow.push(begins(&onceward).await);
    }
    for number in 0..5 {
        onceward.sends(event(&format!("evt_{number}"))).await.is_executed(200);
    }
    let mut last = slow.pop().unwrap();
    last.writes(b"}").await;
    last.reads_reply().await.is_executed(200);
    receiver.was_called(6);
}

#[tokio::test]
async fn bodies_beyond_bodies_pending_max_are_told_to_come_back() {
    let receiver = Receiver::that_answers(200, "ok").await;
    let limits = "bodies_pending_max = 2\nbody_timeout = \"120s\"\nbody_rate_min = \"0B\"";
    let onceward = Onceward::in_front_of(&receiver).limits(limits).start().await;
    let mut slow = [begins(&onceward).await, begins(&onceward).await, begins(&onceward).await];
    onceward.comes_to_count(&reached("bodies_pending_max"), 1.0).await;
    // Which of them came too late is not known.
    let mut refused = 0;
    for sender in &mut slow {
        sender.tries_to_write(b"}").await;
        let reply = sender.reads_reply().await;
        if reply.status == 503 {
            reply.is_refused(503, "overloaded").comes_back();
            refused += 1;
        }
    }
    assert_eq!(refused, 1);
    onceward.sends(event("evt_after")).await.is_executed(200);
}

/// What has come with its head is not waited for, however it is framed.
#[tokio::test]
async fn a_body_that_is_there_takes_no_place_among_the_pending() {
    let receiver = Receiver::that_answers(200, "ok").await;
    let limits = "bodies_pending_max = 1\nbody_timeout = \"120s\"\nbody_rate_min = \"0B\"";
    let onceward = Onceward::in_front_of(&receiver).limits(limits).start().await;
    let mut slow = vec![begins(&onceward).await];
    while onceward.metric(&reached("bodies_pending_max")).await == 0.0 {
        slow.push(begins(&onceward).await);
        assert!(slow.len() < 100);
    }
    let empty = Event::bytes("").by("OPTIONS");
    for bytes in [chunked(&empty), chunked(&event("evt_1")), event("evt_2").raw()] {
        let mut sender = onceward.connects().await;
        sender.writes(&bytes).await;
        assert_eq!(sender.reads_reply().await.status, 200);
    }
    receiver.was_called(3);
}

#[tokio::test]
async fn a_connection_goes_on_after_a_body_in_chunks() {
    let receiver = Receiver::that_answers(200, "ok").await;
    let onceward = Onceward::in_front_of(&receiver).start().await;
    let mut sender = onceward.connects().await;
    let all: Vec<u8> = [
        chunked(&event("evt_1")),
        chunked(&Event::bytes("").by("OPTIONS")),
        chunked(&Event::bytes("no JSON")),
        chunked(&big("key", 40 * KIB)),
        event("evt_2").raw(),
    ]
    .concat();
    // All of them are there before the first is answered.
    sender.writes(&all).await;
    for status in [200, 200, 400, 200, 200] {
        let reply = sender.reads_answer().await;
        assert_eq!((reply.status, reply.header("connection")), (status, None), "{reply:?}");
    }
    receiver.was_called(4);
}

/// One that is slow but steady is not looked at before its fifth second.
#[tokio::test]
async fn a_body_below_the_rate_gets_408_and_one_above_it_comes_through() {
    let receiver = Receiver::that_answers(200, "ok").await;
    let limits = "body_rate_min = \"1KiB\"\nbody_timeout = \"300s\"";
    let onceward = Onceward::in_front_of(&receiver).limits(limits).start().await;
    // This one has sent enough for minutes, and stands still until the other one is refused.
    let raw = big("above", 400 * KIB).raw();
    let (first, last) = raw.split_at(raw.len() - 1);
    let mut above = onceward.connects().await;
    above.writes(first).await;
    let began = Instant::now();
    let mut below = begins(&onceward).await;
    below.reads_reply().await.is_refused(408, "body-timeout");
    let took = began.elapsed();
    above.writes(last).await;
    above.reads_reply().await.is_executed(200);
    assert!(took >= Duration::from_secs(5), "{took:?}");
    assert_eq!(onceward.metric(&reached("body_rate_min")).await, 1.0);
    assert_eq!(onceward.metric(&reached("body_timeout")).await, 0.0);
}

#[tokio::test]
async fn one_peer_has_no_more_than_its_share_of_pending_bodies() {
    let receiver = Receiver::that_answers(200, "ok").await;
    let limits = "bodies_pending_max = 4\nper_peer_max = 0.5\nbody_timeout = \"120s\"\n\
                  body_rate_min = \"0B\"";
    let trusted = "trusted_proxies = [\"127.0.0.1/32\"]";
    let builder = Onceward::in_front_of(&receiver).limits(limits).server(trusted);
    let onceward = builder.start().await;
    let from = |client: &str| event("evt").header("x-forwarded-for", client);
    let begins = async |client: &str| {
        let mut sender = onceward.connects().await;
        let raw = from(client).raw();
        sender.writes(&raw[..raw.len() - 1]).await;
        sender
    };
    let mut three = [
        begins("192.0.2.1").await,
        begins("192.0.2.1").await,
        begins("192.0.2.9, 192.0.2.1").await,
    ];
    onceward.comes_to_count(&reached("per_peer_max"), 1.0).await;
    let mut other = begins("192.0.2.2").await;
    other.writes(b"}").await;
    other.reads_reply().await.is_executed(200);
    assert_eq!(onceward.metric(&reached("bodies_pending_max")).await, 0.0);
    // Which of them came too late is not known.
    let mut refused = 0;
    for sender in &mut three {
        sender.tries_to_write(b"}").await;
        refused += usize::from(sender.reads_reply().await.status == 503);
    }
    assert_eq!(refused, 1);
}

#[tokio::test]
async fn one_peer_has_no_more_than_its_share_of_connections_and_requests() {
    let gate = Gate::default();
    let receiver = Receiver::behind(&gate, 200, "ok").await;
    let limits = "connections_max = 40\nrequests_in_flight_max = 4\nper_peer_max = 0.25";
    let onceward = Onceward::in_front_of(&receiver).limits(limits).start().await;
    let second = async {
        receiver.has_counted(1).await;
        onceward.sends(event("evt_2")).await.is_refused(503, "overloaded").comes_back();
        assert_eq!(onceward.metric(&reached("per_peer_max")).await, 1.0);
        gate.opens();
    };
    let (first, ()) = tokio::join!(onceward.sends(event("evt_1")), second);
    first.is_executed(200);

    let mut crowd = Vec::new();
    while onceward.metric(&reached("per_peer_max")).await < 2.0 {
        crowd.push(onceward.connects().await);
        assert!(crowd.len() < 100);
    }
    assert!(onceward.metric("onceward_connections").await <= 14.0, "with those of the admin API");
    let other = reqwest::Client::builder().no_proxy();
    let other = other.local_address("127.0.0.9".parse::<std::net::IpAddr>().unwrap());
    let url = format!("http://{}/hooks", onceward.address);
    let reply = other.build().unwrap().post(url).body(event("evt_3").body).send().await.unwrap();
    assert_eq!(reply.status(), 200);
}

/// The ways in which a sender gives a connection up.
#[derive(Debug, Clone, Copy)]
enum GivesUp {
    /// FIN.
    InGoodOrder,
    /// RST.
    ByReset,
    /// GOAWAY with an error (RFC 9113, section 5.4.1).
    ByGoodbye,
}

impl GivesUp {
    /// Gives back what is still open on the sender's side.
    async fn its(self, mut sender: Http2Sender) -> Option<Http2Sender> {
        match self {
            Self::InGoodOrder => sender.ends().await,
            Self::ByReset => {
                sender.resets();
                return None;
            }
            Self::ByGoodbye => sender.says_goodbye(INTERNAL_ERROR).await,
        }
        Some(sender)
    }
}

/// RFC 9113, section 7.
const INTERNAL_ERROR: u32 = 2;

/// On HTTP/2 too nobody waits for the rest of a body whose sender is gone.
#[tokio::test]
async fn a_connection_that_is_given_up_frees_its_places_at_once() {
    let receiver = Receiver::that_answers(200, "ok").await;
    let limits = "bodies_pending_max = 2\nbody_timeout = \"1h\"\nbody_rate_min = \"0B\"";
    let onceward = Onceward::in_front_of(&receiver).limits(limits).start().await;
    // That on which the metrics are read.
    let connections = 1.0;
    for gives_up in [GivesUp::InGoodOrder, GivesUp::ByReset, GivesUp::ByGoodbye] {
        let before = onceward.metric(&reached("bodies_pending_max")).await;
        let mut sender = Http2Sender::connects(onceward.address, 1 << 16).await;
        for _ in 0..3 {
            sender.asks(&post("/hooks"), None).await;
        }
        // The third one has no place.
        onceward.comes_to_count(&reached("bodies_pending_max"), before + 1.0).await;
        if let Some(mut open) = gives_up.its(sender).await {
            open.is_closed().await;
        }
        onceward.comes_down_to("onceward_connections", connections).await;
        let mut two = [begins(&onceward).await, begins(&onceward).await];
        for slow in &mut two {
            slow.writes(b"}").await;
            slow.reads_reply().await;
        }
        drop(two);
        assert_eq!(onceward.metric(&reached("bodies_pending_max")).await, before + 1.0);
        onceward.comes_down_to("onceward_connections", connections).await;
    }
    receiver.was_called(1);
}

/// What is complete is forwarded though its sender has gone; what is not is not waited for.
#[tokio::test]
async fn what_is_complete_is_served_on_a_connection_that_is_given_up() {
    let gate = Gate::default();
    let receiver = Receiver::behind(&gate, 200, "ok").await;
    let limits = "bodies_pending_max = 1\nbody_timeout = \"1h\"\nbody_rate_min = \"0B\"";
    let onceward = Onceward::in_front_of(&receiver).limits(limits).start().await;
    for (number, gives_up) in
        [GivesUp::InGoodOrder, GivesUp::ByReset, GivesUp::ByGoodbye].into_iter().enumerate()
    {
        let complete = event(&format!("evt_{number}"));
        // Who expects a 100 (Continue) needs a place though its body has come.
        let copy = complete.clone().header("expect", "100-continue");
        let mut sender = Http2Sender::connects(onceward.address, 1 << 16).await;
        sender.asks(&post("/hooks"), Some(&complete.body)).await;
        receiver.has_counted(number + 1).await;
        // A copy may hold the place when the rest of this one is awaited: then it is refused, and
        // another one is sent.
        let takes_the_place = async {
            sender.asks(&post("/hooks"), None).await;
            while onceward.sends(copy.clone()).await.disposition() != "refused" {
                sender.asks(&post("/hooks"), None).await;
            }
        };
        timeout(PATIENCE, takes_the_place).await.expect("its place is taken");
        let _open = gives_up.its(sender).await;
        // Its place is free, and then its event is done.
        onceward.sends_until_it_is(&copy, "in-flight").await;
        gate.lets_one_pass();
        onceward.sends_until_it_is(&copy, "replayed").await;
        receiver.was_called(number + 1);
    }
}

/// The place is taken until the answer is sent, not only until there is one.
#[tokio::test]
async fn an_answer_that_nobody_reads_holds_its_place_until_it_is_given_up() {
    let receiver = Receiver::that_answers(200, "a long answer").await;
    let limits = "requests_in_flight_max = 3\nwrite_timeout = \"5s\"";
    let onceward = Onceward::in_front_of(&receiver).limits(limits).start().await;
    let mut first = onceward.connects().await;
    first.writes(&event("evt").keyed("k").raw()).await;
    first.reads_answer().await.is_executed(200);
    first.hangs_up();
    // With its connection its place is surely given back.
    onceward.comes_down_to("onceward_connections", 1.0).await;
    let mut sender = Http2Sender::connects(onceward.address, 0).await;
    for _ in 0..3 {
        let block = [post("/hooks"), field("x-idempotency-key", "k")].concat();
        sender.asks(&block, Some(&event("evt").body)).await;
    }
    let replayed = "onceward_requests_total{route=\"hooks\",disposition=\"replayed\"}";
    onceward.comes_to_count(replayed, 3.0).await;
    onceward.sends(event("evt").keyed("k")).await.is_refused(503, "overloaded");
    onceward.comes_to_count(&reached("write_timeout"), 1.0).await;
    onceward.comes_down_to("onceward_buffered_bytes", 0.0).await;
    let copy = event("evt").keyed("k");
    onceward.sends_until(&copy, |reply| reply.status != 503).await.is_replayed(200);
}
