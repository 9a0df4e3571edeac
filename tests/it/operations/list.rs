//! Lists: whole, in order, page by page.

use std::collections::HashSet;

use serde_json::Value;

use super::{HELD, calls, forgetful, held, is_problem, told, types};
use crate::support::{Event, Gate, Onceward, Receiver, Reply, a_later_millisecond, event};

const COUNT: usize = 1050;

fn ids(page: &Value) -> Vec<String> {
    let operations = page["operations"].as_array().unwrap().iter();
    operations.map(|found| found["operation"].as_str().unwrap().to_owned()).collect()
}

async fn page(onceward: &Onceward, query: &str) -> Value {
    told(&calls(onceward, "GET", &format!("/api/operations?{query}"), None).await)
}

/// All pages from this cursor on, and how many operations each holds.
async fn pages(onceward: &Onceward, limit: usize, from: &str) -> (Vec<String>, Vec<usize>) {
    let (mut found, mut sizes, mut cursor) = (Vec::new(), Vec::new(), from.to_owned());
    loop {
        let page = page(onceward, &format!("limit={limit}&cursor={cursor}")).await;
        sizes.push(ids(&page).len());
        found.extend(ids(&page));
        match page["next"].as_str() {
            Some(next) => next.clone_into(&mut cursor),
            None => return (found, sizes),
        }
    }
}

async fn sends_many(onceward: &Onceward, prefix: &str, count: usize) -> HashSet<String> {
    let mut sent = HashSet::new();
    for chunk in (0..count).collect::<Vec<_>>().chunks(50) {
        let events = chunk.iter().map(|n| onceward.sends(event(&format!("{prefix}-{n}"))));
        sent.extend(futures_util::future::join_all(events).await.iter().map(Reply::operation));
    }
    sent
}

/// Of what a route only observed nothing is held, whatever the state.
#[tokio::test]
async fn the_commands_say_what_was_only_observed() {
    let receiver = Receiver::that_answers(200, "ok").await;
    let onceward = Onceward::in_front_of(&receiver).routes("mode = \"observe\"\n").start().await;
    onceward.sends(event("evt_1")).await.is_passed(200);
    let page = page(&onceward, "").await;
    for line in [&["list"][..], &["show", &ids(&page)[0]]] {
        let printed = types(&onceward, line).await.printed();
        assert!(printed.contains("succeeded (observed)"), "{printed}");
    }
}

#[tokio::test]
async fn pages_over_more_than_a_thousand_operations_join_without_gap_or_double() {
    let receiver = Receiver::that_answers(200, "ok").await;
    let onceward = Onceward::in_front_of(&receiver).start().await;
    let sent = sends_many(&onceward, "e", COUNT).await;
    assert_eq!(sent.len(), COUNT);

    let (found, sizes) = pages(&onceward, 137, "").await;
    assert!(sizes[..sizes.len() - 1].iter().all(|size| *size == 137), "{sizes:?}");
    assert_eq!(found.len(), COUNT, "none is there twice");
    assert_eq!(found.iter().cloned().collect::<HashSet<_>>(), sent);

    // what comes in while somebody pages is newer than every page that is left
    a_later_millisecond().await;
    let first = page(&onceward, "limit=500").await;
    sends_many(&onceward, "later", 20).await;
    let (rest, sizes) = pages(&onceward, 500, first["next"].as_str().unwrap()).await;
    assert_eq!(sizes, [500, 50]);
    assert_eq!([ids(&first), rest].concat(), found);

    let listed = types(&onceward, &["list", "--all", "--json"]).await.printed();
    let times: Vec<jiff::Timestamp> = listed
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap())
        .map(|found| found["created_at"].as_str().unwrap().parse().unwrap())
        .collect();
    assert_eq!(times.len(), COUNT + 20);
    assert!(times.is_sorted_by(|newer, older| newer >= older), "the newest is the first");
    let table = types(&onceward, &["list", "--limit", "600"]).await.printed();
    assert_eq!(table.lines().filter(|line| line.starts_with("op_")).count(), 600);
    assert_eq!(table.lines().filter(|line| line.starts_with("OPERATION")).count(), 1);
}

#[tokio::test]
async fn a_list_is_of_one_route_state_and_age() {
    let receiver = forgetful().await;
    let other = format!("[routes.other]\npath = \"/other\"\nupstream = \"{}\"\n", receiver.url());
    let onceward = Onceward::in_front_of(&receiver).routes(&other).expects_log(HELD).start().await;
    let uncertain = held(&onceward, "u").await;
    let elsewhere = onceward.sends(event("o").to("/other")).await.operation();
    a_later_millisecond().await;
    let done = onceward.sends(event("fine")).await.is_executed(200).operation();

    for (query, expected) in [
        ("", vec![&done, &elsewhere, &uncertain]),
        ("route=hooks", vec![&done, &uncertain]),
        ("route=other&state=uncertain", vec![&elsewhere]),
        ("state=in_flight", vec![]),
        ("route=unknown", vec![]),
        ("limit=1", vec![&done]),
    ] {
        let found = page(&onceward, query).await;
        assert_eq!(ids(&found).iter().collect::<Vec<_>>(), expected, "{query}");
    }
    let shown = onceward.operation(&elsewhere).await.unwrap();
    let before = shown["created_at"].as_str().unwrap();
    let older = page(&onceward, &format!("before={before}")).await;
    assert_eq!(ids(&older), std::slice::from_ref(&uncertain), "earlier than that one");
    assert_eq!(older["next"], Value::Null);
    assert_eq!(older["operations"][0], onceward.operation(&uncertain).await.unwrap());
}

