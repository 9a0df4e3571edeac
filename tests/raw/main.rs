//! Plays raw requests that make proxies and upstreams disagree, and judges by what the upstream
//! received and the sender got. The cases and their format: `tests/fixtures/raw_http_cases.json`.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test that cannot go on must end"
)]

mod case;
mod judge;
mod process;
mod sender;
mod template;
mod upstream;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use case::{Case, cases};
use process::Onceward;
use sender::Exchange;
use template::{Values, expand};
use upstream::Upstream;

/// Cases at a time: most of one's time is spent waiting for a limit of the product.
const AT_ONCE: usize = 16;

/// What all cases are played against.
struct Stage {
    onceward: Onceward,
    upstream: Arc<Upstream>,
    /// A listener that nobody may connect to.
    evil: String,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_raw_request_is_read_in_two_ways() {
    let cases = cases();
    assert_eq!(cases.len(), 104, "a case that is not played is a promise that is not kept");
    let upstream = Upstream::start(&cases).await;
    let trap = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let evil = trap.local_addr().unwrap().to_string();
    let trapped = Arc::new(AtomicBool::new(false));
    let sprung = Arc::clone(&trapped);
    tokio::spawn(async move {
        trap.accept().await.ok();
        sprung.store(true, Ordering::SeqCst);
    });
    let onceward = Onceward::in_front_of(upstream.address).await;
    let stage = Arc::new(Stage { onceward, upstream, evil });

    let mut problems = play_all(&stage, cases).await;
    problems.extend(stage.upstream.faults());
    if trapped.load(Ordering::SeqCst) {
        problems.push("somebody connected to an address that only a request named".to_owned());
    }
    let log = stage.onceward.log();
    assert!(problems.is_empty(), "\n{}\n\n{log}", problems.join("\n"));
}

async fn play_all(stage: &Arc<Stage>, cases: Vec<Case>) -> Vec<String> {
    let places = Arc::new(Semaphore::new(AT_ONCE));
    let mut playing = JoinSet::new();
    for case in cases {
        let (stage, places) = (Arc::clone(stage), Arc::clone(&places));
        playing.spawn(async move {
            let _place = places.acquire_owned().await;
            let found = play(&stage, &case).await;
            found.err().map(|problem| format!("{} ({}): {problem}", case.id, case.title))
        });
    }
    let mut problems: Vec<String> = playing.join_all().await.into_iter().flatten().collect();
    problems.sort();
    problems
}

async fn play(stage: &Stage, case: &Case) -> Result<(), String> {
    let values = Values {
        path: "/hook",
        id: &case.id,
        key: &format!("key-of-{}", case.id),
        host: &stage.onceward.address.to_string(),
        evil: &stage.evil,
    };
    for raw in &case.pre {
        Exchange::play(stage.onceward.address, expand(raw, &values), false).await?;
    }
    let raw = expand(&case.raw, &values);
    let exchange = Exchange::play(stage.onceward.address, raw, case.half_close).await?;
    judge::judge(case, &values, &exchange, &stage.upstream.seen(&case.id))?;
    always(stage, &case.id).await
}

/// Whatever happened, somebody else gets the answer to what he asked.
async fn always(stage: &Stage, id: &str) -> Result<(), String> {
    let clean = format!(
        "POST /hook?c=after-{id} HTTP/1.1\r\nHost: {}\r\nX-Idempotency-Key: after-{id}\r\n\
         Content-Length: 5\r\nConnection: close\r\n\r\nhello",
        stage.onceward.address
    );
    let raw = vec![template::Piece::Bytes(clean.into_bytes())];
    let exchange = Exchange::play(stage.onceward.address, raw, false).await?;
    match exchange.answers.as_slice() {
        [answer] if answer.status == 200 && answer.body == format!("after-{id}").as_bytes() => {
            Ok(())
        }
        other => Err(format!("the clean request afterwards got {other:?}")),
    }
}
