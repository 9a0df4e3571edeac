//! All servers of a store: one, the master that sentinels name, or the nodes of a cluster.

use std::sync::Arc;
use std::time::Duration;

use redis::aio::PubSub;
use redis::{ErrorKind, RedisError, ServerErrorKind, Value};
use tokio::time::sleep;

use super::call::Call;
use super::cluster::Cluster;
use super::dial::{Dialer, Target};
use super::failure::{KEYS_MOVE, MOVED_TOO_OFTEN, answered, is_no_master};
use super::keys::Shard;
use super::node::{Answer, Delivery, Lost, Node};
use super::{Mode, Settings};
use crate::store::{Error, SetupError};

/// How often a call goes to another node.
const HOPS_MAX: usize = 8;
/// How often a call waits for a cluster that moves its keys, and the first pause; each is twice the
/// one before.
const PAUSES_MAX: u32 = 3;
const PAUSE: Duration = Duration::from_millis(10);

/// The servers, and who of them has what.
#[derive(Debug)]
pub(super) struct Servers {
    dialer: Dialer,
    who: Who,
    timeout: Duration,
}

#[derive(Debug)]
enum Who {
    One(Arc<Node>),
    Cluster(Box<Cluster>),
}

/// What a server has told, and how many replicas have it.
pub(super) struct Acked {
    pub(super) value: Value,
    pub(super) acks: usize,
    /// An earlier try was lost, and might still be done.
    pub(super) was_lost: bool,
    /// Who it was.
    pub(super) node: Arc<Node>,
}

/// How a call goes on after what came of it.
enum Next {
    Ends(Result<Answer, Error>),
    /// It was not done here: it is made again, of the node that `asking` names or of whoever has
    /// the keys.
    Again {
        asking: Option<Arc<Node>>,
    },
    /// As before, when the cluster may have moved on.
    Later,
}

impl Servers {
    /// Reads the settings; connects to nobody.
    pub(super) fn new(settings: &Settings) -> Result<Self, SetupError> {
        let dialer = Dialer::new(settings)?;
        let who = match &settings.mode {
            Mode::Sentinel { master } => Who::one(Target::Master(master.clone())),
            Mode::Single => Who::one(Target::Address(dialer.first())),
            Mode::Cluster => Who::Cluster(Box::new(Cluster::of(dialer.first(), dialer.others()))),
        };
        Ok(Self { dialer, who, timeout: settings.timeout })
    }

    /// Has the server of a shard do something.
    pub(super) async fn call(&self, shard: Shard, call: &Call) -> Result<Value, Error> {
        let (answer, _) = self.ask(shard, call, 0).await?;
        answer.value.map_err(answered)
    }

    /// The same; if replicas must have it, on a connection of its own.
    pub(super) async fn call_acked(
        &self,
        shard: Shard,
        call: &Call,
        acks: usize,
    ) -> Result<Acked, Error> {
        let (answer, node) = self.ask(shard, call, acks).await?;
        let Answer { value, acks, was_lost } = answer;
        Ok(Acked { value: value.map_err(answered)?, acks, was_lost, node })
    }

    /// What came of a call, however often it was made. If it was lost once, only a later success
    /// says what has become of it: a refusal says nothing about what was sent before.
    async fn ask(
        &self,
        shard: Shard,
        call: &Call,
        acks: usize,
    ) -> Result<(Answer, Arc<Node>), Error> {
        let mut lost = None;
        let ended = self.follow(shard, call, acks, &mut lost).await;
        match (ended, lost) {
            (Ok((Answer { value: Err(_), .. }, _)) | Err(_), Some(lost)) => Err(failed(lost)),
            (Ok((answer, node)), Some(_)) => Ok((Answer { was_lost: true, ..answer }, node)),
            (ended, None) => ended,
        }
    }

