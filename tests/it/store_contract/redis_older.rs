//! An older process on the same server, while processes are upgraded one by one: each reads and
//! writes what the other has left.

use std::sync::Arc;

use onceward::clock::Clock;
use onceward::operation::state::{ClaimReply, ClaimRequest, ReportedState, Settled};
use onceward::operation::{OperationId, Outcome};
use onceward::store::redis::open;
use onceward::store::{Store, StoreExt as _};
use redis::Value;
use tokio::time::timeout;

use super::redis::{listens, that_waits};
use super::redis_faults::{record, replay};
use super::support::{attempted, claim_on, copy_of, end_of, granted, order};
use crate::support::{PATIENCE, RedisServer};

const OLDER: &str = include_str!("redis_older.lua");
const INDEXES: [&str; 5] = ["created", "in_flight", "uncertain", "settled", "keys"];
const FIELDS: [&str; 6] = ["revision", "record", "state", "changes_at", "created_at", "route"];

fn store_on(server: &RedisServer) -> Arc<dyn Store> {
    open(&server.settings(), Clock::system()).unwrap()
}

fn member(id: OperationId) -> String {
    id.to_string().split_off(3)
}

fn index(id: OperationId, name: &str) -> String {
    record(id).replace(&format!("op:{}", member(id)), name)
}

/// The fields of a record.
async fn fields(server: &RedisServer, id: OperationId) -> Vec<Vec<u8>> {
    let mut command = redis::cmd("HMGET");
    command.arg(record(id)).arg(&FIELDS);
    command.query_async(&mut server.connection().await).await.unwrap()
}

/// The indexes that an operation is in.
async fn places(server: &RedisServer, id: OperationId) -> Vec<&'static str> {
    let mut places = Vec::new();
    for name in INDEXES {
        let score = server.does(&format!("ZSCORE {} {}", index(id, name), member(id))).await;
        places.extend((score != Value::Nil).then_some(name));
    }
    places
}

/// What an older process asks of the server.
struct Older<'a> {
    server: &'a RedisServer,
    id: OperationId,
}

impl Older<'_> {
    async fn asks(&self, expected: &[u8], what: &str, ends: bool, put: &[Vec<u8>]) -> Vec<Value> {
        let mut command = redis::cmd("EVAL");
        command.arg(OLDER).arg(6).arg(record(self.id));
        command.arg(&INDEXES.map(|name| index(self.id, name)));
        command.arg(member(self.id)).arg(expected).arg("0").arg(what).arg("0");
        command.arg(0).arg(i64::MAX).arg(u8::from(ends)).arg("0");
        command.arg("onceward:endings").arg(self.id.to_string());
        command.arg(put);
        if !put.is_empty() {
            command.arg(1);
        }
        command.query_async(&mut self.server.connection().await).await.unwrap()
    }

    async fn puts(&self, expected: &[u8], ends: bool, fields: &[Vec<u8>]) {
        let reply = self.asks(expected, "put", ends, fields).await;
        assert_eq!(reply[0], Value::BulkString(b"done".into()), "{reply:?}");
    }

    /// The revision and the record that it sees.
    async fn sees(&self) -> [Value; 2] {
        let reply = self.asks(b"", "look", false, &[]).await;
        assert_eq!(reply[0], Value::BulkString(b"seen".into()), "{reply:?}");
        [reply[2].clone(), reply[3].clone()]
    }
}

/// Claims an operation and then settles it, on a server of its own: what is kept of each.
async fn written(request: &ClaimRequest) -> [Vec<Vec<u8>>; 2] {
    let server = RedisServer::start().await;
    let (store, id) = (store_on(&server), request.subject.id);
    store.apply(request.clone()).await.unwrap();
    let claimed = fields(&server, id).await;
    store.apply(end_of(request, 1, Outcome::Succeeded)).await.unwrap();
    [claimed, fields(&server, id).await]
}

async fn somebody_waits(store: &dyn Store, request: &ClaimRequest) {
    let met = store.apply(that_waits(claim_on(&request.subject))).await.unwrap();
    assert!(matches!(met, ClaimReply::NotGranted(ReportedState::InFlight { .. })), "{met:?}");
}

#[tokio::test]
async fn what_an_older_process_settles_is_replayed() {
    let server = RedisServer::start().await;
    let (store, other, subject) = (store_on(&server), store_on(&server), order("1"));
    listens(&*other).await;
    let (request, _) = granted(&*store, &subject).await;
    assert_eq!(places(&server, subject.id).await, ["created", "in_flight", "keys"]);
    somebody_waits(&*other, &request).await;
    let mut watch = other.watch(subject.id).await.unwrap();
    let [_, settled] = written(&request).await;
    let older = Older { server: &server, id: subject.id };
    older.puts(&fields(&server, subject.id).await[0], true, &settled).await;
    timeout(PATIENCE, watch.ended()).await.expect("the end is told");
    assert_eq!(places(&server, subject.id).await, ["created", "settled", "keys"]);
    for store in [store, other, store_on(&server)] {
        assert_eq!(copy_of(&*store, &subject).await, replay());
    }
}

#[tokio::test]
async fn what_an_older_process_claimed_is_settled_and_seen_by_it() {
    let server = RedisServer::start().await;
    let (store, subject) = (store_on(&server), order("1"));
    let request = claim_on(&subject);
    let [claimed, _] = written(&request).await;
    let older = Older { server: &server, id: subject.id };
    older.puts(b"", false, &claimed).await;
    somebody_waits(&*store, &request).await;
    let settled = store.apply(end_of(&request, 1, Outcome::Succeeded)).await.unwrap();
    assert!(matches!(settled, Settled::Recorded { .. }), "{settled:?}");
    assert_eq!(server.calls("publish").await, 1);
    assert_eq!(places(&server, subject.id).await, ["created", "settled", "keys"]);
    let kept = fields(&server, subject.id).await;
    let [revision, record] = older.sees().await;
    assert_eq!(revision, Value::BulkString(kept[0].clone()));
    assert_eq!(record, Value::BulkString(kept[1].clone()));
}

/// An older process also needs the fields that only its lists read.
#[tokio::test]
async fn an_older_process_finds_every_field() {
    let server = RedisServer::start().await;
    let (store, subject) = (store_on(&server), order("1"));
    let (request, _) = attempted(&*store, &subject, Outcome::Failed).await;
    let kept = fields(&server, subject.id).await;
    assert_eq!(kept[2], b"failed");
    assert_eq!(kept[5], b"orders");
    granted(&*store, &subject).await;
    let again = fields(&server, subject.id).await;
    assert_eq!(again[2], b"in_flight");
    assert_eq!(again[4..], kept[4..], "{request:?}");
    assert_eq!(places(&server, subject.id).await, ["created", "in_flight", "keys"]);
}
