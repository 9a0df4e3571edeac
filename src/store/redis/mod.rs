//! A store on Redis or Valkey, for several machines.
//!
//! The record of an operation is a hash under one exact key. One script, `swap.lua`, replaces the
//! record and updates the indexes of its shard. It does this in one atomic step, by the server's
//! own time. A script that is sent twice takes effect once, so a command is sent again after its
//! connection was lost.
//!
//! A change is as durable as the settings of the server make it. With `replica_acks`, a change
//! counts only once that many replicas have confirmed it. A failover to a replica that did not
//! confirm the change may still lose it.
//!
//! | files | do |
//! | --- | --- |
//! | `records`, `swap`, `swap.lua`, `command`, `reply` | the atomic step |
//! | `expiry`, `expire.lua`, `page`, `epoch`, `marker`, `concerns` | the other calls |
//! | `servers`, `cluster`, `node`, `connections`, `dial`, `failure` | connections, and a server for each command |
//! | `subscription` | notifications of ended attempts |
//! | `keys` | the names of keys |
#![doc = include_str!("../../../docs/redis.md")]

mod cluster;
mod command;
mod concerns;
mod connections;
mod dial;
mod epoch;
mod expiry;
mod failure;
mod keys;
mod marker;
mod node;
mod page;
mod records;
mod reply;
mod servers;
mod subscription;
mod swap;

pub(super) use concerns::concern_codes;
pub use keys::ACL_LINE;

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::time::Duration;

use self::keys::Keys;
use self::records::Redis;
use self::servers::Servers;
use self::subscription::Subscription;
use super::shared::SharedStore;
use super::watch::Watchers;
use super::{Certificates, SetupError, Store, WhenEmptied};
use crate::clock::Clock;
use crate::secret::Secret;

/// The servers of a store, and how to use them.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The servers' `redis://` or `rediss://` URLs. A URL may hold a user and a password.
    pub urls: Vec<Secret>,
    /// The relation of the servers to each other.
    pub mode: Mode,
    /// The beginning of every key, so that other programs can use the same server.
    pub prefix: String,
    /// The number of replicas that must confirm a claim, a settle or a decision before it counts.
    pub replica_acks: usize,
    /// The longest that a call may take.
    pub timeout: Duration,
    /// The user. Without this setting it is the user in the URL.
    pub username: Option<String>,
    /// The password. Without this setting it is the password in the URL.
    pub password: Option<Secret>,
    /// The certificates for `rediss://`.
    pub certificates: Certificates,
    /// The treatment of claims after a server has lost its records.
    pub when_emptied: WhenEmptied,
}

/// The relation of the servers to each other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Mode {
    /// The URL is that of the only server.
    Single,
    /// The URLs are those of sentinels, which know the address of the master of this name.
    Sentinel {
        /// The name that the sentinels monitor.
        master: String,
    },
    /// The URLs are those of some nodes of a cluster.
    Cluster,
}

impl Settings {
    /// Checks the settings and reads the certificates. Connects to no server.
    ///
    /// # Errors
    ///
    /// The same as [`open`].
    pub fn check(&self) -> Result<(), SetupError> {
        Servers::new(self).map(drop)
    }
}

/// Opens a store on these servers. The store connects when it is first used, and again after a lost
/// connection.
///
/// # Errors
///
/// If a file cannot be read, or if no connection can be made with these settings.
pub fn open(settings: &Settings, clock: Clock) -> Result<Arc<dyn Store>, SetupError> {
    let watchers = Watchers::default();
    let server = Redis {
        servers: Arc::new(Servers::new(settings)?),
        keys: Keys::under(&settings.prefix),
        replica_acks: settings.replica_acks,
        next_expiry: AtomicUsize::new(0),
        subscription: Subscription::new(watchers.clone()),
    };
    let Settings { when_emptied, timeout, .. } = *settings;
    Ok(Arc::new(SharedStore::new(server, when_emptied, watchers, timeout, clock)))
}
