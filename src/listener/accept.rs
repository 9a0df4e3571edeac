//! Takes connections from the kernel, as many at a time as are allowed.

use std::future;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use ipnet::IpNet;
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;

use super::connection::{self, Shared};
use super::service::Service;
use super::{Limits, Resources, Shutdown};
use crate::budget::PeerLimit;
use crate::telemetry::{Limit, Metrics};

/// Connections that the kernel keeps for us until they are accepted.
const BACKLOG: u32 = 1024;
/// How long nothing is accepted after the kernel could not give us a connection, mostly because
/// all file descriptors are in use: the next try would fail at once, and the next one too.
const PAUSE_AFTER_ERROR: Duration = Duration::from_millis(100);

/// A bound address. Connections to it wait in the kernel until [`Listener::serve`] takes them.
#[derive(Debug)]
pub struct Listener {
    listener: TcpListener,
    limits: Limits,
}

/// The connections that may be open at a time.
#[derive(Debug)]
struct Places {
    all: Arc<Semaphore>,
    peers: PeerLimit,
    trusted: Vec<IpNet>,
    metrics: Arc<Metrics>,
}

/// A place among the connections that may be open at a time; given back when dropped.
#[derive(Debug)]
struct Place {
    places: Arc<Places>,
    peer: Option<IpAddr>,
    _permit: OwnedSemaphorePermit,
}

impl Drop for Place {
    fn drop(&mut self) {
        self.places.metrics.connections.dec();
        if let Some(peer) = self.peer {
            self.places.peers.leave(peer);
        }
    }
}

impl Places {
    fn new(limits: &Limits, metrics: &Arc<Metrics>) -> Self {
        let all = limits.connections_max.clamp(1, Semaphore::MAX_PERMITS);
        Self {
            all: Arc::new(Semaphore::new(all)),
            peers: PeerLimit::new(all, limits.per_peer_max),
            trusted: limits.trusted_proxies.clone(),
            metrics: Arc::clone(metrics),
        }
    }

    /// The place of an accepted connection; none if its peer has its share already.
    fn give(self: &Arc<Self>, peer: IpAddr, permit: OwnedSemaphorePermit) -> Option<Place> {
        let peer = peer.to_canonical();
        let is_limited =
            self.peers.is_set() && !self.trusted.iter().any(|network| network.contains(&peer));
        if is_limited && !self.peers.enter(peer) {
            self.metrics.limit_reached(Limit::PerPeer);
            tracing::debug!(%peer, "closed a connection: its peer has its share of them");
            return None;
        }
        self.metrics.connections.inc();
        let peer = is_limited.then_some(peer);
        Some(Place { places: Arc::clone(self), peer, _permit: permit })
    }
}

impl Listener {
    /// Binds an address. Fails if it is in use or not ours.
    pub fn bind(address: SocketAddr, limits: Limits) -> io::Result<Self> {
        let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
        // A restart must not wait for the connections of the process before it.
        socket.set_reuseaddr(true)?;
        socket.bind(address)?;
        Ok(Self { listener: socket.listen(BACKLOG)?, limits })
    }

    /// The address, with the port that the kernel chose if none was given.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Serves until it is told to stop and every connection has ended, or the time for that is
    /// over. To drop this future drops the connections.
    pub async fn serve<S: Service>(self, service: S, shutdown: Shutdown, resources: Resources) {
        let places = Arc::new(Places::new(&self.limits, &resources.metrics));
        let shared = Arc::new(Shared::new(&self.limits, shutdown, &resources));
        let mut connections = JoinSet::new();
        let within = loop {
            tokio::select! {
                biased;
                within = shared.shutdown().stopping() => break within,
                // A connection that has ended, even by a panic, is of no interest any more.
                () = next_ended(&mut connections) => {}
                (stream, peer, place) = self.accept(&places) => {
                    let served = connection::serve(Arc::clone(&shared), stream, peer, service.clone());
                    connections.spawn(async move {
                        served.await;
                        drop(place);
                    });
                }
            }
        };
        // From here on the kernel refuses connections.
        drop(self.listener);
        let all = async { while connections.join_next().await.is_some() {} };
        // `shutdown_timeout` is about real time; what is left is dropped with the set.
        let in_time = tokio::time::timeout(within, all).await.is_ok();
        if !in_time {
            tracing::info!(connections = connections.len(), "dropped connections at the deadline");
        }
    }

    /// The next connection, once there is a place for it. Dropping this loses none.
    async fn accept(&self, places: &Arc<Places>) -> (TcpStream, SocketAddr, Place) {
        let mut permit = place(places).await;
        let (stream, peer, place) = loop {
            match self.listener.accept().await {
                Ok((stream, peer)) => match places.give(peer.ip(), permit) {
                    Some(place) => break (stream, peer, place),
                    None => permit = self::place(places).await,
                },
                Err(error) if is_about_the_peer(&error) => {}
                Err(error) => {
                    tracing::warn!(%error, "cannot accept connections");
                    tokio::time::sleep(PAUSE_AFTER_ERROR).await;
                }
            }
        };
        // Without it an answer can wait for the peer's delayed acknowledgement. It is a wish.
        let _ = stream.set_nodelay(true);
        (stream, peer, place)
    }
}

/// Waits for a place; says so if there is none at once.
async fn place(places: &Places) -> OwnedSemaphorePermit {
    if let Ok(permit) = Arc::clone(&places.all).try_acquire_owned() {
        return permit;
    }
    places.metrics.limit_reached(Limit::Connections);
    match Arc::clone(&places.all).acquire_owned().await {
        Ok(permit) => permit,
        // Nobody closes this semaphore.
        Err(_) => future::pending().await,
    }
}

/// Waits for the end of a connection, for ever if there is none.
async fn next_ended(connections: &mut JoinSet<()>) {
    if connections.join_next().await.is_none() {
        future::pending::<()>().await;
    }
}

/// Whether the one connection failed before we took it, and the next may well not.
fn is_about_the_peer(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionAborted
            | io::ErrorKind::ConnectionReset
            | io::ErrorKind::ConnectionRefused
    )
}
