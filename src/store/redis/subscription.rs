//! Receives notifications of the attempts that other processes end.
//!
//! One subscription serves all waiters of this process. While there is no subscription, this
//! process misses the messages that are published. So whenever a subscription ends or begins, all
//! waiters are woken, and each asks the store.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use futures_util::StreamExt as _;
use redis::{RedisResult, Value};
use tokio::time::{MissedTickBehavior, interval, sleep, timeout};
use tokio_util::task::AbortOnDropHandle;

use super::failure::NotRun;
use super::keys::Keys;
use super::servers::Servers;
use crate::operation::OperationId;
use crate::store::watch::Watchers;

/// The interval at which a running subscription is tested. While there is none, waiters are woken
/// and a new one is tried at this interval.
const INTERVAL: Duration = Duration::from_secs(1);

/// The subscription of this process. It begins with the first call.
#[derive(Debug)]
pub(super) struct Subscription {
    watchers: Watchers,
    /// The task that listens. There is none in a store that was closed before its first call.
    task: OnceLock<Option<AbortOnDropHandle<()>>>,
}

impl Subscription {
    pub(super) const fn new(watchers: Watchers) -> Self {
        Self { watchers, task: OnceLock::new() }
    }

    /// Begins to listen, unless listening has begun or ended before.
    pub(super) fn begin(&self, servers: &Arc<Servers>, keys: &Keys) {
        self.task.get_or_init(|| {
            let listening = listen(Arc::clone(servers), keys.endings(), self.watchers.clone());
            Some(AbortOnDropHandle::new(tokio::spawn(listening)))
        });
    }

    /// Ends the subscription for good.
    pub(super) fn end(&self) {
        if let Some(task) = self.task.get_or_init(|| None) {
            task.abort();
        }
    }
}

async fn listen(servers: Arc<Servers>, channel: String, watchers: Watchers) {
    loop {
        if let Err(why) = listen_once(&servers, &channel, &watchers).await {
            tracing::debug!(error = why, "notifications of ended attempts do not arrive");
        }
        watchers.announce_all();
        sleep(INTERVAL).await;
    }
}

/// Listens until the subscription ends.
async fn listen_once(
    servers: &Servers,
    channel: &str,
    watchers: &Watchers,
) -> Result<(), &'static str> {
    let (connection, node) = servers.subscribe().await.map_err(NotRun::as_str)?;
    let remade = node.remade();
    let (mut sink, mut published) = connection.split();
    let subscribed = timeout(INTERVAL, sink.subscribe(channel)).await;
    if !matches!(subscribed, Ok(Ok(()))) {
        return Err("the server does not let this process subscribe");
    }
    watchers.announce_all();
    let mut ticks = interval(INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            message = published.next() => {
                let message = message.ok_or("the connection has ended")?;
                if let Some(id) = ended_operation(message.get_payload_bytes()) {
                    watchers.announce(id);
                }
            }
            _ = ticks.tick() => {
                // A subscription only receives, so it does not notice a dead connection without a
                // `PING`.
                let pong: Result<RedisResult<Value>, _> = timeout(INTERVAL, sink.ping()).await;
                if !matches!(pong, Ok(Ok(_))) {
                    return Err("the server no longer answers");
                }
                // After a failover, messages are published on the new master. The old master may
                // live on, but does not get them.
                if node.remade() > remade {
                    return Err("a shared connection was made anew");
                }
            }
        }
    }
}

/// Returns the operation that a message names.
fn ended_operation(payload: &[u8]) -> Option<OperationId> {
    std::str::from_utf8(payload).ok()?.parse().ok()
}
