//! What a configuration means once it has been checked: values of these types are never invalid.

use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::time::Duration;

use http::Uri;
use ipnet::IpNet;

use crate::admin;
use crate::listener;
use crate::proxy;
use crate::store;

/// A configuration that can be run.
#[derive(Debug, Clone)]
pub struct Config {
    /// The data plane as a whole.
    pub server: Server,
    /// The control plane.
    pub admin: admin::Settings,
    /// Where operations live.
    pub store: store::Settings,
    /// At least one, and no two of them for the same host and path.
    pub routes: Vec<proxy::RouteSettings>,
}

/// What all routes share.
#[derive(Debug, Clone)]
pub struct Server {
    /// Where senders connect.
    pub listen: SocketAddr,
    /// How senders see the proxy, if it says so.
    pub public_url: Option<Uri>,
    /// Whose `X-Forwarded-*` is believed.
    pub trusted_proxies: Vec<IpNet>,
    /// How many threads serve connections; none if it is the number of processors.
    pub threads: Option<NonZeroUsize>,
    /// How long requests are still taken after the signal to stop.
    pub drain_delay: Duration,
    /// How long attempts in flight may take after that.
    pub shutdown_timeout: Duration,
    /// What the listener allows its peers.
    pub listener: listener::Limits,
    /// What all requests together may use.
    pub limits: proxy::Limits,
}
