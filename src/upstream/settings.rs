//! What the operator says of an upstream.

use std::time::Duration;

use http::StatusCode;
use http::uri::Authority;

/// One receiver, and how it is reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// Where it is.
    pub target: Target,
    /// The longest it may take to resolve its name, connect, and shake hands.
    pub connect_timeout: Duration,
    /// How long an idle connection is kept for the next request; zero: not at all.
    pub keepalive: Duration,
    /// The greatest age of a connection that is used again: an upstream's name may move.
    pub keepalive_max: Duration,
    /// Whether the upstream sees the sender's `Host`, or its own name.
    pub preserve_host: bool,
}

/// How long the head of an answer may be. What is longer is no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AnswerHead {
    /// In all.
    pub bytes_max: usize,
    /// Header lines.
    pub lines_max: usize,
}

/// The address of an upstream, from configuration only: no request can change it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// `http` or `https`.
    pub scheme: Scheme,
    /// Host, and port if it is not the scheme's own.
    pub authority: Authority,
    /// What replaces the matched path or prefix; none: the request's path is kept.
    pub path: Option<String>,
}

/// How an upstream is spoken to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scheme {
    /// In the clear.
    Http,
    /// Over TLS.
    Https,
}

impl Scheme {
    /// The port where the authority names none.
    pub const fn default_port(self) -> u16 {
        match self {
            Self::Http => 80,
            Self::Https => 443,
        }
    }
}

/// Which statuses of a complete answer mean what. Any other one is a failure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutcomeRule {
    /// The upstream did it.
    pub succeeded: Vec<StatusRange>,
    /// Nobody knows. Looked at first.
    pub uncertain: Vec<StatusRange>,
}

/// `200`, or `2xx`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StatusRange {
    /// The first status.
    pub first: u16,
    /// The last status.
    pub last: u16,
}

impl StatusRange {
    /// Whether the status is in the range.
    pub fn contains(self, status: StatusCode) -> bool {
        (self.first..=self.last).contains(&status.as_u16())
    }
}
