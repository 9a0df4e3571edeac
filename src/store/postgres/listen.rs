//! Receives notifications of the attempts that other processes end.
//!
//! One connection listens for notifications. While there is no such connection, or a pooler is in
//! between, all waiters of this process are woken at intervals of [`POLL_EVERY`], and each asks the
//! store.

use std::future::ready;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use futures_util::TryStreamExt as _;
use futures_util::stream::poll_fn;
use tokio::time::{Instant, MissedTickBehavior, interval_at, sleep, timeout};
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{AsyncMessage, Client};
use tokio_util::task::AbortOnDropHandle;

use super::dial::{Dialer, SESSION_MARK};
use crate::store::watch::Watchers;

/// The interval at which waiters are woken while no notifications come.
pub(super) const POLL_EVERY: Duration = Duration::from_secs(1);

/// The interval at which the connection is tested. The connection only receives, so nothing else
/// shows that it is dead.
const PING_EVERY: Duration = Duration::from_secs(2);

/// The time for which a server is taken for a pooler. Then it is tried again, because an operator
/// may have replaced it.
const POOLER_FOR: Duration = Duration::from_mins(1);

/// The channel that `swap` notifies.
const LISTEN: &str = "LISTEN onceward_ended";

/// Listens for notifications. It begins with the first call of the store.
#[derive(Debug)]
pub(super) struct NotificationListener {
    listener: Listener,
    task: OnceLock<AbortOnDropHandle<()>>,
}

#[derive(Debug, Clone)]
struct Listener {
    dialer: Dialer,
    watchers: Watchers,
    timeout: Duration,
    /// Whether notifications come at present.
    is_listening: Arc<AtomicBool>,
}

impl NotificationListener {
    pub(super) fn new(dialer: Dialer, watchers: Watchers, timeout: Duration) -> Self {
        Self {
            listener: Listener { dialer, watchers, timeout, is_listening: Arc::default() },
            task: OnceLock::new(),
        }
    }

    /// Begins to listen, unless it has begun before.
    pub(super) fn begin(&self) {
        let run = || AbortOnDropHandle::new(tokio::spawn(self.listener.clone().run()));
        self.task.get_or_init(run);
    }

    pub(super) fn end(&self) {
        if let Some(task) = self.task.get() {
            task.abort();
        }
    }
}

impl Listener {
    async fn run(self) {
        tokio::join!(self.wake_while_not_listening(), self.listen());
    }

    async fn wake_while_not_listening(&self) {
        let mut tick = interval_at(Instant::now() + POLL_EVERY, POLL_EVERY);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tick.tick().await;
            if !self.is_listening.load(Ordering::Acquire) {
                self.watchers.announce_all();
            }
        }
    }

    async fn listen(&self) {
        loop {
            let pause = self.listen_once().await;
            self.is_listening.store(false, Ordering::Release);
            sleep(pause).await;
        }
    }

    /// Listens until the connection ends. Returns the pause before the next try.
    async fn listen_once(&self) -> Duration {
        let Ok(random) = getrandom::u64() else { return POLL_EVERY };
        let mark = format!("{random:016x}");
        let dialled = timeout(self.timeout, self.dialer.dial(Some(&mark))).await;
        let Ok(Ok((client, mut connection))) = dialled else { return POLL_EVERY };
        let messages = poll_fn(|context| connection.poll_message(context));
        let received = messages.try_for_each(|message| {
            if let AsyncMessage::Notification(ended) = message
                && let Ok(id) = ended.payload().parse()
            {
                self.watchers.announce(id);
            }
            ready(Ok(()))
        });
        tokio::select! {
            Ok(()) | Err(_) = received => POLL_EVERY,
            pause = self.keep_listening(&client, &mark) => pause,
        }
    }

    /// Subscribes, and tests the connection from time to time, until it ends. Returns the pause
    /// before the next try.
    async fn keep_listening(&self, client: &Client, mark: &str) -> Duration {
        let mut has_subscribed = false;
        loop {
            match timeout(POLL_EVERY, is_own_session(client, mark)).await {
                Ok(Ok(true)) => {}
                // A pooler shares the sessions there, so `LISTEN` would act on the session of
                // another client.
                Ok(Ok(false)) => return POOLER_FOR,
                Ok(Err(_)) | Err(_) => return POLL_EVERY,
            }
            if !has_subscribed {
                let listen = client.batch_execute(LISTEN);
                if !matches!(timeout(self.timeout, listen).await, Ok(Ok(()))) {
                    return POLL_EVERY;
                }
                has_subscribed = true;
                self.is_listening.store(true, Ordering::Release);
                // Attempts may have ended just before, while this process did not listen.
                self.watchers.announce_all();
            }
            sleep(PING_EVERY).await;
        }
    }
}

/// Whether the server answers in the session that this process began. A pooler does not pass on the
/// options with which a client begins a session, and it may answer from any session.
async fn is_own_session(client: &Client, mark: &str) -> Result<bool, tokio_postgres::Error> {
    let statement = "SELECT coalesce(pg_catalog.current_setting($1, true) = $2, false)";
    let parameters: [(&(dyn ToSql + Sync), Type); 2] =
        [(&SESSION_MARK, Type::TEXT), (&mark, Type::TEXT)];
    client.query_typed_one(statement, &parameters).await?.try_get(0)
}
