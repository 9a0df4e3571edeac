//! Accepts connections, as many at a time as are allowed.

use std::future;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use ipnet::IpNet;
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;

use super::connection::{self, ServerContext};
use super::service::Service;
use super::settings::{Limits, Resources};
use super::shutdown::Shutdown;
use crate::budget::PeerLimit;
use crate::telemetry::{Limit, Metrics};

/// How many connections the kernel queues until they are accepted.
const BACKLOG: u32 = 1024;
/// How long nothing is accepted after an error of the kernel. In most cases all file descriptors
/// are in use, and the loop would spin if it accepted again at once.
const PAUSE_AFTER_ERROR: Duration = Duration::from_millis(100);

/// A bound address. Connections to it wait in the kernel until [`Listener::serve`] takes them.
#[derive(Debug)]
pub struct Listener {
    listener: TcpListener,
    limits: Limits,
}

/// The places of open connections.
#[derive(Debug)]
struct ConnectionPlaces {
    all: Arc<Semaphore>,
    peers: PeerLimit,
    trusted: Vec<IpNet>,
    metrics: Arc<Metrics>,
}

/// The place of one open connection. Dropping it frees the place.
#[derive(Debug)]
struct ConnectionPlace {
    places: Arc<ConnectionPlaces>,
    /// None if its peer has no limit.
    peer: Option<IpAddr>,
    _permit: OwnedSemaphorePermit,
}

impl Drop for ConnectionPlace {
    fn drop(&mut self) {
        self.places.metrics.connections.dec();
        if let Some(peer) = self.peer {
            self.places.peers.leave(peer);
        }
    }
}

impl ConnectionPlaces {
    fn new(limits: &Limits, metrics: &Arc<Metrics>) -> Self {
        let all = limits.connections_max.clamp(1, Semaphore::MAX_PERMITS);
        Self {
            all: Arc::new(Semaphore::new(all)),
            peers: PeerLimit::new(all, limits.per_peer_max),
            trusted: limits.trusted_proxies.clone(),
            metrics: Arc::clone(metrics),
        }
    }

    /// The place of an accepted connection. None if its peer has its share already.
    fn admit(
        self: &Arc<Self>,
        peer: IpAddr,
        permit: OwnedSemaphorePermit,
    ) -> Option<ConnectionPlace> {
        // A dual-stack listener sees an IPv4 peer as `::ffff:192.0.2.1`.
        let peer = peer.to_canonical();
        let is_limited =
            self.peers.is_set() && !self.trusted.iter().any(|network| network.contains(&peer));
        if is_limited && !self.peers.enter(peer) {
            self.metrics.limit_reached(Limit::PerPeer);
            tracing::debug!(%peer, "closed a connection whose peer already has its share");
            return None;
        }
        self.metrics.connections.inc();
        let peer = is_limited.then_some(peer);
        Some(ConnectionPlace { places: Arc::clone(self), peer, _permit: permit })
    }
}

impl Listener {
    /// Binds an address. Fails if it is in use, or is not an address of this machine.
    pub fn bind(address: SocketAddr, limits: Limits) -> io::Result<Self> {
        let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
        // Without this a restart fails for about a minute, while connections of the previous
        // process are in TIME-WAIT.
        socket.set_reuseaddr(true)?;
        socket.bind(address)?;
        Ok(Self { listener: socket.listen(BACKLOG)?, limits })
    }

    /// The bound address. If port 0 was asked for, it has the port that the kernel chose.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Serves until `shutdown` says stop, and then until every connection has ended or the time for
    /// that is over. Dropping the future drops all connections.
    pub async fn serve<S: Service>(self, service: S, shutdown: Shutdown, resources: Resources) {
        let places = Arc::new(ConnectionPlaces::new(&self.limits, &resources.metrics));
        let context = Arc::new(ServerContext::new(&self.limits, shutdown, &resources));
        let mut connections = JoinSet::new();
        let within = loop {
            tokio::select! {
                biased;
                within = context.shutdown().stopping() => break within,
                // Ended tasks are removed from the set. A panic in a task has been logged, and must
                // not end the listener.
                () = next_ended(&mut connections) => {}
                (stream, peer, place) = self.accept(&places) => {
                    let context = Arc::clone(&context);
                    let service = service.clone();
                    resources.workers.serve(&mut connections, stream, async move |stream| {
                        connection::serve(context, stream, peer, service).await;
                        drop(place);
                    });
                }
            }
        };
        // From now on the kernel refuses connections, so a load balancer tries the next instance.
        drop(self.listener);
        let all = async { while connections.join_next().await.is_some() {} };
        // Connections that are left after `within` are dropped with the set.
        let in_time = tokio::time::timeout(within, all).await.is_ok();
        if !in_time {
            tracing::info!(connections = connections.len(), "dropped connections at the deadline");
        }
    }

    /// The next connection, once there is a place for it. Cancel safe.
    async fn accept(
        &self,
        places: &Arc<ConnectionPlaces>,
    ) -> (TcpStream, SocketAddr, ConnectionPlace) {
        // The permit comes first: a connection that cannot be served yet stays in the kernel's
        // queue, where it costs this process nothing.
        let mut permit = free_place(places).await;
        let (stream, peer, place) = loop {
            match self.listener.accept().await {
                Ok((stream, peer)) => match places.admit(peer.ip(), permit) {
                    Some(place) => break (stream, peer, place),
                    None => permit = free_place(places).await,
                },
                Err(error) if concerns_one_connection(&error) => {}
                Err(error) => {
                    tracing::warn!(%error, "cannot accept connections");
                    tokio::time::sleep(PAUSE_AFTER_ERROR).await;
                }
            }
        };
        // Without this the end of an answer can wait for the peer's delayed acknowledgement of its
        // beginning (Nagle's algorithm). The connection works without it, so an error is ignored.
        let _ = stream.set_nodelay(true);
        (stream, peer, place)
    }
}

/// Waits for a free place. Counts that the limit was reached if it has to wait.
async fn free_place(places: &ConnectionPlaces) -> OwnedSemaphorePermit {
    if let Ok(permit) = Arc::clone(&places.all).try_acquire_owned() {
        return permit;
    }
    places.metrics.limit_reached(Limit::Connections);
    match Arc::clone(&places.all).acquire_owned().await {
        Ok(permit) => permit,
        // Only a closed semaphore fails, and nobody closes this one.
        Err(_) => future::pending().await,
    }
}

/// Waits until a connection has ended, and for ever if there is none. An empty `JoinSet` is ready
/// at once, so the loop would spin without this.
async fn next_ended(connections: &mut JoinSet<()>) {
    if connections.join_next().await.is_none() {
        future::pending::<()>().await;
    }
}

/// Whether the error concerns only one connection, which failed before it was accepted.
fn concerns_one_connection(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionAborted
            | io::ErrorKind::ConnectionReset
            | io::ErrorKind::ConnectionRefused
    )
}
