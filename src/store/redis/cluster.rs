//! Remembers which node of a cluster has which shard.
//!
//! The nodes themselves tell which node has a shard. If a node gets a command for a shard of
//! another node, it replies with the address of that other node (`MOVED`, `ASK`).

use std::sync::Arc;

use parking_lot::Mutex;
use redis::ConnectionAddr;

use super::dial::{Dialer, Target};
use super::keys::{SHARDS, Shard};
use super::node::Node;

/// The most nodes that are remembered. A node that keeps naming new addresses must not fill the
/// memory.
const NODES_MAX: usize = 1024;

/// The nodes of a cluster.
#[derive(Debug)]
pub(super) struct Cluster(Mutex<Nodes>);

#[derive(Debug)]
struct Nodes {
    dialer: Arc<Dialer>,
    /// The first node of the settings.
    first: Arc<Node>,
    /// All known nodes.
    all: Vec<(ConnectionAddr, Arc<Node>)>,
    /// The node that has a shard, by the shard's number.
    of_shards: [Option<Arc<Node>>; SHARDS],
    /// The index in `all` of the node that is asked next about a shard whose node is not known.
    next: usize,
}

impl Cluster {
    /// Makes a cluster of the servers in the settings.
    pub(super) fn new(dialer: Arc<Dialer>) -> Self {
        let first = node(&dialer, dialer.first());
        let mut all = vec![(dialer.first(), Arc::clone(&first))];
        all.extend(dialer.others().map(|other| (other.clone(), node(&dialer, other))));
        let of_shards = [const { None }; SHARDS];
        Self(Mutex::new(Nodes { dialer, first, all, of_shards, next: 0 }))
    }

    /// Returns the node that has a shard, as far as is known. Otherwise returns a node that may
    /// name the right one.
    pub(super) fn node(&self, shard: Shard) -> Arc<Node> {
        let mut nodes = self.0.lock();
        if let Some(Some(node)) = nodes.of_shards.get(shard.number()) {
            return Arc::clone(node);
        }
        let next = nodes.next % nodes.all.len().max(1);
        let any = nodes.all.get(next).map_or(&nodes.first, |(_, node)| node);
        let any = Arc::clone(any);
        // This node is taken for the right one until it replies otherwise. So the calls of one
        // shard do not go to several nodes.
        if let Some(of_shard) = nodes.of_shards.get_mut(shard.number()) {
            *of_shard = Some(Arc::clone(&any));
        }
        any
    }

    /// Returns the node at an address.
    pub(super) fn at(&self, address: ConnectionAddr) -> Arc<Node> {
        let mut nodes = self.0.lock();
        if let Some((_, known)) = nodes.all.iter().find(|(known, _)| *known == address) {
            return Arc::clone(known);
        }
        let new = node(&nodes.dialer, address.clone());
        if nodes.all.len() < NODES_MAX {
            nodes.all.push((address, Arc::clone(&new)));
        }
        new
    }

    /// Notes that a shard is at this address.
    pub(super) fn moved(&self, shard: Shard, to: ConnectionAddr) {
        let node = self.at(to);
        if let Some(of_shard) = self.0.lock().of_shards.get_mut(shard.number()) {
            *of_shard = Some(node);
        }
    }

    /// Notes that a node failed, so that other nodes are asked where its shards are. Returns false
    /// if there are no other nodes.
    pub(super) fn distrust(&self, shard: Shard, node: &Arc<Node>) -> bool {
        let mut nodes = self.0.lock();
        for of_shard in &mut nodes.of_shards {
            if of_shard.as_ref().is_some_and(|known| Arc::ptr_eq(known, node)) {
                *of_shard = None;
            }
        }
        // The shard may meanwhile be assigned to another node, and that node may have sent the
        // command to the failed one.
        if let Some(of_shard) = nodes.of_shards.get_mut(shard.number()) {
            *of_shard = None;
        }
        nodes.next = nodes.next.wrapping_add(1);
        nodes.all.len() > 1
    }

    /// Closes all connections.
    pub(super) fn hang_up(&self) {
        self.0.lock().all.iter().for_each(|(_, node)| node.hang_up());
    }
}

fn node(dialer: &Arc<Dialer>, address: ConnectionAddr) -> Arc<Node> {
    Arc::new(Node::new(Arc::clone(dialer), Target::Address(address)))
}
