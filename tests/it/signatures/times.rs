//! When a signature is checked: once, as it arrives.

use std::time::Duration;

use onceward::clock::Clock;
use onceward::operation::Timestamp;
use onceward::provider::signature::Certificates;
use tokio::join;

use crate::support::{Act, Answer, Event, Gate, Inside, Receiver, event, signing};

const NOW: u64 = 1_800_000_000;
const SECRET: &str = "whsec_x";

fn proxy(receiver: &Receiver, route: &str) -> Inside {
    let toml = format!(
        "[store.memory]\n[routes.hooks]\npath = \"/hooks\"\nupstream = \"{}\"\n\
         provider = \"stripe\"\nsecrets = [{{ env = \"THE_SECRET\" }}]\n{route}\n",
        receiver.url()
    );
    let certificates = Certificates::new(Clock::system()).unwrap();
    let clock = Clock::manual(Timestamp(NOW * 1000));
    Inside::with(&toml, &[("THE_SECRET", SECRET)], clock, certificates)
}

fn signed(id: &str, at: u64) -> Event {
    let event = event(id);
    let signature = signing::stripe(SECRET, at, &event.body);
    event.header("stripe-signature", &signature)
}

/// The edges of the sender's own tolerance, and of the route's.
#[tokio::test]
async fn a_timestamp_may_be_as_far_from_now_as_the_tolerance_and_no_further() {
    for (route, tolerance) in [("", 300), ("tolerance = \"10s\"", 10), ("tolerance = \"1h\"", 3600)]
    {
        let receiver = Receiver::that_answers(200, "ok").await;
        let proxy = proxy(&receiver, route);
        proxy.sends(signed("evt_1", NOW - tolerance)).await.is_executed(200);
        proxy.sends(signed("evt_2", NOW + tolerance)).await.is_executed(200);
        for at in [NOW - tolerance - 1, NOW + tolerance + 1] {
            let reply = proxy.sends(signed("evt_3", at)).await;
            reply.is_refused(401, "signature-stale");
        }
        receiver.was_called(2);
    }
}

/// An attempt that takes longer than the tolerance is the sender's all the same, and its
/// upstream is told so. A later copy has to be fresh, also of an event that is known.
#[tokio::test]
async fn an_event_is_checked_once_when_it_arrives() {
    let gate = Gate::default();
    let receiver = Receiver::behind(&gate, 200, "done").await;
    let proxy = proxy(&receiver, "tolerance = \"2s\"");
    let time_passes = async {
        receiver.has_counted(1).await;
        proxy.clock.advance(Duration::from_secs(3));
        gate.opens();
    };
    let (reply, ()) = join!(proxy.sends(signed("evt_61", NOW)), time_passes);
    reply.is_executed(200);
    assert_eq!(receiver.seen()[0].header("onceward-verified"), Some("stripe"));
    proxy.sends(signed("evt_61", NOW)).await.is_refused(401, "signature-stale");
    proxy.sends(signed("evt_61", NOW + 3)).await.is_replayed(200);
    receiver.was_called(1);
}

/// An upstream that finds an event too old has failed to do it. That answer is no outcome for
/// good: the sender's next copy, signed anew, is a new attempt.
#[tokio::test]
async fn an_upstream_that_refuses_an_old_signature_gets_the_next_copy() {
    let receiver = Receiver::that(|seen, _| -> Act {
        let signature = seen.header("stripe-signature").unwrap();
        let is_fresh = signature.starts_with(&format!("t={NOW},"));
        Answer::new(if is_fresh { 200 } else { 400 }, "").into()
    });
    let receiver = receiver.await;
    let proxy = proxy(&receiver, "");
    proxy.sends(signed("evt_1", NOW - 200)).await.is_executed(400);
    proxy.sends(signed("evt_1", NOW)).await.is_executed(200);
    proxy.sends(signed("evt_1", NOW - 100)).await.is_replayed(200);
    receiver.was_called(2);
}
