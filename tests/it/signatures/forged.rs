//! A forged copy of an event changes nothing, whenever it comes, and learns nothing.

use tokio::join;

use super::{CLAIMS, stripe_event, verifying};
use crate::support::{Event, Gate, Onceward, Receiver};

const SECRET: &str = "whsec_real";

fn forged(id: &str) -> Event {
    stripe_event(id, "a guess").header("connection", "close")
}

/// The whole answer as it stands on the wire, but for its date.
async fn answer(onceward: &Onceward, event: &Event) -> String {
    let mut sender = onceward.connects().await;
    sender.writes(&event.raw()).await;
    let bytes = sender.reads_to_the_end().await;
    let text = String::from_utf8(bytes).unwrap();
    let lines = text.split("\r\n").filter(|line| !line.to_ascii_lowercase().starts_with("date:"));
    lines.collect::<Vec<_>>().join("\r\n")
}

async fn starts(receiver: &Receiver, when_in_flight: &str) -> Onceward {
    let setting = format!("when_in_flight = \"{when_in_flight}\"");
    verifying(receiver, "stripe", SECRET).routes(&setting).start().await
}

/// Before, while and after the real event is forwarded, also where copies wait.
#[tokio::test]
async fn a_forged_copy_changes_nothing_before_during_and_after_the_real_event() {
    for when_in_flight in ["refuse", "wait"] {
        let gate = Gate::default();
        let receiver = Receiver::behind(&gate, 200, "the real answer").await;
        let onceward = starts(&receiver, when_in_flight).await;

        let unknown = answer(&onceward, &forged("evt_unknown")).await;
        assert!(unknown.starts_with("HTTP/1.1 401 "), "{unknown}");
        let before = answer(&onceward, &forged("evt_60")).await;
        receiver.was_called(0);
        assert_eq!(onceward.metric(CLAIMS).await, 0.0);

        let attack = async {
            receiver.has_counted(1).await;
            let during = answer(&onceward, &forged("evt_60")).await;
            assert_eq!(onceward.metric(CLAIMS).await, 1.0);
            gate.opens();
            during
        };
        let (real, during) = join!(onceward.sends(stripe_event("evt_60", SECRET)), attack);
        real.is_executed(200);

        let after = answer(&onceward, &forged("evt_60")).await;
        for answer in [before, during, after] {
            assert_eq!(answer, unknown, "it tells whether the event is known");
        }
        let copy = onceward.sends(stripe_event("evt_60", SECRET)).await;
        copy.is_replayed(200);
        assert_eq!(copy.text(), "the real answer");
        receiver.was_called(1);
        assert_eq!(onceward.state(&real.operation()).await, "succeeded");
    }
}

/// The same where its first attempt has failed.
#[tokio::test]
async fn a_forged_copy_of_a_failed_event_makes_no_attempt() {
    let receiver = Receiver::that_answers(500, "no").await;
    let onceward = starts(&receiver, "refuse").await;
    let real = onceward.sends(stripe_event("evt_1", SECRET)).await;
    real.is_executed(500);
    onceward.sends(forged("evt_1")).await.is_refused(401, "signature-invalid");
    receiver.was_called(1);
    assert_eq!(onceward.state(&real.operation()).await, "failed");
    onceward.sends(stripe_event("evt_1", SECRET)).await.is_executed(500);
    receiver.was_called(2);
}

/// A method or a path under which a forged copy might slip through.
#[tokio::test]
async fn no_other_method_is_a_way_around_the_signature() {
    let receiver = Receiver::that_answers(200, "ok").await;
    let onceward = starts(&receiver, "refuse").await;
    for method in ["PUT", "PATCH", "DELETE"] {
        let reply = onceward.sends(forged("evt_1").by(method)).await;
        reply.is_refused(401, "signature-invalid");
    }
    for path in ["/hooks/", "/hooks/below", "/hooks?x=1"] {
        let reply = onceward.sends(forged("evt_1").to(path)).await;
        reply.is_refused(401, "signature-invalid");
    }
    receiver.was_called(0);
}
