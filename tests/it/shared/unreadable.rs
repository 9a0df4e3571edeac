//! The record of an operation is damaged while its attempt runs.

use tokio::join;

use super::expecting_trouble;
use crate::support::{Gate, Onceward, Receiver, RedisServer, event};

const GIVEN_UP: &str = "an outcome is given up";

/// Takes from the record of an operation what names its state.
async fn is_damaged(server: &RedisServer, id: &str) {
    let hex = id.strip_prefix("op_").unwrap();
    let shard = u8::from_str_radix(&hex[..2], 16).unwrap() % 64;
    server.does(&format!("HDEL {{onceward:{shard}}}:op:{hex} revision")).await;
}

/// The only operation of which anything is remembered.
async fn the_operation(onceward: &Onceward) -> String {
    let list: serde_json::Value =
        serde_json::from_str(&onceward.get_admin("/api/operations").await.text()).unwrap();
    list["operations"][0]["operation"].as_str().unwrap().to_owned()
}

/// Its sender is answered, a person is told, and its place is free for another one.
async fn ends_and_frees_its_place(steps: bool) {
    let (server, gate) = (RedisServer::start().await, Gate::default());
    let (receiver, other) =
        (Receiver::behind(&gate, 200, "done\n").await, Receiver::that_answers(200, "ok\n").await);
    let builder = if steps {
        Onceward::in_front_of_steps(&[("first", &receiver, ""), ("second", &other, "")])
    } else {
        Onceward::in_front_of(&receiver)
    };
    let onceward = builder
        .store(&format!("[store.redis]\nurls = [\"{}\"]", server.url()))
        .defaults("lease = \"1s\"\nin_flight_max = 1")
        .expects_log(GIVEN_UP)
        .expects_log("an outcome is not recorded yet")
        .expects_log("a lease could not be renewed yet")
        .expects_log("answered before the outcome could be recorded")
        .expects_log("no claim, so nothing is forwarded")
        .expects_log("a record is kept")
        .expects_log("the store is not safe")
        .start()
        .await;
    let (first, ()) = join!(onceward.sends(event("evt_1")), async {
        receiver.has_counted(1).await;
        is_damaged(&server, &the_operation(&onceward).await).await;
        gate.opens();
    });
    if steps {
        first.is_in_flight(504);
    } else {
        first.is_executed(200);
    }
    onceward.logs(GIVEN_UP).await;
    assert_eq!(onceward.metric("onceward_unrecorded_total").await, 1.0);
    onceward.sends_until(&event("evt_2"), |reply| reply.status != 503).await;
    let copy = onceward.sends(event("evt_1")).await;
    copy.is_refused(503, "store-unavailable").comes_back();
    receiver.was_called(2);
}

#[tokio::test]
async fn an_outcome_whose_record_cannot_be_read_is_given_up_and_frees_its_place() {
    ends_and_frees_its_place(false).await;
}

#[tokio::test]
async fn the_end_of_a_step_whose_record_cannot_be_read_is_given_up_and_frees_its_place() {
    ends_and_frees_its_place(true).await;
}

/// The server goes on with the claim after its sender was refused.
#[tokio::test]
async fn a_claim_without_a_reply_is_not_withdrawn_for_ever_from_a_record_that_cannot_be_read() {
    const ENDED: &str = "a claim without a reply is not withdrawn";
    let server = RedisServer::start().await;
    let receiver = Receiver::that_answers(500, "no\n").await;
    let builder = Onceward::in_front_of(&receiver)
        .store(&format!("[store.redis]\nurls = [\"{}\"]", server.url()))
        .defaults("lease = \"1s\"")
        .expects_log(ENDED);
    let onceward = expecting_trouble(builder).start().await;
    let operation = onceward.sends(event("evt_1")).await.is_executed(500).operation();
    is_damaged(&server, &operation).await;
    server.pauses();
    onceward.sends(event("evt_1")).await.is_refused(503, "store-unavailable").comes_back();
    server.goes_on();
    onceward.logs(ENDED).await;
    let log = onceward.log();
    let ended = |line: &&serde_json::Value| line.to_string().contains(ENDED);
    let line = log.iter().find(ended).unwrap();
    assert_eq!((&line["level"], &line["operation.id"]), (&"ERROR".into(), &operation.into()));
    receiver.was_called(1);
}
