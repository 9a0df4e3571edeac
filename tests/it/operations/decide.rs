//! What the next copy gets after a decision, and what is refused.

use std::time::Duration;

use serde_json::{Value, json};

use super::{
    HELD, before_forgetful, calls, decisions, forgetful, forgets, held, is_problem, keyed,
    resolves, told, types,
};
use crate::support::{Act, Answer, Gate, Onceward, Receiver, event};

/// Two answers leave an outcome unknown here: one is a success by its status, one is not.
const UNCERTAIN: &str = "[defaults.outcome]\nsucceeded = [\"200\"]\nuncertain = [\"202\", \"504\"]";

/// A receiver that answers each event first with the status that its id names.
async fn named_status() -> Receiver {
    Receiver::that(|seen, copies| {
        let body = String::from_utf8_lossy(&seen.body).into_owned();
        let first = [202, 504].into_iter().find(|status| body.contains(&status.to_string()));
        let status = if copies == 0 { first.unwrap_or(200) } else { 200 };
        Answer::new(status, format!("answer {copies}")).header("x-of", "upstream").into()
    })
    .await
}

async fn uncertain(onceward: &Onceward, id: &str, status: u16) -> String {
    let id = onceward.sends(event(id)).await.is_executed(status).operation();
    assert_eq!(onceward.state(&id).await, "uncertain");
    id
}

#[tokio::test]
async fn resolved_as_succeeded_a_copy_gets_the_given_answer_or_the_stored_one_or_an_empty_200() {
    let receiver = named_status().await;
    let builder = Onceward::in_front_of(&receiver).defaults(UNCERTAIN).expects_log(HELD);
    let onceward = builder.start().await;
    let done = |more| with(json!({ "outcome": "succeeded", "reason": "seen in the ledger" }), more);
    let json = Some("application/json");
    let text = Some("text/plain; charset=utf-8");
    for (id, first, more, status, body, kind) in [
        ("202-stored", 202, json!({}), 202, "answer 0", None),
        ("504-not-a-success", 504, json!({}), 200, "", None),
        ("202-given", 202, json!({ "status": 201, "body": "{\"id\":7}" }), 201, "{\"id\":7}", json),
        ("504-body", 504, json!({ "body": "[accepted]" }), 200, "[accepted]", text),
        ("504-status", 504, json!({ "status": 204 }), 204, "", None),
        ("202-empty", 202, json!({ "body": "" }), 200, "", None),
    ] {
        let operation = uncertain(&onceward, id, first).await;
        let reply = resolves(&onceward, &operation, done(more)).await;
        assert_eq!(told(&reply), json!({ "operation": operation, "state": "succeeded" }));
        for _ in 0..2 {
            let copy = onceward.sends(event(id)).await;
            copy.is_replayed(status);
            assert_eq!(copy.text(), body, "{id}");
            assert_eq!(copy.header("content-type"), kind, "{id}");
        }
        assert_eq!(onceward.state(&operation).await, "succeeded");
    }
    receiver.was_called(6);
}

#[tokio::test]
async fn resolved_as_failed_the_next_copy_is_a_new_attempt() {
    let (receiver, onceward) = before_forgetful().await;
    let id = held(&onceward, "e").await;
    onceward.sends(event("e")).await.is_uncertain();
    let body = json!({
        "outcome": "failed", "reason": "not in the ledger", "reference": "ticket 7",
        "by": "ann", "attempt": 1, "state": "uncertain",
    });
    told(&resolves(&onceward, &id, body).await);
    onceward.sends(event("e")).await.is_executed(200);
    receiver.was_called(2);
    let operation = onceward.operation(&id).await.unwrap();
    assert_eq!(
        (&operation["state"], &operation["attempts_total"]),
        (&json!("succeeded"), &json!(2))
    );
    let decision = &operation["decisions"][1];
    let words = ["by", "decision", "reason", "reference"].map(|name| &decision[name]);
    assert_eq!(words, ["operator: ann", "resolved_failed", "not in the ledger", "ticket 7"]);
    onceward.logs("a person decided").await;
    let line = onceward.log().into_iter().find(|line| line["message"] == "a person decided");
    let line = line.unwrap();
    assert_eq!((&line["level"], &line["operation.id"]), (&json!("INFO"), &json!(id)));
    assert_eq!(line["decision"], "resolved as failed");
}

