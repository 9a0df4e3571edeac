//! A store in PostgreSQL, for several machines.
//!
//! An operation is one row. A rule is applied with one statement: the function `swap` (in
//! `0002_swap.sql`) compares and changes one row in one transaction. The primary key decides which
//! of two claims is first. No call keeps its connection, so none is held while an upstream works.
//!
//! While calls wait for others, they form groups. The function `swap_all` (in `0006_swap_all.sql`)
//! makes the steps of a group in one transaction. It leaves out what is rare, such as a step that
//! must wait for another transaction, and `swap` makes such a step alone.
//!
//! `url` may lead to PgBouncer in transaction mode, because this store prepares no statements and
//! leaves no settings in a session. One more connection receives notifications of ended attempts.
//! It must lead to the server itself (`listen_url`). Without it, waiters ask again every second.
//!
//! | files | do |
//! | --- | --- |
//! | `records`, `page`, `epoch`, `concerns` | the calls; most take one statement |
//! | `swap`, `groups`, `group` | the atomic step on a row, alone or with others |
//! | `function`, `arguments`, `values`, `row` | its statements, and what they take and return |
//! | `migrate`, `0001_operations.sql` and later | the tables |
//! | `database`, `pool`, `dial`, `tls`, `failure` | connections, and the meaning of errors |
//! | `listen` | notifications of ended attempts |
#![doc = include_str!("../../../docs/postgres.md")]

mod arguments;
mod concerns;
mod database;
mod dial;
mod epoch;
mod failure;
mod function;
mod group;
mod groups;
mod listen;
mod migrate;
mod page;
mod pool;
mod records;
mod row;
mod swap;
mod tls;
mod values;

pub(super) use concerns::concern_codes;

use std::sync::Arc;
use std::time::Duration;

use self::database::Database;
use self::dial::Dialer;
use self::groups::Groups;
use self::listen::NotificationListener;
use self::migrate::Tables;
use self::pool::Connections;
use self::records::Postgres;
use super::shared::SharedStore;
use super::watch::Watchers;
use super::{Certificates, SetupError, Store, WhenEmptied};
use crate::clock::Clock;
use crate::secret::Secret;

/// The database of a store, and how to use it.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The database's `postgres://` URL. It may hold a user and a password.
    pub url: Secret,
    /// The URL at which to listen for notifications, if `url` leads to a pooler. Without this
    /// setting it is `url`.
    pub listen_url: Option<Secret>,
    /// The schema of the tables. It is made if it does not exist.
    pub schema: String,
    /// The most connections, including those for renewals. One more connection listens for
    /// notifications.
    pub connections_max: usize,
    /// The longest that a call may take.
    pub timeout: Duration,
    /// The certificates for TLS, if the URL asks for TLS.
    pub certificates: Certificates,
    /// The treatment of claims after the database has lost its records.
    pub when_emptied: WhenEmptied,
}

impl Settings {
    /// Checks the settings and reads the certificates. Connects to no server.
    ///
    /// # Errors
    ///
    /// The same as [`open`].
    pub fn check(&self) -> Result<(), SetupError> {
        self.server(&Watchers::default()).map(drop)
    }

    fn server(&self, watchers: &Watchers) -> Result<Postgres, SetupError> {
        let tls = tls::connector(&self.certificates)?;
        let dialer = |url: &Secret| Dialer::new(url, self, tls.clone());
        let listener = dialer(self.listen_url.as_ref().unwrap_or(&self.url))?;
        let common = dialer(&self.url)?;
        let database = Arc::new(Database {
            connections: Connections::new(common, self.connections_max, self.timeout)?,
            tables: Arc::new(Tables::new(&self.schema)?),
            listener: NotificationListener::new(listener, watchers.clone(), self.timeout),
        });
        Ok(Postgres {
            reads: Groups::new(Arc::clone(&database), self.timeout),
            writes: Groups::new(Arc::clone(&database), self.timeout),
            database,
            timeout: self.timeout,
        })
    }
}

/// Opens a store in this database. The store connects when it is first used, and again after a lost
/// connection.
///
/// # Errors
///
/// If a file cannot be read, or if no connection can be made with these settings.
pub fn open(settings: &Settings, clock: Clock) -> Result<Arc<dyn Store>, SetupError> {
    let watchers = Watchers::default();
    let server = settings.server(&watchers)?;
    let Settings { when_emptied, timeout, .. } = *settings;
    Ok(Arc::new(SharedStore::new(server, when_emptied, watchers, timeout, clock)))
}

/// Returns the part of a call's time that one step may take, so that time is left to report a
/// failure.
fn share(timeout: Duration) -> Duration {
    timeout.mul_f64(0.75)
}

/// Returns the same in whole milliseconds, but at least one, because the server takes 0 for no
/// limit.
fn share_millis(timeout: Duration) -> i32 {
    i32::try_from(share(timeout).as_millis()).unwrap_or(i32::MAX).max(1)
}
