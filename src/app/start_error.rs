//! Why an app does not start.

use std::io;
use std::net::SocketAddr;

use crate::provider::signature::{CertificatesError, SecretError};
use crate::store;
use crate::store::embedded;

/// Why [`App::start`](super::App::start) fails.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// An address cannot be listened on.
    #[error("cannot listen on `{address}` (`{key}`)")]
    Listen {
        /// The setting that has the address.
        key: &'static str,
        /// The address.
        address: SocketAddr,
        /// The cause.
        source: io::Error,
    },
    /// The threads that serve connections cannot be started.
    #[error("the threads that serve connections cannot be started")]
    Threads(#[source] io::Error),
    /// The embedded store cannot be opened.
    #[error("the store cannot be opened")]
    Store(#[source] embedded::OpenError),
    /// A secret does not have the form of those that its sender gives out.
    #[error("a route's signatures cannot be checked")]
    Secret(#[source] SecretError),
    /// Senders' certificates cannot be fetched.
    #[error("senders' certificates cannot be fetched")]
    Certificates(#[source] CertificatesError),
    /// The connection to the store's server cannot be set up.
    #[error("the store cannot be used")]
    Server(#[source] store::SetupError),
}