/// Two forced re-runs in a row both run and are logged.
#[tokio::test]
async fn forgotten_the_next_copy_has_the_next_number_whatever_it_asks_for() {
    let receiver = Receiver::that_answers(200, "ok").await;
    let onceward = Onceward::in_front_of(&receiver).start().await;
    let id = onceward.sends(keyed("k", "one")).await.is_executed(200).operation();
    onceward.sends(keyed("k", "two")).await.is_mismatched();
    for (number, body) in [(2, "two"), (3, "three")] {
        let reply = forgets(&onceward, &id, json!({ "reason": format!("again {number}") })).await;
        assert_eq!(told(&reply), json!({ "operation": id, "state": "forgotten" }));
        let operation = onceward.operation(&id).await.unwrap();
        assert_eq!((&operation["answer"], &operation["fingerprint"]), (&Value::Null, &Value::Null));
        onceward.sends(keyed("k", body)).await.is_executed(200);
        onceward.sends(keyed("k", body)).await.is_replayed(200);
        let operation = onceward.operation(&id).await.unwrap();
        assert_eq!(operation["attempts"][number - 1]["number"], number);
    }
    receiver.was_called(3);
    let by = |n| ["operator".to_owned(), "forgotten".into(), format!("again {n}")];
    assert_eq!(decisions(&onceward, &id).await, [by(2), by(3)]);
}

#[tokio::test]
async fn nothing_is_decided_while_an_attempt_is_in_flight() {
    let gate = Gate::default();
    let receiver = Receiver::behind(&gate, 200, "done").await;
    let onceward = Onceward::in_front_of(&receiver).start().await;
    let meanwhile = async {
        receiver.has_counted(1).await;
        let id = onceward.sends(event("e")).await.is_in_flight(409).operation();
        let why = json!({ "reason": "impatient" });
        for outcome in ["succeeded", "failed"] {
            let body = json!({ "outcome": outcome, "reason": "impatient" });
            let problem = is_problem(&resolves(&onceward, &id, body).await, 409, "refused");
            assert_eq!((&problem["state"], &problem["attempt"]), (&json!("in_flight"), &json!(1)));
            assert_eq!(problem["detail"], "attempt 1 is in flight: wait for its end");
        }
        is_problem(&forgets(&onceward, &id, why).await, 409, "refused");
        let options: [&[&str]; 2] = [&["resolve", &id, "--outcome", "failed"], &["forget", &id]];
        for args in options {
            let line = [args, &["--reason", "impatient", "--yes"]].concat();
            assert_eq!(
                types(&onceward, &line).await.complained(1),
                "error: nothing was decided: the operation's state is `in_flight`, at attempt 1\n  \
                 hint: wait for the attempt's end, at its `ends_at` at the latest\n"
            );
        }
        let found = onceward.operation(&id).await.unwrap();
        assert_eq!((&found["state"], &found["decisions"]), (&json!("in_flight"), &json!([])));
        gate.opens();
    };
    tokio::join!(onceward.sends(event("e")), meanwhile).0.is_executed(200);
    onceward.sends(event("e")).await.is_replayed(200);
    receiver.was_called(1);
}

#[tokio::test]
async fn what_has_ended_is_not_resolved_and_what_is_unknown_not_at_all() {
    let (_receiver, onceward) = before_forgetful().await;
    let done = onceward.sends(event("fine")).await.operation();
    let failed = |more| with(json!({ "outcome": "failed", "reason": "why" }), more);
    let problem = is_problem(&resolves(&onceward, &done, failed(json!({}))).await, 409, "refused");
    assert_eq!(problem["state"], "succeeded");
    told(&forgets(&onceward, &done, json!({ "reason": "why" })).await);
    let problem = is_problem(&resolves(&onceward, &done, failed(json!({}))).await, 409, "refused");
    assert_eq!(problem["state"], "forgotten");

    let id = held(&onceward, "e").await;
    for seen in [json!({ "attempt": 2 }), json!({ "attempt": 0 }), json!({ "state": "failed" })] {
        let problem = is_problem(&resolves(&onceward, &id, failed(seen)).await, 409, "refused");
        assert_eq!((&problem["state"], &problem["attempt"]), (&json!("uncertain"), &json!(1)));
    }
    assert_eq!(onceward.state(&id).await, "uncertain");

    let unknown = format!("op_{}", "0".repeat(32));
    is_problem(&resolves(&onceward, &unknown, failed(json!({}))).await, 404, "no-such-operation");
    let why = json!({ "reason": "why" });
    is_problem(&forgets(&onceward, &unknown, why.clone()).await, 404, "no-such-operation");
    is_problem(&resolves(&onceward, "evt_1", failed(json!({}))).await, 400, "invalid-id");
    is_problem(&forgets(&onceward, "evt_1", why).await, 400, "invalid-id");
}