    async fn follow(
        &self,
        shard: Shard,
        call: &Call,
        acks: usize,
        lost: &mut Option<RedisError>,
    ) -> Result<(Answer, Arc<Node>), Error> {
        let (mut asking, mut hops, mut pauses): (Option<Arc<Node>>, _, _) = (None, 0, 0);
        // the first failure is the cause; redirects that come after it follow from it
        let mut cause: Option<(Arc<Node>, &'static str)> = None;
        loop {
            let node = asking.take();
            let delivery = Delivery { asking: node.is_some(), acks };
            let node = node.unwrap_or_else(|| self.node(shard));
            let sent = node.send(&self.dialer, call, delivery, self.timeout).await;
            if let Err(Lost::Unsent(why)) = &sent {
                match &cause {
                    // another node has sent the call back to the one that failed
                    Some((first, why)) if Arc::ptr_eq(first, &node) => {
                        return Err(Error::Unavailable(why));
                    }
                    Some(_) => {}
                    None => cause = Some((Arc::clone(&node), why)),
                }
            }
            match self.next(shard, &node, sent, lost) {
                Next::Ends(ended) => return ended.map(|answer| (answer, node)),
                Next::Again { .. } if hops == HOPS_MAX => {
                    return Err(Error::Unavailable(cause.map_or(MOVED_TOO_OFTEN, |(_, why)| why)));
                }
                Next::Again { asking: node } => (hops, asking) = (hops + 1, node),
                Next::Later if pauses == PAUSES_MAX => return Err(Error::Unavailable(KEYS_MOVE)),
                Next::Later => {
                    sleep(PAUSE * 2_u32.pow(pauses)).await;
                    pauses += 1;
                }
            }
        }
    }

    fn next(
        &self,
        shard: Shard,
        node: &Arc<Node>,
        sent: Result<Answer, Lost>,
        lost: &mut Option<RedisError>,
    ) -> Next {
        let error = match sent {
            Ok(Answer { value: Err(error), .. }) => error,
            Ok(answer) => return Next::Ends(Ok(answer)),
            Err(Lost::Unsent(why)) => {
                let others = self.cluster().is_some_and(|cluster| cluster.distrust(shard, node));
                return if others {
                    Next::Again { asking: None }
                } else {
                    Next::Ends(Err(Error::Unavailable(why)))
                };
            }
            // an idle connection may have ended long ago; what has become of the call is known when
            // it comes again
            Err(Lost::Broken(error)) => {
                self.cluster().map(|cluster| cluster.distrust(shard, node));
                return match lost.replace(error) {
                    None => Next::Again { asking: None },
                    Some(again) => Next::Ends(Err(failed(again))),
                };
            }
        };
        let kind = error.kind();
        let moved = redirect(&self.dialer, &error, node);
        match (self.cluster(), kind, moved) {
            (Some(cluster), ErrorKind::Server(ServerErrorKind::Moved), Some(to)) => {
                cluster.moved(shard, to);
                Next::Again { asking: None }
            }
            (Some(cluster), ErrorKind::Server(ServerErrorKind::Ask), Some(to)) => {
                Next::Again { asking: Some(cluster.at(to)) }
            }
            (Some(_), ErrorKind::Server(ServerErrorKind::TryAgain), _) => Next::Later,
            _ => {
                if error.code().is_some_and(is_no_master) {
                    self.distrust(shard, node);
                }
                Next::Ends(Ok(Answer::refusal(error)))
            }
        }
    }

    /// A server has said inside a script that it is no master any more.
    pub(super) fn is_demoted(&self, shard: Shard, node: &Arc<Node>) {
        self.distrust(shard, node);
    }

    fn distrust(&self, shard: Shard, node: &Arc<Node>) {
        node.hang_up();
        if let Some(cluster) = self.cluster() {
            cluster.distrust(shard, node);
        }
    }

    /// Whoever has a shard, as far as is known.
    pub(super) fn node(&self, shard: Shard) -> Arc<Node> {
        match &self.who {
            Who::One(node) => Arc::clone(node),
            Who::Cluster(cluster) => cluster.node(shard),
        }
    }

    /// A connection that hears what is published.
    pub(super) async fn subscribe(&self) -> Result<(PubSub, Arc<Node>), &'static str> {
        let node = self.node(Shard::first());
        let heard = self.dialer.subscribe(node.target()).await;
        if heard.is_err() {
            self.cluster().map(|cluster| cluster.distrust(Shard::first(), &node));
        }
        Ok((heard?, node))
    }

    pub(super) fn hang_up(&self) {
        match &self.who {
            Who::One(node) => node.hang_up(),
            Who::Cluster(cluster) => cluster.hang_up(),
        }
    }

    pub(super) const fn is_cluster(&self) -> bool {
        matches!(self.who, Who::Cluster(_))
    }

    const fn cluster(&self) -> Option<&Cluster> {
        match &self.who {
            Who::One(_) => None,
            Who::Cluster(cluster) => Some(cluster),
        }
    }
}

impl Who {
    fn one(target: Target) -> Self {
        Self::One(Arc::new(Node::new(target)))
    }
}

fn failed(error: RedisError) -> Error {
    Error::Failed(Box::new(error))
}

/// Where the answer sends the call.
fn redirect(dialer: &Dialer, error: &RedisError, by: &Node) -> Option<redis::ConnectionAddr> {
    let (said, _) = error.redirect_node()?;
    match by.target() {
        Target::Address(address) => dialer.named(said, address),
        Target::Master(_) => None,
    }
}
