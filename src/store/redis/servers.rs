//! The servers of a store. They are one server, the master that sentinels name, or the nodes of a
//! cluster.
//!
//! This file and `node`, `cluster` and `dial` route commands by hand. The library, redis-rs 1.8.1,
//! has clients for a cluster and for sentinels, but they cannot keep the contract of a store:
//!
//! * The cluster client sends a command again by itself, up to 16 times, also after a lost
//!   connection (`choose_response` in `src/cluster_handling/async_connection/request.rs`; a dropped
//!   connection has `RetryMethod::Reconnect` in `src/errors/redis_error.rs`). It returns the last
//!   reply, and does not say that it sent the command before. If the first send made a claim and
//!   the reply to the second was a refusal, it would look as if nothing had been done. With
//!   `retries(0)` the client does not follow `MOVED` and `ASK` either, because these count as
//!   retries.
//! * The cluster client sends `WAIT` to all masters and returns the lowest count
//!   (`src/cluster_handling/routing.rs`). A store needs the number of replicas that have what
//!   *this* connection wrote.
//! * The sentinel client takes the answers of the sentinels in the order of the settings
//!   (`async_find_master_address` in `src/sentinel.rs`). If the first sentinel is dead, the answers
//!   of the others must wait until the connection to the first has timed out. A call has only a few
//!   seconds.

use std::sync::Arc;
use std::time::Duration;

use redis::aio::PubSub;
use redis::{ErrorKind, RedisError, ServerErrorKind, Value};
use tokio::time::sleep;

use super::cluster::Cluster;
use super::command::Command;
use super::dial::{Dialer, Target};
use super::failure::{CommandError, NotRun, is_no_master};
use super::keys::Shard;
use super::node::{Delivery, Node, NodeReply, SendError};
use super::{Mode, Settings};
use crate::store::SetupError;

/// The most times that a command goes on to another node.
const HOPS_MAX: usize = 8;
/// The most times that a command waits for a cluster that moves its keys.
const PAUSES_MAX: u32 = 3;
/// The first pause. Each later pause is twice as long as the one before.
const PAUSE: Duration = Duration::from_millis(10);

/// The servers of a store.
#[derive(Debug)]
pub(super) enum Servers {
    /// There is only one server, or one master.
    One(Arc<Node>),
    /// Each node of a cluster has some of the shards.
    Cluster(Box<Cluster>),
}

/// A server's reply, with the number of replicas that confirmed the change.
pub(super) struct ConfirmedReply {
    pub(super) reply: NodeReply,
    /// Whether the command had been sent before, on a lost connection. That earlier send may have
    /// taken effect, whatever this reply says.
    pub(super) was_resent: bool,
    /// The node that replied.
    pub(super) node: Arc<Node>,
}

/// The next step of a command that brought no value from a node.
enum NextStep {
    /// The command fails.
    Fail(CommandError),
    /// The command is sent to the node in `asking`, or else to the node of the shard.
    Redirect { asking: Option<Arc<Node>> },
    /// The command is sent again, after the cluster had time to move the keys.
    RetryLater,
}

impl Servers {
    /// Reads the settings. Connects to no server.
    pub(super) fn new(settings: &Settings) -> Result<Self, SetupError> {
        let dialer = Arc::new(Dialer::new(settings)?);
        let target = match &settings.mode {
            Mode::Cluster => return Ok(Self::Cluster(Box::new(Cluster::new(dialer)))),
            Mode::Sentinel { master } => Target::Master(master.clone()),
            Mode::Single => Target::Address(dialer.first()),
        };
        Ok(Self::One(Arc::new(Node::new(dialer, target))))
    }

    /// Runs a command on the server of a shard.
    pub(super) async fn run(&self, shard: Shard, command: &Command) -> Result<Value, CommandError> {
        Ok(self.run_confirmed(shard, command, 0).await?.reply.value)
    }

    /// Runs a command, and waits until `acks` replicas have confirmed its change. Sends the command
    /// again if necessary. After a lost connection, only a success tells the effect of the command.
    /// A later error says nothing about the earlier send.
    pub(super) async fn run_confirmed(
        &self,
        shard: Shard,
        command: &Command,
        acks: usize,
    ) -> Result<ConfirmedReply, CommandError> {
        let mut lost = None;
        let ended = self.follow(shard, command, acks, &mut lost).await;
        ended.map_err(|error| lost.map_or(error, CommandError::Failed))
    }