#[tokio::test]
async fn a_decision_without_a_reason_or_with_something_unknown_is_refused() {
    let (_receiver, onceward) = before_forgetful().await;
    let id = held(&onceward, "e").await;
    let before = onceward.operation(&id).await.unwrap();
    for (body, detail) in [
        (json!({ "outcome": "failed" }), "missing field `reason`"),
        (json!({ "outcome": "failed", "reason": " \t\n" }), "`reason` is blank"),
        (json!({ "outcome": "failed", "reason": null }), "invalid type: null"),
        (json!({ "reason": "why" }), "missing field `outcome`"),
        (json!({ "outcome": "uncertain", "reason": "why" }), "unknown variant `uncertain`"),
        (
            json!({ "outcome": "failed", "reason": "x".repeat(1025) }),
            "`reason` is longer than 1024",
        ),
        (json!({ "outcome": "failed", "reason": "why", "by": " " }), "`by` is blank"),
        (json!({ "outcome": "failed", "reason": "why", "force": true }), "unknown field `force`"),
        (json!({ "outcome": "failed", "reason": "why", "status": 200 }), "`status` and `body` are"),
        (json!({ "outcome": "succeeded", "reason": "why", "status": 101 }), "`status` must be"),
        (
            json!({ "outcome": "succeeded", "reason": "why", "status": 204, "body": "x" }),
            "an answer with status 204 has no body",
        ),
        (json!([]), "invalid length 0"),
        (json!("failed"), "invalid type: string"),
    ] {
        let reply = resolves(&onceward, &id, body).await;
        let problem = is_problem(&reply, 400, "invalid-body");
        let found = problem["detail"].as_str().unwrap();
        assert!(found.starts_with(detail), "{detail}: {found}");
    }
    for body in [json!({}), json!({ "reason": "" })] {
        is_problem(&forgets(&onceward, &id, body).await, 400, "invalid-body");
    }
    let path = format!("/api/operations/{id}");
    is_problem(&calls(&onceward, "DELETE", &path, None).await, 400, "invalid-body");
    let none = super::calls_with(&onceward, "DELETE", &path, &[], "").await;
    is_problem(&none, 400, "invalid-body");
    let long = json!({ "outcome": "failed", "reason": "x".repeat(2 << 20) });
    is_problem(&resolves(&onceward, &id, long).await, 413, "body-too-large");
    assert_eq!(onceward.operation(&id).await.unwrap(), before);
}

/// Of those who looked at the same attempt in the same state, one decides.
#[tokio::test]
async fn of_two_people_at_once_one_decides() {
    let (_receiver, onceward) = before_forgetful().await;
    for round in 0..5 {
        let id = held(&onceward, &format!("e{round}")).await;
        let people = (0..8).map(|n| {
            let outcome = if n % 2 == 0 { "failed" } else { "succeeded" };
            let (by, seen) = (format!("person {n}"), "uncertain");
            let body = json!({
                "outcome": outcome, "reason": "why", "by": by, "attempt": 1, "state": seen,
            });
            resolves(&onceward, &id, body)
        });
        let replies = futures_util::future::join_all(people).await;
        let mut statuses: Vec<_> = replies.iter().map(|reply| reply.status).collect();
        statuses.sort_unstable();
        assert_eq!(statuses, [200, 409, 409, 409, 409, 409, 409, 409]);
        let decisions = decisions(&onceward, &id).await;
        assert_eq!(decisions.len(), 2, "the hold, and one person's: {decisions:?}");
        let winner = replies.iter().position(|reply| reply.status == 200).unwrap();
        assert_eq!(decisions[1][0], format!("operator: person {winner}"));
    }
}

/// A proxy whose attempts are superseded.
async fn with_short_lease(receiver: &Receiver) -> Onceward {
    Onceward::in_front_of(receiver)
        .defaults("lease = \"300ms\"")
        .expects_log("superseded: the outcome of the attempt changed nothing")
        .expects_log(HELD)
        .start()
        .await
}

