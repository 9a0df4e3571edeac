//! The threads that serve connections, each with a runtime of its own.
//!
//! A connection stays on the thread to which it was dealt, with everything that its requests begin:
//! the attempts, their heartbeats, the connections to upstreams. So a request wakes no other
//! thread, but for the store and for copies that wait elsewhere. On one runtime for all threads,
//! tasks would move between them, and each wake-up would look for a thread that is free.

use std::convert::Infallible;
use std::io;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::thread;

use tokio::net::TcpStream;
use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;
use tokio::task::JoinSet;

/// Where connections are served. Clones share the threads, which end with the last of the clones.
#[derive(Debug, Clone, Default)]
pub struct Workers(Arc<[Worker]>);

/// One thread and its runtime.
#[derive(Debug)]
struct Worker {
    runtime: Handle,
    /// Each connection of the thread holds a clone, which counts it.
    connections: Arc<()>,
    /// The thread ends when this is dropped.
    _running: oneshot::Sender<Infallible>,
}

impl Workers {
    /// Connections are served on the runtime of whoever serves the listener.
    pub fn of_caller() -> Self {
        Self::default()
    }

    /// Starts threads for connections.
    ///
    /// # Errors
    ///
    /// The system gives no further thread, or no file descriptors for its runtime.
    pub fn start(threads: NonZeroUsize) -> io::Result<Self> {
        (0..threads.get()).map(Worker::start).collect::<io::Result<_>>().map(Self)
    }

    /// Serves an accepted connection on the thread that has the fewest.
    pub(super) fn serve<F>(
        &self,
        connections: &mut JoinSet<()>,
        stream: TcpStream,
        serve: impl FnOnce(TcpStream) -> F + Send + 'static,
    ) where
        F: Future<Output = ()> + Send + 'static,
    {
        let fewest = self.0.iter().min_by_key(|worker| Arc::strong_count(&worker.connections));
        let Some(worker) = fewest else {
            connections.spawn(serve(stream));
            return;
        };
        let counted = Arc::clone(&worker.connections);
        // The socket is watched by the runtime that accepted it, and has to be watched by the one
        // that serves it.
        let stream = stream.into_std();
        let served = async move {
            match stream.and_then(TcpStream::from_std) {
                Ok(stream) => serve(stream).await,
                Err(error) => tracing::warn!(%error, "cannot serve a connection"),
            }
            drop(counted);
        };
        connections.spawn_on(served, &worker.runtime);
    }
}

impl Worker {
    fn start(number: usize) -> io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let handle = runtime.handle().clone();
        let (running, ended) = oneshot::channel();
        let run = move || {
            // Nothing is ever sent: it ends when the sender is dropped.
            let _dropped = runtime.block_on(ended);
            // The name of an upstream may still be looked up, and nobody waits for it.
            runtime.shutdown_background();
        };
        thread::Builder::new().name(format!("connections-{number}")).spawn(run)?;
        Ok(Self { runtime: handle, connections: Arc::new(()), _running: running })
    }
}
