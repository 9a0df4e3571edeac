//! A store on Redis or Valkey, for several machines.
//!
//! The record of an operation is a hash under one exact key. One script, `swap.lua`, replaces the
//! record and updates the indexes of its shard, in one atomic step on the server's own time. A
//! script that is sent twice takes effect once, so a command is sent again when its connection is
//! lost.
//!
//! A change is as durable as the server is set up to make it. With `replica_acks` it counts only
//! once that many replicas have confirmed it; a failover to a replica that was not among them may
//! still lose it.
//!
//! | files | do |
//! | --- | --- |
//! | `records`, `swap.lua`, `command`, `reply` | the atomic step |
//! | `expiry`, `expire.lua`, `page`, `epoch`, `concerns` | the other calls |
//! | `servers`, `cluster`, `node`, `dial`, `failure` | connections, and which server a command goes to |
//! | `subscription` | notifications of ended attempts |
//! | `keys` | the names of keys |
#![doc = include_str!("../../../docs/redis.md")]

mod cluster;
mod command;
mod concerns;
mod dial;
mod epoch;
mod expiry;
mod failure;
mod keys;
mod node;
mod page;
mod records;
mod reply;
mod servers;
mod subscription;

pub(super) use concerns::concern_codes;
pub use keys::ACL_LINE;

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::time::Duration;

use self::keys::Keys;
use self::records::Redis;
use self::servers::Servers;
use self::subscription::Subscription;
use super::shared::{EpochTracker, SharedStore};
use super::watch::Watchers;
use super::{Certificates, SetupError, Store, WhenEmptied};
use crate::clock::Clock;
use crate::secret::Secret;

/// The servers to use, and how.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The servers' `redis://` or `rediss://` URLs. A URL may hold a user and a password.
    pub urls: Vec<Secret>,
    /// How several servers belong together.
    pub mode: Mode,
    /// The beginning of every key, so that a server can be shared with others.
    pub prefix: String,
    /// Replicas that must confirm a claim, a settle or a decision before it counts.
    pub replica_acks: usize,
    /// The longest that a call may take.
    pub timeout: Duration,
    /// The user; none for the one in the URL.
    pub username: Option<String>,
    /// The password; none for the one in the URL.
    pub password: Option<Secret>,
    /// The certificates for `rediss://`.
    pub certificates: Certificates,
    /// What becomes of claims when a server has lost its records.
    pub when_emptied: WhenEmptied,
}

/// How several servers belong together.
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
    /// As [`open`].
    pub fn check(&self) -> Result<(), SetupError> {
        Servers::new(self).map(drop)
    }
}

/// Opens a store on these servers. It connects when it is first used, and again after a connection
/// was lost.
///
/// # Errors
///
/// If a file cannot be read, or the settings do not make a connection.
pub fn open(settings: &Settings, clock: Clock) -> Result<Arc<dyn Store>, SetupError> {
    let watchers = Watchers::default();
    let server = Redis {
        servers: Arc::new(Servers::new(settings)?),
        keys: Keys::under(&settings.prefix),
        replica_acks: settings.replica_acks,
        next_expiry: AtomicUsize::new(0),
        epoch: EpochTracker::new(settings.when_emptied),
        subscription: Subscription::new(watchers.clone()),
    };
    Ok(Arc::new(SharedStore::new(server, watchers, settings.timeout, clock)))
}
