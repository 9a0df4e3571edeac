//! Hears of the ends of attempts that other processes have recorded.
//!
//! One subscription for all that wait in this process. While there is none, and when there is one
//! again, everybody who waits is woken and asks: what was published meanwhile was heard by nobody.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::StreamExt as _;
use redis::{RedisResult, Value};
use tokio::time::{MissedTickBehavior, interval, sleep, timeout};
use tokio_util::task::AbortOnDropHandle;

use super::keys::Keys;
use super::servers::Servers;
use crate::operation::OperationId;
use crate::store::endings::Endings;

/// How often those who wait are woken without a subscription, and how often one is tried.
const EVERY: Duration = Duration::from_secs(1);

/// The subscription of this process, from the first call on.
#[derive(Debug)]
pub(super) struct Subscription {
    endings: Endings,
    listens: Mutex<Listens>,
}

#[derive(Debug)]
enum Listens {
    NotYet,
    Now(#[expect(dead_code, reason = "it ends when it is dropped")] AbortOnDropHandle<()>),
    NoMore,
}

impl Subscription {
    pub(super) fn new(endings: Endings) -> Self {
        Self { endings, listens: Mutex::new(Listens::NotYet) }
    }

    /// Listens, if it does not yet.
    pub(super) fn begin(&self, servers: &Arc<Servers>, keys: &Keys) {
        let mut listens = self.listens.lock().unwrap_or_else(PoisonError::into_inner);
        if matches!(*listens, Listens::NotYet) {
            let servers = Arc::clone(servers);
            let channel = keys.endings();
            let listening = listen(servers, channel, self.endings.clone());
            *listens = Listens::Now(AbortOnDropHandle::new(tokio::spawn(listening)));
        }
    }

    /// Listens no more.
    pub(super) fn end(&self) {
        *self.listens.lock().unwrap_or_else(PoisonError::into_inner) = Listens::NoMore;
    }
}

async fn listen(servers: Arc<Servers>, channel: String, endings: Endings) {
    loop {
        if let Err(why) = hear(&servers, &channel, &endings).await {
            tracing::debug!(error = why, "ends of attempts are not heard of");
        }
        endings.announce_all();
        sleep(EVERY).await;
    }
}

/// Hears until the subscription ends.
async fn hear(servers: &Servers, channel: &str, endings: &Endings) -> Result<(), &'static str> {
    let (connection, node) = servers.subscribe().await?;
    let number = node.number();
    let (mut sink, mut published) = connection.split();
    let subscribed = timeout(EVERY, sink.subscribe(channel)).await;
    if !matches!(subscribed, Ok(Ok(()))) {
        return Err("the server does not let this process subscribe");
    }
    endings.announce_all();
    let mut ticks = interval(EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            message = published.next() => {
                let message = message.ok_or("the connection has ended")?;
                if let Some(id) = ended(message.get_payload_bytes()) {
                    endings.announce(id);
                }
            }
            _ = ticks.tick() => {
                // a connection that is lost may show no sign of it
                let pong: Result<RedisResult<Value>, _> = timeout(EVERY, sink.ping()).await;
                if !matches!(pong, Ok(Ok(_))) {
                    return Err("the server does not answer any more");
                }
                // it may have another master by now
                let moved = node.number() > number.max(1);
                if moved {
                    return Err("the server was connected to anew");
                }
            }
        }
    }
}

fn ended(payload: &[u8]) -> Option<OperationId> {
    std::str::from_utf8(payload).ok()?.parse().ok()
}
