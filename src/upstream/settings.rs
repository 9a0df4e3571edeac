//! What the operator configures for an upstream, and what all upstreams share.

use std::sync::Arc;
use std::time::Duration;

use http::uri::Authority;

use super::resolver::Resolver;
use super::trust::TrustStore;
use crate::clock::Clock;

/// One upstream, and how connections to it are made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// The address.
    pub target: Target,
    /// The longest time for resolving the name, connecting, and the TLS handshake together.
    pub connect_timeout: Duration,
    /// How long an idle connection is kept for the next request. Zero means that it is not kept.
    pub keepalive: Duration,
    /// The greatest age of a connection that is used again. It bounds how long requests go to an
    /// old address after the upstream's name has moved.
    pub keepalive_max: Duration,
    /// True if the upstream gets the sender's `Host`. False if it gets the authority of its own
    /// address.
    pub preserve_host: bool,
}

/// What connections to all upstreams need.
#[derive(Debug, Clone)]
pub struct DialSettings {
    /// The certificates that upstreams are checked against.
    pub trust: TrustStore,
    /// The clock that tells the age of a connection.
    pub clock: Clock,
    /// The resolver of names.
    pub resolver: Arc<dyn Resolver>,
    /// The limits of the head of an answer.
    pub answer_head: AnswerHeadLimits,
}

/// The limits of the head of an answer. An answer with a larger head counts as no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AnswerHeadLimits {
    /// Bytes of the status line and all header lines together.
    pub bytes_max: usize,
    /// Header lines.
    pub lines_max: usize,
}

/// The address of an upstream. It comes from the configuration only: no request can change it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// `http` or `https`.
    pub scheme: Scheme,
    /// The host, with a port unless it is the scheme's default.
    pub authority: Authority,
    /// The path that replaces the matched path or prefix. None: the request's path is kept.
    pub path: Option<String>,
}

/// The scheme of an upstream's address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scheme {
    /// HTTP without TLS.
    Http,
    /// HTTP over TLS.
    Https,
}

impl Scheme {
    /// The port of an authority that names none.
    pub const fn default_port(self) -> u16 {
        match self {
            Self::Http => 80,
            Self::Https => 443,
        }
    }
}
