//! On Redis or Valkey, for several machines.
//!
//! The record of an operation is a hash under one exact key. One script puts the next record in its
//! place and keeps the indexes of its shard, in one atomic step on the server's own time. A script
//! that is sent twice does what it does once, so a call is made again when its connection is lost.
//!
//! What the server has acknowledged is as durable as the server is set up to make it. With
//! `replica_acks`, replicas have it as well before it counts; a failover to a replica that was not
//! among them may still lose it.
#![doc = include_str!("../../../docs/redis.md")]

mod call;
mod cluster;
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
use super::endings::Endings;
use super::epoch::Epoch;
use super::shared::Shared;
use super::{Certificates, SetupError, Store, WhenEmptied};
use crate::clock::Clock;
use crate::secret::Secret;

/// Which servers, and how they are used.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Where they are: `redis://` or `rediss://` URLs. In a URL may stand a user and a password.
    pub urls: Vec<Secret>,
    /// How several servers belong together.
    pub mode: Mode,
    /// What every key begins with, so that one server may be shared.
    pub prefix: String,
    /// Replicas that must have a claim, a settle or a resolve before it counts.
    pub replica_acks: usize,
    /// Longest that a call may take.
    pub timeout: Duration,
    /// The user; else that of the URL.
    pub username: Option<String>,
    /// The password; else that of the URL.
    pub password: Option<Secret>,
    /// How servers and this process prove who they are, on `rediss://`.
    pub certificates: Certificates,
    /// What becomes of claims when a server comes back empty.
    pub when_emptied: WhenEmptied,
}

/// How several servers belong together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Mode {
    /// The URL is that of one server.
    Single,
    /// The URLs are those of sentinels, which know who is the master of this name.
    Sentinel {
        /// The name that the sentinels monitor.
        master: String,
    },
    /// The URLs are those of some nodes of a cluster.
    Cluster,
}

impl Settings {
    /// Whether connections can be made of these settings.
    ///
    /// # Errors
    ///
    /// As [`open`].
    pub fn check(&self) -> Result<(), SetupError> {
        Servers::new(self).map(drop)
    }
}

/// A store on these servers. Nothing is connected before it is used, and lost connections are made
/// again.
///
/// # Errors
///
/// If a file cannot be read, or the settings do not make a connection.
pub fn open(settings: &Settings, clock: Clock) -> Result<Arc<dyn Store>, SetupError> {
    let endings = Endings::default();
    let records = Redis {
        servers: Arc::new(Servers::new(settings)?),
        keys: Keys::under(&settings.prefix),
        replica_acks: settings.replica_acks,
        turn: AtomicUsize::new(0),
        epoch: Epoch::new(settings.when_emptied),
        subscription: Subscription::new(endings.clone()),
    };
    Ok(Arc::new(Shared::new(records, endings, settings.timeout, clock)))
}
