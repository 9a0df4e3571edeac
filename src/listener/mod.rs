//! Accepts connections and speaks HTTP/1.1 and HTTP/2 on them, within limits.
//!
//! One task serves one connection, and a watch in the same task ends it when a time limit has
//! passed. hyper's own timers are not used: they do not cover a connection that sends nothing,
//! they count the time between two requests as part of a head, and they do not see a reader that
//! stalls.

mod accept;
mod answer;
mod connection;
mod heads;
mod length;
mod refusal;
mod service;
mod shutdown;
mod watch;
mod wire;

#[cfg(test)]
mod tests;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use ipnet::IpNet;

use crate::budget::{Budget, Share};
use crate::telemetry::Metrics;

pub use accept::Listener;
pub use heads::{HeadMemory, fields_bytes};
pub use service::Service;
pub use shutdown::Shutdown;

/// What one listener allows its peers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// Open connections at a time; further ones wait in the kernel's queue.
    pub connections_max: usize,
    /// The share of them that one peer may have.
    pub per_peer_max: Share,
    /// Peers whose connections are those of many senders: they may have any share.
    pub trusted_proxies: Vec<IpNet>,
    /// Size of a request's head.
    pub header_bytes_max: usize,
    /// Lines of a request's head.
    pub header_lines_max: usize,
    /// From accept to the end of the first head, protocol detection included; and from the first
    /// byte of a later head to its end.
    pub header_timeout: Duration,
    /// How long a kept-alive connection may be idle.
    pub idle_timeout: Duration,
    /// How long a reader may take no byte of an answer.
    pub write_timeout: Duration,
}

/// What a listener shares with the rest of the process.
#[derive(Debug, Clone)]
pub struct Resources {
    /// The memory for requests and answers.
    pub memory: Budget,
    /// What is counted.
    pub metrics: Arc<Metrics>,
}

/// Who sent a request: found in its extensions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Peer(pub SocketAddr);
