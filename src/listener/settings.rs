//! The limits of a listener, and what it shares with the rest of the process.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use ipnet::IpNet;

use super::workers::Workers;
use crate::budget::{Budget, Share};
use crate::telemetry::Metrics;

/// How many bytes a peer may still write after the last answer. These bytes are read and discarded,
/// so that the peer can read the answer.
pub(super) const LINGER_BYTES_MAX: usize = 1024 * 1024;

/// What one listener allows its peers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// The most open connections. Further ones wait in the kernel's queue.
    pub connections_max: usize,
    /// The share of the connections that one peer may have.
    pub per_peer_max: Share,
    /// Peers that forward for many senders, such as a load balancer. `per_peer_max` does not apply
    /// to them.
    pub trusted_proxies: Vec<IpNet>,
    /// The most bytes of a request's head.
    pub header_bytes_max: usize,
    /// The most header lines of a request.
    pub header_lines_max: usize,
    /// The longest time for a head. The time of the first head begins when the connection is
    /// accepted, so it includes protocol detection. The time of a later head begins with its first
    /// byte.
    pub header_timeout: Duration,
    /// How long a connection may be idle between two requests.
    pub idle_timeout: Duration,
    /// How long a peer may take no byte of an answer.
    pub write_timeout: Duration,
}

/// What a listener shares with the rest of the process.
#[derive(Debug, Clone)]
pub struct Resources {
    /// The memory for requests and answers.
    pub memory: Budget,
    /// The metrics.
    pub metrics: Arc<Metrics>,
    /// The threads that serve connections.
    pub workers: Workers,
}

/// The address of the peer that sent a request. It is an extension of the request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Peer(pub SocketAddr);
