//! An uncertain step goes by its own policy.

use std::time::Duration;

use serde_json::Value;

use super::{HELD, Three, standing};
use crate::support::{Act, Answer, Onceward, Receiver, event};

fn vanishing(
    vanishing: &'static str,
) -> impl Fn(&str, &crate::support::Seen, usize) -> Option<Act> {
    move |name, _, _| (name == vanishing).then_some(Act::Close)
}

#[tokio::test]
async fn an_uncertain_step_is_held_and_those_behind_it_wait() {
    let three = Three::that(vanishing("account")).await;
    let onceward = three.with("").expects_log(HELD).start().await;
    let first = onceward.sends(event("evt_1")).await;
    first.is_executed_as("upstream-broken", 502);
    onceward.sends(event("evt_1")).await.is_uncertain();
    let id = first.operation();
    assert_eq!(standing(&onceward, &id).await, ["succeeded", "uncertain", "waiting"]);
    assert_eq!(onceward.state(&id).await, "uncertain");
    assert_eq!(three.counts(), [1, 1, 0]);
}

#[tokio::test]
async fn the_receiver_of_one_step_is_asked_about_it_and_the_rest_goes_on() {
    let three = Three::that(|name, seen, _| match (name, &*seen.method) {
        ("account", "POST") => Some(Act::Close),
        ("account", _) => Some(Answer::new(200, "").into()),
        _ => None,
    })
    .await;
    let [charge, account, mail] = &three.receivers;
    let lookup = format!(
        "when_uncertain = \"lookup\"\n[routes.hooks.steps.lookup]\n\
         url = \"{}/events/{{operation}}\"",
        account.url()
    );
    let onceward = Onceward::in_front_of_steps(&[
        ("charge", charge, ""),
        ("account", account, &lookup),
        ("mail", mail, ""),
    ])
    .expects_log(HELD)
    .start()
    .await;
    onceward.sends(event("evt_1")).await.is_executed_as("upstream-broken", 502);
    let copy = onceward.sends(event("evt_1")).await;
    assert_eq!(copy.is_executed(200).text(), "mail");
    onceward.sends(event("evt_1")).await.is_replayed(200);
    let [post, get] = &*account.seen() else { panic!("{:?}", account.seen()) };
    let id = post.header("onceward-operation").unwrap();
    assert_eq!(get.target, format!("/events/{id}"), "the step's own id");
    assert_eq!((charge.count(), mail.count()), (1, 1));
    let operation = onceward.operation(&copy.operation()).await.unwrap();
    let decisions = operation["decisions"].as_array().unwrap();
    let reasons: Vec<_> = decisions.iter().map(|one| one["reason"].as_str().unwrap()).collect();
    assert_eq!(reasons[1], "account: done: answered 200");
    let found = "onceward_lookups_total{route=\"hooks\",finding=\"done\"}";
    assert_eq!(onceward.metric(found).await, 1.0);
}

/// One step is sent again, another is held: each by what it says itself.
#[tokio::test]
async fn a_step_that_may_be_sent_again_is_while_another_would_be_held() {
    let three = Three::that(|name, _, copies| match (name, copies) {
        ("account", 0) => Some(Act::Hang),
        ("mail", _) => Some(Act::Close),
        _ => None,
    })
    .await;
    let [charge, account, mail] = &three.receivers;
    let onceward = Onceward::in_front_of_steps(&[
        ("charge", charge, ""),
        ("account", account, "when_uncertain = \"retry\"\nattempt_timeout = \"1s\""),
        ("mail", mail, ""),
    ])
    .expects_log(HELD)
    .start()
    .await;
    let first = onceward.sends(event("evt_1")).await;
    first.is_executed_as("upstream-timeout", 504);
    onceward.must_have_ended(&first.operation(), Duration::from_secs(1)).await;
    onceward.sends(event("evt_1")).await.is_executed_as("upstream-broken", 502);
    onceward.sends(event("evt_1")).await.is_uncertain();
    assert_eq!(three.counts(), [1, 2, 1]);
}

#[tokio::test]
async fn a_step_says_which_of_its_answers_mean_what() {
    let charge = Receiver::that_answers(409, "already").await;
    let mail = Receiver::that_answers(202, r#"{"id":"m-1"}"#).await;
    let outcome = "outcome = { succeeded = [\"2xx\", \"409\"] }";
    let reference = "outcome = { reference = \"json:/id\" }";
    let onceward =
        Onceward::in_front_of_steps(&[("charge", &charge, outcome), ("mail", &mail, reference)])
            .start()
            .await;
    let reply = onceward.sends(event("evt_1")).await;
    reply.is_executed(202);
    let operation = onceward.operation(&reply.operation()).await.unwrap();
    assert_eq!(operation["attempts"][0]["reference"], Value::Null);
    assert_eq!(operation["attempts"][1]["reference"], "m-1");
}

/// A refusal of what has become stale is no final answer, and each attempt is made with the copy's
/// own headers.
#[tokio::test]
async fn a_refusal_of_a_stale_signature_is_not_final() {
    let three = Three::that(|name, seen, _| {
        let stale = seen.header("x-signed-at") == Some("old");
        (name == "mail" && stale).then(|| Answer::new(400, "stale").into())
    })
    .await;
    let onceward = three.with("").start().await;
    onceward.sends(event("evt_61").header("x-signed-at", "old")).await.is_executed(400);
    onceward.sends(event("evt_61").header("x-signed-at", "new")).await.is_executed(200);
    assert_eq!(three.counts(), [1, 1, 2]);
}
