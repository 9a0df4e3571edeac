//! Several secrets and several signatures at a time, and none at all where it is said so.

use super::stripe_event;
use crate::support::{Event, Onceward, Receiver, event, signing};

const TWO: &str = "provider = \"stripe\"\n\
    secrets = [{ env = \"OLD_SECRET\" }, { env = \"NEW_SECRET\" }]\n";

/// Makes a `Stripe-Signature` of this second, over this body.
type Signature<'a> = dyn Fn(u64, &[u8]) -> String + 'a;

/// An event of Stripe with such a signature.
fn with_signature(id: &str, signature: &Signature<'_>) -> Event {
    let event = event(id);
    let signature = signature(signing::now(), &event.body);
    event.header("stripe-signature", &signature)
}

#[tokio::test]
async fn while_a_secret_is_rotated_either_one_is_right() {
    let receiver = Receiver::that_answers(200, "ok").await;
    let builder = Onceward::in_front_of(&receiver).routes(TWO);
    let builder = builder.variable("OLD_SECRET", "whsec_old").variable("NEW_SECRET", "whsec_new");
    let onceward = builder.start().await;
    onceward.sends(stripe_event("evt_1", "whsec_old")).await.is_executed(200);
    onceward.sends(stripe_event("evt_2", "whsec_new")).await.is_executed(200);
    // Which one it was is no part of the event.
    onceward.sends(stripe_event("evt_1", "whsec_new")).await.is_replayed(200);
    onceward.sends(stripe_event("evt_2", "whsec_old")).await.is_replayed(200);
    onceward.sends(stripe_event("evt_1", "older")).await.is_refused(401, "signature-invalid");
    onceward.sends(stripe_event("evt_3", "")).await.is_refused(401, "signature-invalid");
    receiver.was_called(2);
}