/// The body of a call, and what else it says.
fn with(mut body: Value, more: Value) -> Value {
    let Value::Object(more) = more else { panic!("{more}") };
    body.as_object_mut().unwrap().extend(more);
    body
}

/// Its lease ran out, a person decided, and then its answer came.
#[tokio::test]
async fn a_superseded_holder_changes_nothing_and_its_sender_gets_what_was_decided() {
    let gate = Gate::default();
    let waits = gate.clone();
    let receiver = Receiver::that(move |_, _| {
        Act::When(waits.clone(), Box::new(Answer::new(200, "of the attempt").into()))
    })
    .await;
    let onceward = with_short_lease(&receiver).await;
    let meanwhile = async {
        receiver.has_counted(1).await;
        onceward.stands_still(Duration::from_millis(900), || {}).await;
        let id = onceward.sends(event("e")).await.is_uncertain().operation();
        let body = json!({ "outcome": "succeeded", "reason": "seen", "body": "decided" });
        told(&resolves(&onceward, &id, body).await);
        gate.opens();
        id
    };
    let (first, id) = tokio::join!(onceward.sends(event("e")), meanwhile);
    for reply in [first, onceward.sends(event("e")).await] {
        reply.is_replayed(200);
        assert_eq!(reply.text(), "decided");
    }
    receiver.was_called(1);
    let operation = onceward.operation(&id).await.unwrap();
    assert_eq!(operation["state"], "succeeded");
    assert_eq!(operation["attempts"][0]["outcome"], "succeeded", "its end is in the log");
}

/// Nothing is in flight, so its sender is not told that something is.
#[tokio::test]
async fn the_sender_of_a_superseded_attempt_is_told_that_its_operation_is_free() {
    for forgotten in [false, true] {
        let gate = Gate::default();
        let receiver = Receiver::behind(&gate, 200, "of the attempt").await;
        let onceward = with_short_lease(&receiver).await;
        let meanwhile = async {
            receiver.has_counted(1).await;
            onceward.stands_still(Duration::from_millis(900), || {}).await;
            let id = onceward.sends(event("e")).await.is_uncertain().operation();
            if forgotten {
                told(&forgets(&onceward, &id, json!({ "reason": "seen" })).await);
            } else {
                let body = json!({ "outcome": "failed", "reason": "seen" });
                told(&resolves(&onceward, &id, body).await);
            }
            gate.opens();
            id
        };
        let (first, id) = tokio::join!(onceward.sends(event("e")), meanwhile);
        first.is_executed_as("superseded", 503).comes_back();
        assert_eq!(first.operation(), id);
        onceward.sends(event("e")).await.is_executed(200);
        receiver.was_called(2);
    }
}

/// A decision is kept as long as an outcome on the same route.
#[tokio::test]
async fn a_decision_is_remembered_for_the_retention_of_its_route() {
    let receiver = forgetful().await;
    let builder = Onceward::in_front_of(&receiver)
        .defaults("retention = \"2h\"")
        .routes("retention = \"72h\"")
        .expects_log(HELD);
    let onceward = builder.start().await;
    let id = held(&onceward, "e").await;
    told(&resolves(&onceward, &id, json!({ "outcome": "failed", "reason": "why" })).await);
    let operation = onceward.operation(&id).await.unwrap();
    let time = |name: &str| operation[name].as_str().unwrap().parse::<jiff::Timestamp>().unwrap();
    assert_eq!(time("expires_at").duration_since(time("settled_at")).as_hours(), 72);
}

/// What was decided is on disk before the person is told.
#[tokio::test]
async fn a_decision_outlives_the_process() {
    let (receiver, mut onceward) = before_forgetful().await;
    let (done, again) = (held(&onceward, "done").await, held(&onceward, "again").await);
    let body = json!({ "outcome": "succeeded", "reason": "seen", "body": "decided" });
    told(&resolves(&onceward, &done, body).await);
    told(&forgets(&onceward, &again, json!({ "reason": "not seen" })).await);
    onceward.is_killed().await;
    onceward.starts_again().await;
    assert_eq!(onceward.sends(event("done")).await.is_replayed(200).text(), "decided");
    onceward.sends(event("again")).await.is_executed(200);
    assert_eq!(decisions(&onceward, &again).await[1], ["operator", "forgotten", "not seen"]);
    receiver.was_called(3);
}
