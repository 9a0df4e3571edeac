//! Hears of the ends of attempts that other processes record.
//!
//! One connection listens. While there is none, or where a pooler is between, all who wait are
//! woken every [`POLL_EVERY`], and ask again.

use std::future::ready;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::TryStreamExt as _;
use futures_util::stream::poll_fn;
use tokio::task::JoinHandle;
use tokio::time::{Instant, MissedTickBehavior, interval_at, sleep, timeout};
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{AsyncMessage, Client};

use super::dial::{Dialer, SESSION_MARK};
use crate::store::endings::Endings;

/// How often who waits is woken where no end is heard of.
pub(super) const POLL_EVERY: Duration = Duration::from_secs(1);

/// How often the connection is tried while it is quiet.
const PING_EVERY: Duration = Duration::from_secs(2);

/// How long a place is taken for a pooler before it is tried again.
const POOLER_FOR: Duration = Duration::from_mins(1);

/// Where `swap` tells of the ends of attempts.
const LISTEN: &str = "LISTEN onceward_ended";

/// The connection that listens, once something was asked of the store.
#[derive(Debug)]
pub(super) struct Listening {
    ear: Ear,
    task: Mutex<Option<JoinHandle<()>>>,
}

#[derive(Debug, Clone)]
struct Ear {
    dialer: Dialer,
    endings: Endings,
    timeout: Duration,
    hears: Arc<AtomicBool>,
}

/// Why nothing is heard any more.
enum Deaf {
    /// The connection is lost, or was not made.
    Lost,
    /// Sessions there are shared, so that nobody is told anything.
    Pooler,
}

impl Listening {
    pub(super) fn new(dialer: Dialer, endings: Endings, timeout: Duration) -> Self {
        Self {
            ear: Ear { dialer, endings, timeout, hears: Arc::default() },
            task: Mutex::default(),
        }
    }

    /// Listens from now on.
    pub(super) fn begin(&self) {
        let mut task = self.task.lock().unwrap_or_else(PoisonError::into_inner);
        if task.is_none() {
            *task = Some(tokio::spawn(self.ear.clone().listen()));
        }
    }

    pub(super) fn end(&self) {
        if let Some(task) = &*self.task.lock().unwrap_or_else(PoisonError::into_inner) {
            task.abort();
        }
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        self.end();
    }
}

impl Ear {
    async fn listen(self) {
        tokio::join!(self.wake_while_deaf(), self.hear_again_and_again());
    }

    async fn wake_while_deaf(&self) {
        let mut tick = interval_at(Instant::now() + POLL_EVERY, POLL_EVERY);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tick.tick().await;
            if !self.hears.load(Ordering::Acquire) {
                self.endings.announce_all();
            }
        }
    }

    async fn hear_again_and_again(&self) {
        loop {
            let why = self.hear().await;
            self.hears.store(false, Ordering::Release);
            sleep(match why {
                Deaf::Lost => POLL_EVERY,
                Deaf::Pooler => POOLER_FOR,
            })
            .await;
        }
    }

    /// Hears for as long as a connection lasts.
    async fn hear(&self) -> Deaf {
        let Ok(random) = getrandom::u64() else { return Deaf::Lost };
        let mark = format!("{random:016x}");
        let dialled = timeout(self.timeout, self.dialer.dial(Some(&mark))).await;
        let Ok(Ok((client, mut connection))) = dialled else { return Deaf::Lost };
        let told = poll_fn(|context| connection.poll_message(context));
        let told = told.try_for_each(|message| {
            if let AsyncMessage::Notification(ended) = message
                && let Ok(id) = ended.payload().parse()
            {
                self.endings.announce(id);
            }
            ready(Ok(()))
        });
        tokio::select! {
            Ok(()) | Err(_) = told => Deaf::Lost,
            why = self.stay(&client, &mark) => why,
        }
    }

    /// Begins to listen, and makes sure from time to time that this goes on.
    async fn stay(&self, client: &Client, mark: &str) -> Deaf {
        let mut listens = false;
        loop {
            match timeout(POLL_EVERY, is_own(client, mark)).await {
                Ok(Ok(true)) => {}
                Ok(Ok(false)) => return Deaf::Pooler,
                Ok(Err(_)) | Err(_) => return Deaf::Lost,
            }
            if !listens {
                let listen = client.batch_execute(LISTEN);
                if !matches!(timeout(self.timeout, listen).await, Ok(Ok(()))) {
                    return Deaf::Lost;
                }
                listens = true;
                self.hears.store(true, Ordering::Release);
                // what ended before was told to nobody
                self.endings.announce_all();
            }
            sleep(PING_EVERY).await;
        }
    }
}

/// Whether this is a session of our own: a pooler takes its beginning for itself.
async fn is_own(client: &Client, mark: &str) -> Result<bool, tokio_postgres::Error> {
    let statement = "SELECT coalesce(pg_catalog.current_setting($1, true) = $2, false)";
    let parameters: [(&(dyn ToSql + Sync), Type); 2] =
        [(&SESSION_MARK, Type::TEXT), (&mark, Type::TEXT)];
    client.query_typed_one(statement, &parameters).await?.try_get(0)
}
