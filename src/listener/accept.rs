//! Takes connections from the kernel, as many at a time as are allowed.

use std::future;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;

use super::connection::{self, Shared};
use super::service::Service;
use super::{Limits, Shutdown};
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

/// A place among the connections that may be open at a time; given back when dropped.
#[derive(Debug)]
struct Place {
    metrics: Arc<Metrics>,
    _permit: OwnedSemaphorePermit,
}

impl Drop for Place {
    fn drop(&mut self) {
        self.metrics.connections.dec();
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
    pub async fn serve<S: Service>(self, service: S, shutdown: Shutdown, metrics: Arc<Metrics>) {
        let places = self.limits.connections_max.clamp(1, Semaphore::MAX_PERMITS);
        let places = Arc::new(Semaphore::new(places));
        let shared = Arc::new(Shared::new(&self.limits, shutdown, metrics));
        let mut connections = JoinSet::new();
        let within = loop {
            tokio::select! {
                biased;
                within = shared.shutdown().stopping() => break within,
                // A connection that has ended, even by a panic, is of no interest any more.
                () = next_ended(&mut connections) => {}
                (stream, peer, place) = self.accept(&places, shared.metrics()) => {
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
    async fn accept(
        &self,
        places: &Arc<Semaphore>,
        metrics: &Arc<Metrics>,
    ) -> (TcpStream, SocketAddr, Place) {
        let permit = place(places, metrics).await;
        let (stream, peer) = loop {
            match self.listener.accept().await {
                Ok(accepted) => break accepted,
                Err(error) if is_about_the_peer(&error) => {}
                Err(error) => {
                    tracing::warn!(%error, "cannot accept connections");
                    tokio::time::sleep(PAUSE_AFTER_ERROR).await;
                }
            }
        };
        // Without it an answer can wait for the peer's delayed acknowledgement. It is a wish.
        let _ = stream.set_nodelay(true);
        metrics.connections.inc();
        (stream, peer, Place { metrics: Arc::clone(metrics), _permit: permit })
    }
}

/// Waits for a place; says so if there is none at once.
async fn place(places: &Arc<Semaphore>, metrics: &Metrics) -> OwnedSemaphorePermit {
    if let Ok(permit) = Arc::clone(places).try_acquire_owned() {
        return permit;
    }
    metrics.limit_reached(Limit::Connections);
    match Arc::clone(places).acquire_owned().await {
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
