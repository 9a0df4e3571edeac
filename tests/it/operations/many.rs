//! Many operations resolved at once, after a look at them.

use serde_json::{Value, json};

use super::{
    HELD, before_forgetful, calls, decisions, forgetful, held, is_problem, masked, resolves, told,
    types,
};
use crate::support::{Onceward, event};

fn asked(more: &Value) -> Value {
    let mut body = json!({
        "route": "hooks", "state": "uncertain", "before": "2999-01-01T00:00:00Z",
        "outcome": "failed", "reason": "the receiver was down", "dry_run": false,
    });
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    body
}

async fn resolves_many(onceward: &Onceward, more: Value) -> Value {
    told(&calls(onceward, "POST", "/api/operations/resolve", Some(asked(&more))).await)
}

/// What became of each, in the order in which they are told.
fn results(told: &Value) -> Vec<(String, String)> {
    let each = told["operations"].as_array().unwrap().iter();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    each.map(|each| (text(&each["operation"]), text(&each["result"]))).collect()
}

async fn many_held(onceward: &Onceward, count: usize) -> Vec<String> {
    let mut ids = Vec::new();
    for n in 0..count {
        ids.push(held(onceward, &format!("e{n}")).await);
    }
    ids.reverse();
    ids
}

#[tokio::test]
async fn a_dry_run_changes_nothing_and_the_real_one_resolves_those_only() {
    let receiver = forgetful().await;
    let other = format!("[routes.other]\npath = \"/other\"\nupstream = \"{}\"\n", receiver.url());
    let onceward = Onceward::in_front_of(&receiver).routes(&other).expects_log(HELD).start().await;
    let ids = many_held(&onceward, 4).await;
    let elsewhere = onceward.sends(event("o").to("/other")).await.operation();
    let fine = onceward.sends(event("fine")).await.operation();

    let dry = resolves_many(&onceward, json!({ "dry_run": true })).await;
    let would: Vec<_> = ids.iter().map(|id| (id.clone(), "would".to_owned())).collect();
    assert_eq!(results(&dry), would, "of that route and state, the newest first");
    assert_eq!(dry["done"], 0);
    for id in &ids {
        assert_eq!(onceward.state(id).await, "uncertain");
    }

    // meanwhile one is resolved by somebody else, and another becomes uncertain
    let taken = json!({ "outcome": "succeeded", "reason": "seen" });
    told(&resolves(&onceward, &ids[1], taken).await);
    let newcomer = held(&onceward, "late").await;
    let seen = dry["operations"].as_array().unwrap().iter();
    let seen: Vec<_> = seen
        .map(|each| json!({ "operation": each["operation"], "attempt": each["attempt"] }))
        .collect();
    let real = resolves_many(&onceward, json!({ "operations": seen })).await;
    let done: Vec<_> = [0, 2, 3].map(|n| (ids[n].clone(), "done".to_owned())).into();
    assert_eq!(results(&real), done);
    assert_eq!(
        (&real["done"], &real["refused"], &real["left"]),
        (&json!(3), &json!(1), &json!(false))
    );
    for (id, state) in [
        (&ids[0], "failed"),
        (&ids[1], "succeeded"),
        (&ids[3], "failed"),
        (&newcomer, "uncertain"),
        (&elsewhere, "uncertain"),
        (&fine, "succeeded"),
    ] {
        assert_eq!(onceward.state(id).await, state, "{id}");
    }
    let decision = decisions(&onceward, &ids[0]).await.pop().unwrap();
    assert_eq!(decision, ["operator", "resolved_failed", "the receiver was down"]);
    onceward.sends(event("e0")).await.is_executed(200);
}

#[tokio::test]
async fn no_more_than_the_limit_are_resolved_and_what_is_left_is_said() {
    let (_receiver, onceward) = before_forgetful().await;
    let ids = many_held(&onceward, 5).await;
    let first = resolves_many(&onceward, json!({ "limit": 2 })).await;
    let done = |range: std::ops::Range<usize>| -> Vec<_> {
        ids[range].iter().map(|id| (id.clone(), "done".to_owned())).collect()
    };
    assert_eq!(results(&first), done(0..2));
    assert_eq!(first["left"], true);
    let next = json!({ "limit": 2, "cursor": first["next"] });
    assert_eq!(results(&resolves_many(&onceward, next).await), done(2..4));
    // age: the last one is as old as it is
    let last = onceward.operation(&ids[4]).await.unwrap();
    let none = resolves_many(&onceward, json!({ "before": last["created_at"] })).await;
    assert_eq!(results(&none), []);
    assert_eq!(none["left"], false);
    assert_eq!(results(&resolves_many(&onceward, json!({})).await), done(4..5));
    let again =
        resolves_many(&onceward, json!({ "state": "failed", "outcome": "succeeded" })).await;
    assert_eq!(again["done"], 5);
    onceward.sends(event("e0")).await.is_replayed(200);
}

