//! In PostgreSQL, for several machines.
//!
//! One row is one operation. A call is one statement: `swap` (in `0002_swap.sql`) compares and
//! changes one row in one transaction, and a unique key decides who is first. No connection is held
//! between two calls, so none is while an upstream works.
//!
//! `url` may lead to PgBouncer in transaction mode: there are no prepared statements, and nothing
//! is left set in a session. Ends of attempts are heard of over one more connection, which must be
//! a direct one (`listen_url`); else who waits asks again every second.
#![doc = include_str!("../../../docs/postgres.md")]

mod concerns;
mod dial;
mod epoch;
mod listen;
mod migrate;
mod page;
mod pool;
mod records;
mod refusal;
mod row;
mod tls;

pub(super) use concerns::concern_codes;

use std::sync::Arc;
use std::time::Duration;

use self::dial::Dialer;
use self::listen::Listening;
use self::migrate::Tables;
use self::pool::Connections;
use self::records::Postgres;
use super::endings::Endings;
use super::epoch::Epoch;
use super::shared::Shared;
use super::{Certificates, SetupError, Store, WhenEmptied};
use crate::clock::Clock;
use crate::secret::Secret;

/// Which database, and how it is used.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Where it is: a `postgres://` URL. In it may stand a user and a password.
    pub url: Secret,
    /// Where notifications are listened for, if `url` leads to a pooler; else there is none, and
    /// waiters ask again.
    pub listen_url: Option<Secret>,
    /// The schema that the tables are in. It is made if it does not exist.
    pub schema: String,
    /// Connections at a time, those for renewals included. One more listens for notifications.
    pub connections_max: usize,
    /// Longest that a call may take.
    pub timeout: Duration,
    /// How the server and this process prove who they are, where the URL asks for TLS.
    pub certificates: Certificates,
    /// What becomes of claims when the database comes back empty.
    pub when_emptied: WhenEmptied,
}

impl Settings {
    /// Whether connections can be made of these settings.
    ///
    /// # Errors
    ///
    /// As [`open`].
    pub fn check(&self) -> Result<(), SetupError> {
        self.records(&Endings::default()).map(drop)
    }

    fn records(&self, endings: &Endings) -> Result<Postgres, SetupError> {
        let tls = tls::connector(&self.certificates)?;
        let dialer = |url: &Secret| Dialer::new(url, self, tls.clone());
        let listener = dialer(self.listen_url.as_ref().unwrap_or(&self.url))?;
        let common = dialer(&self.url)?;
        Ok(Postgres {
            connections: Connections::new(common, self.connections_max, self.timeout)?,
            tables: Arc::new(Tables::new(&self.schema)?),
            listening: Listening::new(listener, endings.clone(), self.timeout),
            epoch: Epoch::new(self.when_emptied),
            timeout: self.timeout,
        })
    }
}

/// A store in this database. Nothing is connected before it is used, and lost connections are made
/// again.
///
/// # Errors
///
/// If a file cannot be read, or the settings do not make a connection.
pub fn open(settings: &Settings, clock: Clock) -> Result<Arc<dyn Store>, SetupError> {
    let endings = Endings::default();
    let records = settings.records(&endings)?;
    Ok(Arc::new(Shared::new(records, endings, settings.timeout, clock)))
}

/// The part of a call's time that one step of it may take, so that there is time left to say so.
fn share(timeout: Duration) -> Duration {
    timeout.mul_f64(0.75)
}

/// The same in whole milliseconds, as the server counts; never none, which would be for ever.
fn share_millis(timeout: Duration) -> i32 {
    i32::try_from(share(timeout).as_millis()).unwrap_or(i32::MAX).max(1)
}