#[tokio::test]
async fn what_a_list_does_not_know_is_refused() {
    let receiver = Receiver::that_answers(200, "ok").await;
    let onceward = Onceward::in_front_of(&receiver).start().await;
    onceward.sends(Event::bytes("x").keyed("k")).await.is_executed(200);
    for (query, detail) in [
        ("state=held", "`state` must be one of"),
        ("limit=0", "`limit` must be a number from 1 to 500"),
        ("limit=501", "`limit` must be a number from 1 to 500"),
        ("cursor=7", "`cursor` must be the `next` of an earlier page"),
        ("before=noon", "`before` must be a time"),
        ("status=failed", "unknown parameter \"status\""),
        ("route=a&route=b", "`route` is there twice"),
        ("%1b%5b31m=1", "unknown parameter \"\\u{1b}[31m\""),
    ] {
        let reply = calls(&onceward, "GET", &format!("/api/operations?{query}"), None).await;
        let problem = is_problem(&reply, 400, "invalid-query");
        assert!(problem["detail"].as_str().unwrap().starts_with(detail), "{problem}");
    }
}

#[tokio::test]
async fn an_operation_is_found_by_its_event_s_id() {
    let receiver = Receiver::that_answers(200, "ok").await;
    let onceward = Onceward::in_front_of(&receiver).start().await;
    sends_many(&onceward, "evt_6", 20).await;
    let wanted = onceward.sends(event("evt_6")).await.operation();
    let keyed = onceward.sends(event("e").keyed("a_key/+&")).await.operation();

    assert_eq!(ids(&page(&onceward, "key=evt_6").await), [&*wanted]);
    assert_eq!(ids(&page(&onceward, "key=evt_6&limit=1").await), [&*wanted]);
    assert_eq!(ids(&page(&onceward, "key=a_key%2F%2B%26").await), [&*keyed]);
    for nobody in ["key=evt", "key=evt_", "key=hooks", "key=evt_6&state=failed", "key=*"] {
        assert_eq!(ids(&page(&onceward, nobody).await), [""; 0], "{nobody}");
    }
    let refused = calls(&onceward, "GET", "/api/operations?key=a&key=b", None).await;
    is_problem(&refused, 400, "invalid-query");

    let table = types(&onceward, &["list", "--key", "evt_6"]).await.printed();
    assert!(table.contains(&wanted) && table.lines().count() == 2, "{table}");
    let none = types(&onceward, &["list", "--key", "evt_"]).await.printed();
    assert_eq!(none, "no operations\n");
}

/// A record keeps a digest of it.
#[tokio::test]
async fn an_operation_is_found_by_an_id_that_is_longer_than_what_is_kept_of_it() {
    let receiver = Receiver::that_answers(200, "ok").await;
    let onceward = Onceward::in_front_of(&receiver).start().await;
    let id = "topic/".repeat(600);
    let wanted = onceward.sends(event(&id)).await.operation();
    onceward.sends(event(&format!("{id}x"))).await;
    let told = types(&onceward, &["list", "--key", &id, "--json"]).await.printed();
    let told: Value = serde_json::from_str(&told).unwrap();
    assert_eq!(told["operation"], *wanted);
    let shown = told["key"]["parts"][1].as_str().unwrap();
    let again = types(&onceward, &["list", "--key", shown]).await.printed();
    assert!(again.contains(&wanted) && again.lines().count() == 2, "{again}");
}

#[tokio::test]
async fn the_line_of_a_request_has_its_key_and_no_more_than_a_line_of_it() {
    let receiver = Receiver::that_answers(200, "ok").await;
    let onceward = Onceward::in_front_of(&receiver).start().await;
    onceward.sends(event("evt_6")).await.is_executed(200);
    onceward.logs(r#""operation.key":"evt_6""#).await;
    let long = "k".repeat(250);
    onceward.sends(event("e").keyed(&long)).await.is_executed(200);
    onceward.logs(&format!(r#""operation.key":"{}...""#, "k".repeat(128))).await;
}

/// Headers of answers say `in-flight`, JSON says `in_flight`.
#[tokio::test]
async fn a_state_is_understood_as_the_headers_and_as_json_spell_it() {
    let gate = Gate::default();
    let receiver = Receiver::behind(&gate, 200, "done\n").await;
    let onceward = Onceward::in_front_of(&receiver).start().await;
    let looks = async {
        receiver.has_counted(1).await;
        for state in ["in-flight", "in_flight"] {
            let listed = types(&onceward, &["list", "--state", state]).await.printed();
            assert!(listed.contains("op_"), "{state}: {listed}");
            let listed = page(&onceward, &format!("state={state}")).await;
            assert_eq!(listed["operations"].as_array().unwrap().len(), 1, "{state}");
        }
        gate.opens();
    };
    tokio::join!(onceward.sends(event("e")), looks).0.is_executed(200);
}

/// A name that was mistyped looks like a route on which nothing has happened.
#[tokio::test]
async fn a_list_of_no_route_says_which_routes_there_are() {
    let receiver = forgetful().await;
    let other = format!("[routes.other]\npath = \"/other\"\nupstream = \"{}\"\n", receiver.url());
    let onceward = Onceward::in_front_of(&receiver).routes(&other).start().await;
    let said = types(&onceward, &["list", "--route", "hoks"]).await.complained(1);
    assert!(said.contains("no route has this name"), "{said}");
    assert!(said.contains("the routes are `hooks`, `other`"), "{said}");
    assert_eq!(types(&onceward, &["list", "--route", "hooks"]).await.printed(), "no operations\n");
    assert_eq!(
        page(&onceward, "route=hoks").await["routes"],
        serde_json::json!(["hooks", "other"])
    );
    assert_eq!(page(&onceward, "route=hooks").await.get("routes"), None);
}