#[tokio::test]
async fn what_is_not_said_of_many_is_not_guessed() {
    let (_receiver, onceward) = before_forgetful().await;
    let id = held(&onceward, "e").await;
    for name in ["route", "state", "before", "outcome", "reason", "dry_run"] {
        let mut body = asked(&json!({}));
        body.as_object_mut().unwrap().remove(name);
        let reply = calls(&onceward, "POST", "/api/operations/resolve", Some(body)).await;
        let problem = is_problem(&reply, 400, "invalid-body");
        assert!(problem["detail"].as_str().unwrap().contains(name), "{problem}");
    }
    for more in [
        json!({ "limit": 0 }),
        json!({ "limit": 501 }),
        json!({ "before": "noon" }),
        json!({ "cursor": "7" }),
        json!({ "state": "in_flight" }),
        json!({ "reason": " " }),
        json!({ "status": 200 }),
        json!({ "operations": [{ "operation": "evt_1", "attempt": 1 }] }),
        json!({ "limit": 1, "operations": [
            { "operation": id, "attempt": 1 }, { "operation": id, "attempt": 1 },
        ] }),
    ] {
        let reply = calls(&onceward, "POST", "/api/operations/resolve", Some(asked(&more))).await;
        is_problem(&reply, 400, "invalid-body");
    }
    assert_eq!(onceward.state(&id).await, "uncertain");
}

#[tokio::test]
async fn the_command_shows_which_before_it_resolves_them() {
    let (_receiver, onceward) = before_forgetful().await;
    many_held(&onceward, 2).await;
    let all = ["resolve", "--all-of-route", "hooks", "--state", "uncertain", "--before", "0s"];
    let why = ["--outcome", "failed", "--reason", "the receiver was down"];
    let line = [&all[..], &why].concat();

    let dry = types(&onceward, &[&line[..], &["--dry-run"]].concat()).await.printed();
    insta::assert_snapshot!(masked(&onceward, &dry), @"
    OPERATION  ATTEMPT  CREATED  KEY
    op_9bedf06cc7872aae59467440f0190672  1  TIME  hooks e1 payment.paid
    op_64d3d508a94ec6b18c9a6f9243e7ef65  1  TIME  hooks e0 payment.paid

    2 operations to be resolved as failed
    danger: what the upstream has done all the same, the next copies do again
    reason: the receiver was down
    ");
    insta::assert_snapshot!(types(&onceward, &line).await.complained(2), @"
    error: this changes something, and there is no terminal to ask on
      hint: `--yes` goes on without a question
    ");
    assert_eq!(onceward.metric("onceward_uncertain").await, 2.0);
    let one = types(&onceward, &[&line[..], &["--yes", "--limit", "1"]].concat()).await.printed();
    insta::assert_snapshot!(masked(&onceward, &one), @"1 operation resolved as failed; more are left: try again");
    let rest = types(&onceward, &[&line[..], &["--yes"]].concat()).await.printed();
    insta::assert_snapshot!(masked(&onceward, &rest), @"1 operation resolved as failed");
    let none = types(&onceward, &[&line[..], &["--yes"]].concat()).await.printed();
    insta::assert_snapshot!(none, @"no uncertain operations of route `hooks`: it has 2 failed");
    onceward.sends(event("e0")).await.is_executed(200);

    let incomplete = [&["resolve", "--all-of-route", "hooks"][..], &why].concat();
    let said = types(&onceward, &incomplete).await.complained(2);
    assert!(said.contains("--state") && said.contains("--before"), "{said}");
}

/// A misspelt route has no operations, and a script would take that for done.
#[tokio::test]
async fn the_command_fails_for_many_of_an_unknown_route_as_it_does_for_a_list() {
    let receiver = forgetful().await;
    let onceward = Onceward::in_front_of(&receiver).start().await;
    let all = ["resolve", "--all-of-route", "hoks", "--state", "uncertain", "--before", "0s"];
    let line = [&all[..], &["--outcome", "failed", "--reason", "why"]].concat();
    let listed = types(&onceward, &["list", "--route", "hoks"]).await.complained(1);
    for more in [&["--dry-run"][..], &["--yes"], &["--yes", "--json"]] {
        let said = types(&onceward, &[&line[..], more].concat()).await.complained(1);
        assert_eq!(said, listed, "{more:?}");
    }
    let none = line.iter().map(|word| if *word == "hoks" { "hooks" } else { *word });
    let none: Vec<&str> = none.chain(["--yes"]).collect();
    let said = "no uncertain operations of route `hooks`: it has none in other states\n";
    assert_eq!(types(&onceward, &none).await.printed(), said);
}

/// What a script has to hear of: the store did not say whether it was done.
#[tokio::test]
async fn the_command_fails_if_the_store_does() {
    let receiver = forgetful().await;
    let builder = Onceward::in_front_of(&receiver).expects_log(HELD);
    let builder = builder.expects_log("a write to its disk failed").expects_log("fjall::");
    let builder = builder.expects_log("a person's decision may not have been made");
    let onceward = builder.expects_log("expired records could not be removed yet").start().await;
    let id = held(&onceward, "e").await;
    let fault = onceward.has_a_full_disk().await;
    let all = ["resolve", "--all-of-route", "hooks", "--state", "uncertain", "--before", "0s"];
    let more = ["--outcome", "failed", "--reason", "the receiver was down", "--yes"];
    let typed = types(&onceward, &[&all[..], &more].concat()).await;
    assert_eq!((typed.status, &*typed.stderr), (Some(1), ""), "{}", typed.stdout);
    let expected = "0 operations resolved as failed; more are left: try again\n";
    assert_eq!(typed.stdout, format!("{id}: unknown\n{expected}"));
    fault.ends().await;
}
