//! Which node of a cluster has which shard: learnt from the nodes, which send a call on that comes
//! to the wrong one.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use redis::ConnectionAddr;

use super::dial::Target;
use super::keys::{SHARDS, Shard};
use super::node::Node;

/// Nodes that are remembered at most.
const NODES_MAX: usize = 1024;

/// The nodes of a cluster.
#[derive(Debug)]
pub(super) struct Cluster(Mutex<Nodes>);

#[derive(Debug)]
struct Nodes {
    /// Who is asked if nobody else was heard of.
    first: Arc<Node>,
    /// Those that were heard of.
    all: Vec<(ConnectionAddr, Arc<Node>)>,
    /// Who has a shard.
    holders: [Option<Arc<Node>>; SHARDS],
    /// Who is asked next about a shard that nobody is known to have.
    next: usize,
}

impl Cluster {
    pub(super) fn of(first: ConnectionAddr, others: impl Iterator<Item = ConnectionAddr>) -> Self {
        let mut nodes = Nodes {
            first: node(first.clone()),
            all: Vec::new(),
            holders: [const { None }; SHARDS],
            next: 0,
        };
        nodes.all.push((first, Arc::clone(&nodes.first)));
        nodes.all.extend(others.map(|other| (other.clone(), node(other))));
        Self(Mutex::new(nodes))
    }

    /// Whoever has a shard, as far as is known; else somebody who may know.
    pub(super) fn node(&self, shard: Shard) -> Arc<Node> {
        let mut nodes = self.lock();
        if let Some(Some(node)) = nodes.holders.get(shard.number()) {
            return Arc::clone(node);
        }
        let next = nodes.next % nodes.all.len().max(1);
        let somebody = nodes.all.get(next).map_or(&nodes.first, |(_, node)| node);
        let somebody = Arc::clone(somebody);
        if let Some(holder) = nodes.holders.get_mut(shard.number()) {
            *holder = Some(Arc::clone(&somebody));
        }
        somebody
    }

    /// The node at an address.
    pub(super) fn at(&self, address: ConnectionAddr) -> Arc<Node> {
        let mut nodes = self.lock();
        if let Some((_, known)) = nodes.all.iter().find(|(known, _)| *known == address) {
            return Arc::clone(known);
        }
        let new = node(address.clone());
        if nodes.all.len() < NODES_MAX {
            nodes.all.push((address, Arc::clone(&new)));
        }
        new
    }

    /// A shard is said to be at this address.
    pub(super) fn moved(&self, shard: Shard, to: ConnectionAddr) {
        let node = self.at(to);
        if let Some(holder) = self.lock().holders.get_mut(shard.number()) {
            *holder = Some(node);
        }
    }

    /// A node is not what it was: others are asked who has its shards. Says whether there are any.
    pub(super) fn distrust(&self, shard: Shard, node: &Arc<Node>) -> bool {
        let mut nodes = self.lock();
        for holder in &mut nodes.holders {
            if holder.as_ref().is_some_and(|holder| Arc::ptr_eq(holder, node)) {
                *holder = None;
            }
        }
        if let Some(holder) = nodes.holders.get_mut(shard.number()) {
            *holder = None;
        }
        nodes.next = nodes.next.wrapping_add(1);
        nodes.all.len() > 1
    }

    pub(super) fn hang_up(&self) {
        self.lock().all.iter().for_each(|(_, node)| node.hang_up());
    }

    /// A panic cannot have left it half changed.
    fn lock(&self) -> MutexGuard<'_, Nodes> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn node(address: ConnectionAddr) -> Arc<Node> {
    Arc::new(Node::new(Target::Address(address)))
}
