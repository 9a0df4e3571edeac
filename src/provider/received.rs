//! A request as its sender sent it.

use std::borrow::Cow;

use http::{HeaderMap, Method};

use crate::operation::Timestamp;

/// A request, exactly as it was received: what handshakes are recognised by, and what signatures
/// are checked against. Nothing of it is parsed and written again before a signature is checked:
/// the sender signed these bytes, and another spelling of the same JSON would not match.
#[derive(Debug, Clone, Copy)]
pub struct ReceivedRequest<'a> {
    /// The method.
    pub method: &'a Method,
    /// Scheme, host and port as senders see them, without a path. It comes from the configuration
    /// and never from the request, whose sender could write any host there. Without it, a scheme
    /// that covers the URL never matches.
    pub public_url: Option<&'a str>,
    /// Path and query as received.
    pub target: &'a str,
    /// All headers.
    pub headers: &'a HeaderMap,
    /// The whole body as received.
    pub body: &'a [u8],
    /// The time of day.
    pub now: Timestamp,
}

impl<'a> ReceivedRequest<'a> {
    /// The public URL, followed by path and query as received.
    pub(super) fn url(&self) -> Cow<'a, str> {
        match self.public_url {
            Some(public) => Cow::Owned(format!("{public}{}", self.target)),
            None => Cow::Borrowed(self.target),
        }
    }

    /// The query, without its `?`. Empty if there is none.
    pub(super) fn query(&self) -> &'a str {
        self.target.split_once('?').map_or("", |(_, query)| query)
    }
}
