//! Makes the records of an older version.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::json;

use super::{
    Upstreams, WHY, asking, batch, by_event, keyed, listed, observed, places, resolves, to_steps,
};
use crate::support::{Act, Answer, Builder, Event, Onceward, PostgresServer, RedisServer, Seen};

/// Names the older program. Without it nothing is made.
const PROGRAM: &str = "ONCEWARD_OLDER_PROGRAM";

/// What the upstreams do with a request stands in it.
fn planned(seen: &Seen, copies: usize) -> Act {
    let done = || Answer::new(201, "done").header("x-of", "the older version");
    let is_mail = seen.header("onceward-step") == Some("mail");
    match seen.header("x-plan") {
        Some("long") => Answer::new(200, vec![b'x'; 2048]).into(),
        // without a plan it is a look-up
        None | Some("fails") => Answer::new(500, "").into(),
        Some("fails-once") if copies == 0 => Answer::new(500, "").into(),
        Some("mail-fails") if is_mail => Answer::new(500, "").into(),
        Some("vanishes") => Act::Close,
        Some("mail-vanishes") if is_mail => Act::Close,
        Some("hangs") => Act::Hang,
        Some(_) => done().into(),
    }
}

/// Has the older version record an operation in each state, and kills it.
async fn record(builder: Builder, upstreams: &Upstreams) -> Onceward {
    let mut onceward = builder.start().await;
    onceward.becomes_ready().await;
    let sends = async |event: Event| onceward.sends(event).await.operation();
    for (key, plan, times) in [
        ("succeeded", "done", 1),
        ("without-body", "long", 1),
        ("tried-again", "fails-once", 2),
        ("failed", "fails", 1),
        ("uncertain", "vanishes", 1),
    ] {
        for _ in 0..times {
            sends(keyed(key, plan)).await;
        }
    }
    let forgotten = sends(keyed("forgotten", "done")).await;
    let url = format!("http://{}/api/operations/{forgotten}", onceward.admin);
    let forget = crate::support::client().delete(url).body(json!({ "reason": WHY }).to_string());
    let forget = forget.header("content-type", "application/json");
    assert_eq!(forget.send().await.unwrap().status(), 200);
    let done = json!({
        "outcome": "succeeded", "reason": WHY, "status": 202, "body": "{\"ok\":1}",
        "reference": "payment 7",
    });
    resolves(&onceward, &sends(keyed("resolved-succeeded", "vanishes")).await, done).await;
    let failed = json!({ "outcome": "failed", "reason": WHY });
    resolves(&onceward, &sends(keyed("resolved-failed", "vanishes")).await, failed).await;
    for event in [by_event(), batch(), asking(), asking()] {
        sends(event).await;
    }
    onceward.sends(observed()).await.is_passed(201);
    sends(to_steps("steps-done", "done")).await;
    sends(to_steps("steps-failed", "mail-fails")).await;
    sends(to_steps("steps-uncertain", "mail-vanishes")).await;
    let before = upstreams.main.count();
    let mut sender = onceward.connects().await;
    sender.writes(&keyed("in-flight", "hangs").raw()).await;
    upstreams.main.has_counted(before + 1).await;
    assert_eq!(listed(&onceward).await.len(), super::RECORDED.len() + 1);
    onceward.is_killed().await;
    onceward
}

/// Not a test by itself: makes the records anew, with the program that is named.
#[tokio::test]
async fn the_records_are_made_anew() {
    let Some(program) = std::env::var_os(PROGRAM).map(PathBuf::from) else {
        return;
    };
    let program: &Path = &program;
    let older = async |store: Option<&str>| {
        let upstreams = Upstreams::that(planned).await;
        let mut builder = upstreams.proxy("observe").program(program);
        if let Some(store) = store {
            builder = builder.store(store);
        }
        record(builder, &upstreams).await
    };
    let on_disk = older(None).await;
    places::keep_embedded(&on_disk.directory());
    let server = RedisServer::start().await;
    let in_redis = format!("[store.redis]\nurls = [\"{}\"]", server.url());
    older(Some(&in_redis)).await;
    places::keep_redis(&server).await;
    let server = PostgresServer::start();
    let in_postgres = format!("[store.postgres]\nurl = \"{}\"", server.url());
    older(Some(&in_postgres)).await;
    places::keep_postgres(&server);
    // Nobody works on what was in flight any more, and nothing is past its retention.
    places::keep_time(Duration::from_hours(1));
}
