//! Hears of the attempts that other processes have ended.
//!
//! One subscription serves all waiters of this process. Messages that are published while there is
//! none are heard by nobody. So all waiters are woken whenever a subscription ends or begins, and
//! each asks the store.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use parking_lot::Mutex;
use redis::{RedisResult, Value};
use tokio::time::{MissedTickBehavior, interval, sleep, timeout};
use tokio_util::task::AbortOnDropHandle;

use super::failure::Refusal;
use super::keys::Keys;
use super::servers::Servers;
use crate::operation::OperationId;
use crate::store::watch::Watchers;

/// How often waiters are woken while there is no subscription, and how often one is tried.
const EVERY: Duration = Duration::from_secs(1);

/// The subscription of this process. It begins with the first call.
#[derive(Debug)]
pub(super) struct Subscription {
    watchers: Watchers,
    state: Mutex<SubscriptionState>,
}

#[derive(Debug)]
enum SubscriptionState {
    NotBegun,
    Running(#[expect(dead_code, reason = "dropping it ends the task")] AbortOnDropHandle<()>),
    Ended,
}

impl Subscription {
    pub(super) fn new(watchers: Watchers) -> Self {
        Self { watchers, state: Mutex::new(SubscriptionState::NotBegun) }
    }

    /// Begins to listen, unless this has begun or has been ended.
    pub(super) fn begin(&self, servers: &Arc<Servers>, keys: &Keys) {
        let mut state = self.state.lock();
        if matches!(*state, SubscriptionState::NotBegun) {
            let servers = Arc::clone(servers);
            let channel = keys.endings();
            let listening = listen(servers, channel, self.watchers.clone());
            *state = SubscriptionState::Running(AbortOnDropHandle::new(tokio::spawn(listening)));
        }
    }

    /// Ends it for good.
    pub(super) fn end(&self) {
        *self.state.lock() = SubscriptionState::Ended;
    }
}

async fn listen(servers: Arc<Servers>, channel: String, watchers: Watchers) {
    loop {
        if let Err(why) = listen_once(&servers, &channel, &watchers).await {
            tracing::debug!(error = why, "ends of attempts are not heard of");
        }
        watchers.announce_all();
        sleep(EVERY).await;
    }
}

/// Listens until the subscription ends.
async fn listen_once(
    servers: &Servers,
    channel: &str,
    watchers: &Watchers,
) -> Result<(), &'static str> {
    let (connection, node) = servers.subscribe().await.map_err(Refusal::text)?;
    let generation = node.generation();
    let (mut sink, mut published) = connection.split();
    let subscribed = timeout(EVERY, sink.subscribe(channel)).await;
    if !matches!(subscribed, Ok(Ok(()))) {
        return Err("the server does not let this process subscribe");
    }
    watchers.announce_all();
    let mut ticks = interval(EVERY);
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
                // A subscription only receives, so it would not notice that its connection is dead.
                let pong: Result<RedisResult<Value>, _> = timeout(EVERY, sink.ping()).await;
                if !matches!(pong, Ok(Ok(_))) {
                    return Err("the server does not answer any more");
                }
                // After a failover, messages are published on the new master, and the old one may
                // live on without getting them. A first shared connection, from 0 to 1, is no
                // failover.
                let moved = node.generation() > generation.max(1);
                if moved {
                    return Err("the server was connected to anew");
                }
            }
        }
    }
}

/// The operation that a message names.
fn ended_operation(payload: &[u8]) -> Option<OperationId> {
    std::str::from_utf8(payload).ok()?.parse().ok()
}
