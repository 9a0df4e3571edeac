//! Shares out file descriptors, so that connections cannot take those that the store needs.
//!
//! An embedded database that cannot open a file in the middle of its work is broken until a
//! restart, and any stranger can open connections. So the descriptors that the kernel allows are
//! shared out before the first connection is accepted.

use std::num::NonZeroUsize;

use rustix::process::{Resource, getrlimit, setrlimit};

use crate::config::Config;

/// Descriptors for the files of the store and for whatever else the process opens.
const KEPT_BACK: usize = 256;
/// Descriptors of each thread that serves connections: three of its runtime, one of its signals, and
/// one of its connection to a shared store.
const OF_A_THREAD: usize = 5;
/// The most connections to the control plane at a time.
const ADMIN_CONNECTIONS_MAX: usize = 64;
/// The least number of connections of each kind. With fewer the process would be of no use.
const CONNECTIONS_MIN: usize = 8;

/// How many connections of each kind there may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ConnectionLimits {
    /// Connections from senders.
    pub(super) public: usize,
    /// Connections to the control plane.
    pub(super) private: usize,
    /// Attempts in flight on one route. Each has a connection to an upstream.
    pub(super) attempts: usize,
}

impl ConnectionLimits {
    /// Raises the number of files that the process may open, and shares it out: as many connections
    /// as are configured if it is enough, else fewer.
    pub(super) fn of(config: &Config, threads: NonZeroUsize) -> Self {
        let allowed = raise();
        let configured = config.server.listener.connections_max;
        let in_flight: Vec<usize> =
            config.routes.iter().map(|route| route.policy.in_flight_max).collect();
        let kept_back = KEPT_BACK + OF_A_THREAD * threads.get();
        let limits = share(allowed, kept_back, configured, &in_flight);
        if limits.public < configured {
            tracing::warn!(
                files_max = allowed,
                connections_max = limits.public,
                in_flight_max = limits.attempts,
                "the process may open too few files for what is configured; raise its limit (`ulimit -n`)"
            );
        }
        limits
    }
}

fn share(allowed: usize, kept_back: usize, public: usize, in_flight: &[usize]) -> ConnectionLimits {
    let private = ADMIN_CONNECTIONS_MAX.min(allowed / 8).max(CONNECTIONS_MIN);
    let left = allowed.saturating_sub(kept_back.min(allowed / 2) + private);
    let attempts: usize = in_flight.iter().fold(0, |sum, max| sum.saturating_add(*max));
    if left >= public.saturating_add(attempts) {
        let attempts = in_flight.iter().copied().max().unwrap_or_default();
        return ConnectionLimits { public, private, attempts };
    }
    // Half of what is left goes to senders: a proxy that could not accept would be of no more use
    // than one that could not forward.
    let attempts = attempts.min(left / 2);
    ConnectionLimits {
        public: (left - attempts).max(CONNECTIONS_MIN).min(public),
        private,
        attempts: (attempts / in_flight.len().max(1)).max(CONNECTIONS_MIN),
    }
}

/// Raises the soft limit of open files to the hard limit, and gives the new soft limit. Systems
/// keep the soft limit low for programs that use `select`, which Onceward does not.
fn raise() -> usize {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    // If the limit cannot be raised it stays as it is, and is read below.
    let _raised = setrlimit(Resource::Nofile, limit);
    let limit = getrlimit(Resource::Nofile).current;
    limit.map_or(usize::MAX, |limit| usize::try_from(limit).unwrap_or(usize::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn with_enough_descriptors_there_are_as_many_connections_as_configured() {
        let ConnectionLimits { public, private, attempts } =
            share(20_000, KEPT_BACK, 10_000, &[1024, 512]);
        assert_eq!((public, private, attempts), (10_000, ADMIN_CONNECTIONS_MAX, 1024));
    }

    #[test]
    fn connections_never_take_what_the_store_needs() {
        for threads in [0, 2, 50] {
            let kept_back = KEPT_BACK + OF_A_THREAD * threads;
            for allowed in [1024, 4096, 11_000] {
                let ConnectionLimits { public, private, attempts } =
                    share(allowed, kept_back, 10_000, &[1024; 3]);
                assert!(public + private + 3 * attempts + kept_back <= allowed, "{allowed}");
            }
        }
        let ConnectionLimits { public, private, attempts } =
            share(600, KEPT_BACK, 10_000, &[1024; 3]);
        assert!(public + private + 3 * attempts + KEPT_BACK <= 600);
    }

    #[test]
    fn with_next_to_nothing_a_few_connections_are_left() {
        let ConnectionLimits { public, private, attempts } = share(64, KEPT_BACK, 10_000, &[1024]);
        assert!(
            public >= CONNECTIONS_MIN && private >= CONNECTIONS_MIN && attempts >= CONNECTIONS_MIN
        );
        assert!(public + private + attempts <= 40);
    }
}
