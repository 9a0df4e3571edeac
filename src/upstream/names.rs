//! How an upstream's name becomes addresses.

use std::fmt;
use std::io;
use std::net::SocketAddr;

use async_trait::async_trait;
use tokio::net::lookup_host;

/// Says which addresses a name has now. It is asked for every new connection.
#[async_trait]
pub trait Names: fmt::Debug + Send + Sync {
    /// The addresses, in the order in which they are to be tried.
    async fn addresses(&self, host: &str, port: u16) -> io::Result<Vec<SocketAddr>>;
}

/// The machine's own resolver.
#[derive(Debug, Clone, Copy)]
pub struct OfThisMachine;

#[async_trait]
impl Names for OfThisMachine {
    async fn addresses(&self, host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
        Ok(lookup_host((host, port)).await?.collect())
    }
}