/// One right signature is enough, wherever it stands and whatever stands beside it.
#[tokio::test]
async fn one_right_signature_among_others_is_enough() {
    let receiver = Receiver::that_answers(200, "ok").await;
    let route = "provider = \"stripe\"\nsecrets = [{ env = \"NEW_SECRET\" }]\n";
    let builder =
        Onceward::in_front_of(&receiver).routes(route).variable("NEW_SECRET", "whsec_new");
    let onceward = builder.start().await;
    let v1 = signing::stripe_v1;
    let zeros = "0".repeat(64);
    let right: [(&str, &Signature<'_>); 2] = [
        ("evt_1", &|at, body| {
            let old = v1("whsec_old", at, body);
            let new = v1("whsec_new", at, body);
            format!("t={at},v1=zz-not-hex,v1={old},v0={zeros},v1={new}")
        }),
        ("evt_2", &|at, body| {
            let old = v1("whsec_old", at, body);
            let new = v1("whsec_new", at, body);
            format!("t={at},v1={new},v1={old},v1=,v9={zeros}")
        }),
    ];
    for (id, signature) in right {
        onceward.sends(with_signature(id, signature)).await.is_executed(200);
    }
    receiver.was_called(2);
    // One of another version does not count, nor does a list without end.
    let wrong: [&Signature<'_>; 3] = [
        &|at, body| format!("t={at},v0={}", v1("whsec_new", at, body)),
        &|at, body| format!("t={at}{},v1={}", ",v1=00".repeat(100), v1("whsec_new", at, body)),
        &|at, body| format!("t={at},t={},v1={}", at + 1, v1("whsec_new", at, body)),
    ];
    for signature in wrong {
        let reply = onceward.sends(with_signature("evt_3", signature)).await;
        assert_eq!(reply.status, 401, "{}", reply.text());
    }
    receiver.was_called(2);
}

#[tokio::test]
async fn a_list_of_standard_webhooks_holds_signatures_of_both_secrets() {
    let receiver = Receiver::that_answers(200, "ok").await;
    let old = "whsec_b2xkIHNlY3JldA==";
    let new = "whsec_bmV3IHNlY3JldA==";
    let route = "provider = \"standard-webhooks\"\nsecrets = [{ env = \"NEW_SECRET\" }]\n";
    let builder = Onceward::in_front_of(&receiver).routes(route).variable("NEW_SECRET", new);
    let onceward = builder.start().await;
    for (number, order) in [[old, new], [new, old]].into_iter().enumerate() {
        let id = format!("msg_{number}");
        let at = signing::now();
        let event = event("evt_1");
        let [one, two] = order.map(|secret| signing::standard(secret, &id, at, &event.body));
        let event = event.header("webhook-id", &id).header("webhook-timestamp", &at.to_string());
        let list = format!("v1,AAA= {one} {two}");
        onceward.sends(event.header("webhook-signature", &list)).await.is_executed(200);
    }
    receiver.was_called(2);
}

/// Not to verify is something that a route has to say, and the upstream sees it.
#[tokio::test]
async fn a_route_that_says_so_takes_any_signature_and_vouches_for_none() {
    let receiver = Receiver::that_answers(200, "ok").await;
    let route = "provider = \"stripe\"\nverify = false\n";
    let onceward = Onceward::in_front_of(&receiver).routes(route).start().await;
    let claims_to_be = |event: Event| event.header("onceward-verified", "stripe");
    onceward.sends(claims_to_be(stripe_event("evt_1", "a guess"))).await.is_executed(200);
    onceward.sends(claims_to_be(event("evt_2"))).await.is_executed(200);
    onceward.sends(event("evt_1")).await.is_replayed(200);
    receiver.was_called(2);
    for seen in receiver.seen() {
        assert_eq!(seen.header("onceward-verified"), None);
    }
}

/// What comes from outside is never what the upstream sees, be it right or wrong.
#[tokio::test]
async fn only_the_proxy_says_whose_signature_it_has_checked() {
    let receiver = Receiver::that_answers(200, "ok").await;
    let route = "provider = \"stripe\"\nsecrets = [{ env = \"NEW_SECRET\" }]\n";
    let upstream = receiver.url();
    let plain = format!("[routes.plain]\npath = \"/plain\"\nupstream = \"{upstream}\"\n");
    let builder = Onceward::in_front_of(&receiver).routes(route).routes(&plain);
    let onceward = builder.variable("NEW_SECRET", "whsec_new").start().await;
    let claims_to_be = |event: Event, who: &str| event.header("Onceward-Verified", who);
    onceward
        .sends(claims_to_be(stripe_event("evt_1", "whsec_new"), "github"))
        .await
        .is_executed(200);
    let twice = claims_to_be(claims_to_be(stripe_event("evt_2", "whsec_new"), "a"), "stripe");
    onceward.sends(twice).await.is_executed(200);
    for seen in receiver.seen() {
        assert_eq!(seen.values("onceward-verified"), [b"stripe"]);
    }
    onceward.sends(claims_to_be(event("evt_3"), "stripe").to("/plain")).await.is_executed(200);
    onceward
        .sends(claims_to_be(event("evt_4"), "stripe").by("GET").to("/plain"))
        .await
        .is_passed(200);
    for seen in &receiver.seen()[2..] {
        assert_eq!(seen.header("onceward-verified"), None);
    }
    receiver.was_called(4);
}

/// Two endpoints of one account, each with its own secret.
#[tokio::test]
async fn one_event_for_two_endpoints_is_forwarded_by_both_and_their_secrets_are_apart() {
    let receiver = Receiver::that_answers(200, "ok").await;
    let upstream = receiver.url();
    let route = |name: &str, secret: &str| {
        format!(
            "[routes.{name}]\npath = \"/stripe/{name}\"\nupstream = \"{upstream}\"\n\
             provider = \"stripe\"\nsecrets = [{{ env = \"{secret}\" }}]\n"
        )
    };
    let routes = route("account", "ONE_SECRET") + &route("connect", "TWO_SECRET");
    let builder = Onceward::in_front_of(&receiver).routes(&routes);
    let builder = builder.variable("ONE_SECRET", "whsec_one").variable("TWO_SECRET", "whsec_two");
    let onceward = builder.start().await;
    let sends =
        async |path: &str, secret| onceward.sends(stripe_event("evt_12", secret).to(path)).await;
    sends("/stripe/account", "whsec_two").await.is_refused(401, "signature-invalid");
    sends("/stripe/account", "whsec_one").await.is_executed(200);
    sends("/stripe/connect", "whsec_one").await.is_refused(401, "signature-invalid");
    sends("/stripe/connect", "whsec_two").await.is_executed(200);
    sends("/stripe/account", "whsec_one").await.is_replayed(200);
    sends("/stripe/connect", "whsec_two").await.is_replayed(200);
    receiver.was_called(2);
}