    /// Sends a command from node to node, as their replies direct. If a connection is lost, its
    /// error is put into `lost`.
    async fn follow(
        &self,
        shard: Shard,
        command: &Command,
        acks: usize,
        lost: &mut Option<RedisError>,
    ) -> Result<ConfirmedReply, CommandError> {
        let mut asking: Option<Arc<Node>> = None;
        let mut hops = 0;
        let mut pauses = 0;
        // The first failure is the cause. Later redirects are only its consequence.
        let mut cause: Option<(Arc<Node>, NotRun)> = None;
        loop {
            let node = asking.take();
            let delivery = Delivery { asking: node.is_some(), acks };
            let node = node.unwrap_or_else(|| self.node(shard));
            let error = match node.send(command, delivery).await {
                Ok(reply) => {
                    return Ok(ConfirmedReply { reply, was_resent: lost.is_some(), node });
                }
                Err(error) => error,
            };
            if let SendError::NotSent(reason) = &error {
                match &cause {
                    // Another node sent the command back to the failed node. So the failed node has
                    // the shard, and no other node can help.
                    Some((first, reason)) if Arc::ptr_eq(first, &node) => {
                        return Err(CommandError::NotRun(*reason));
                    }
                    Some(_) => {}
                    None => cause = Some((Arc::clone(&node), *reason)),
                }
            }
            match self.next_step(shard, &node, error, lost) {
                NextStep::Fail(error) => return Err(error),
                NextStep::Redirect { .. } if hops == HOPS_MAX => {
                    let reason = cause.map_or(NotRun::MovedTooOften, |(_, reason)| reason);
                    return Err(reason.into());
                }
                NextStep::Redirect { asking: node } => {
                    hops += 1;
                    asking = node;
                }
                NextStep::RetryLater if pauses == PAUSES_MAX => {
                    return Err(NotRun::KeysMoving.into());
                }
                NextStep::RetryLater => {
                    sleep(PAUSE * 2_u32.pow(pauses)).await;
                    pauses += 1;
                }
            }
        }
    }

    /// Decides what to do after a node replied with an error, or failed to reply.
    fn next_step(
        &self,
        shard: Shard,
        node: &Arc<Node>,
        error: SendError,
        lost: &mut Option<RedisError>,
    ) -> NextStep {
        let error = match error {
            SendError::ErrorReply(error) => error,
            SendError::NotSent(reason) => {
                // A node that is busy still has its shards.
                let is_gone = reason != NotRun::TooManyCalls;
                let has_others =
                    is_gone && self.cluster().is_some_and(|all| all.distrust(shard, node));
                return if has_others {
                    NextStep::Redirect { asking: None }
                } else {
                    NextStep::Fail(reason.into())
                };
            }
            // An idle connection may have ended long ago, so the command is sent once more. Every
            // command may be sent twice.
            SendError::ConnectionLost(error) => {
                self.cluster().map(|cluster| cluster.distrust(shard, node));
                return match lost.replace(error) {
                    None => NextStep::Redirect { asking: None },
                    Some(first) => NextStep::Fail(CommandError::Failed(first)),
                };
            }
        };
        let kind = error.kind();
        let moved = node.redirected_by(&error);
        match (self.cluster(), kind, moved) {
            (Some(cluster), ErrorKind::Server(ServerErrorKind::Moved), Some(to)) => {
                cluster.moved(shard, to);
                NextStep::Redirect { asking: None }
            }
            // `ASK` counts for this command only. The shard stays with its node until its move is
            // complete.
            (Some(cluster), ErrorKind::Server(ServerErrorKind::Ask), Some(to)) => {
                NextStep::Redirect { asking: Some(cluster.at(to)) }
            }
            (Some(_), ErrorKind::Server(ServerErrorKind::TryAgain), _) => NextStep::RetryLater,
            _ => {
                if error.code().is_some_and(is_no_master) {
                    self.distrust(shard, node);
                }
                NextStep::Fail(CommandError::answered(error))
            }
        }
    }

    /// Notes that a server refused a write because it is no longer a master. After a failover,
    /// connections to the former master stay open. Without this note, the store would keep writing
    /// to it.
    pub(super) fn distrust(&self, shard: Shard, node: &Arc<Node>) {
        node.hang_up();
        if let Some(cluster) = self.cluster() {
            cluster.distrust(shard, node);
        }
    }

    /// Returns the node that has a shard, as far as is known.
    pub(super) fn node(&self, shard: Shard) -> Arc<Node> {
        match self {
            Self::One(node) => Arc::clone(node),
            Self::Cluster(cluster) => cluster.node(shard),
        }
    }

    /// Makes a connection for a subscription, and returns the node to which it leads. A cluster
    /// passes messages on to all of its nodes, so any node will do.
    pub(super) async fn subscribe(&self) -> Result<(PubSub, Arc<Node>), NotRun> {
        let node = self.node(Shard::first());
        let connection = node.subscribe().await;
        if connection.is_err() {
            self.cluster().map(|cluster| cluster.distrust(Shard::first(), &node));
        }
        Ok((connection?, node))
    }

    /// Closes all connections.
    pub(super) fn hang_up(&self) {
        match self {
            Self::One(node) => node.hang_up(),
            Self::Cluster(cluster) => cluster.hang_up(),
        }
    }

    pub(super) const fn is_cluster(&self) -> bool {
        matches!(self, Self::Cluster(_))
    }

    const fn cluster(&self) -> Option<&Cluster> {
        match self {
            Self::One(_) => None,
            Self::Cluster(cluster) => Some(cluster),
        }
    }
}
