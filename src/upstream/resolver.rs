//! Resolves an upstream's name into addresses.

use std::fmt;
use std::io;
use std::net::SocketAddr;

use async_trait::async_trait;
use tokio::net::lookup_host;

/// Resolves names. Every new connection resolves the name again, so a name that moves is followed.
#[async_trait]
pub trait Resolver: fmt::Debug + Send + Sync {
    /// The addresses, in the order in which they are to be tried.
    async fn addresses(&self, host: &str, port: u16) -> io::Result<Vec<SocketAddr>>;
}

/// The operating system's resolver.
#[derive(Debug, Clone, Copy)]
pub struct SystemResolver;

#[async_trait]
impl Resolver for SystemResolver {
    async fn addresses(&self, host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
        Ok(lookup_host((host, port)).await?.collect())
    }
}
