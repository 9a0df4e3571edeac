//! File descriptors: connections must not take those that the store needs.
//!
//! A database that cannot open a file in the middle of its work is broken until a restart, and any
//! stranger can open connections. So what the kernel allows is shared out before the first one.

use rustix::process::{Resource, getrlimit, setrlimit};

use crate::config::Config;

/// Files of the store, and whatever else the process opens.
const KEPT_BACK: usize = 256;
/// Connections to the control plane at a time.
const ADMIN_CONNECTIONS_MAX: usize = 64;
/// Below this it is no use to share anything out.
const SHARE_MIN: usize = 8;

/// How many connections each side may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Shares {
    /// From senders.
    pub(super) public: usize,
    /// To the control plane.
    pub(super) private: usize,
    /// To upstreams, for each route: attempts at a time.
    pub(super) attempts: usize,
}

impl Shares {
    /// Raises what the process may open as far as it is allowed to, and shares that out: what is
    /// configured if there is enough, else less of it.
    pub(super) fn of(config: &Config) -> Self {
        let allowed = raise();
        let asked = config.server.listener.connections_max;
        let in_flight: Vec<usize> =
            config.routes.iter().map(|route| route.policy.in_flight_max).collect();
        let shares = share(allowed, asked, &in_flight);
        if shares.public < asked {
            tracing::warn!(
                files_max = allowed,
                connections_max = shares.public,
                in_flight_max = shares.attempts,
                "the process may open too few files for what is configured; raise its limit (`ulimit -n`)"
            );
        }
        shares
    }
}

fn share(allowed: usize, asked: usize, in_flight: &[usize]) -> Shares {
    let private = ADMIN_CONNECTIONS_MAX.min(allowed / 8).max(SHARE_MIN);
    let left = allowed.saturating_sub(KEPT_BACK.min(allowed / 2) + private);
    let attempts: usize = in_flight.iter().fold(0, |sum, max| sum.saturating_add(*max));
    if left >= asked.saturating_add(attempts) {
        let attempts = in_flight.iter().copied().max().unwrap_or_default();
        return Shares { public: asked, private, attempts };
    }
    let attempts = attempts.min(left / 2);
    Shares {
        public: (left - attempts).max(SHARE_MIN).min(asked),
        private,
        attempts: (attempts / in_flight.len().max(1)).max(SHARE_MIN),
    }
}

/// Raises the soft limit to the hard one, and says what it is then.
fn raise() -> usize {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    // If it cannot be raised it stays, which is what is read next.
    let _raised = setrlimit(Resource::Nofile, limit);
    let limit = getrlimit(Resource::Nofile).current;
    limit.map_or(usize::MAX, |limit| usize::try_from(limit).unwrap_or(usize::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn with_room_for_all_everybody_gets_what_is_configured() {
        let Shares { public, private, attempts } = share(20_000, 10_000, &[1024, 512]);
        assert_eq!((public, private, attempts), (10_000, ADMIN_CONNECTIONS_MAX, 1024));
    }

    #[test]
    fn connections_never_take_what_the_store_needs() {
        for allowed in [600, 1024, 4096, 11_000] {
            let Shares { public, private, attempts } = share(allowed, 10_000, &[1024; 3]);
            assert!(public + private + 3 * attempts + KEPT_BACK <= allowed, "{allowed}");
        }
    }

    #[test]
    fn with_next_to_nothing_a_few_connections_are_left() {
        let Shares { public, private, attempts } = share(64, 10_000, &[1024]);
        assert!(public >= SHARE_MIN && private >= SHARE_MIN && attempts >= SHARE_MIN);
        assert!(public + private + attempts <= 40);
    }
}
