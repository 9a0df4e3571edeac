//! Wrong tokens, counted by where they come from.
//!
//! Whoever guesses for long is told to come back later and is no longer logged one by one. The
//! right token is never refused for that: an operator behind the same address would be locked out
//! by whoever guesses there, just when it matters.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::budget::peer_network;
use crate::clock::{Clock, Moment};

/// A wrong token is paid for with so much time;
const COST: Duration = Duration::from_secs(6);
/// who owes more than this is told to wait. So ten in a row are free, then ten a minute.
const DEBT_MAX: Duration = Duration::from_mins(1);
/// Addresses that are kept. Of more, those that owe the least are let go.
const SOURCES_MAX: usize = 1024;

/// Who owes how much.
#[derive(Debug)]
pub(super) struct Failures {
    clock: Clock,
    debts: Mutex<HashMap<Source, Debt>>,
}

/// An IPv4 address, or the network of an IPv6 one, whose every address one machine may have; none
/// where the server does not tell.
type Source = Option<IpAddr>;

#[derive(Debug, Clone, Copy)]
struct Debt {
    owed: Duration,
    at: Moment,
}

/// Why a token does not count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Denied {
    /// It is not the right one.
    Wrong,
    /// It is not the right one, as too many before it; the caller is to try again after this time.
    TooMany(Duration),
}

impl Failures {
    pub(super) fn new(clock: Clock) -> Self {
        Self { clock, debts: Mutex::default() }
    }

    /// Takes note of a wrong token from this address. An address pays for its own failures only.
    pub(super) fn wrong(&self, peer: Option<SocketAddr>) -> Denied {
        let source = peer.map(|peer| peer_network(peer.ip()));
        let mut debts = self.lock();
        let now = self.clock.moment();
        let owed = debts.get(&source).map_or(Duration::ZERO, |debt| debt.left(now));
        let after = owed.saturating_add(COST);
        if after > DEBT_MAX {
            return Denied::TooMany(after.saturating_sub(DEBT_MAX));
        }
        make_room(&mut debts, source, now);
        debts.insert(source, Debt { owed: after, at: now });
        Denied::Wrong
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Source, Debt>> {
        self.debts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Debt {
    /// Time alone pays it.
    fn left(self, now: Moment) -> Duration {
        self.owed.saturating_sub(self.at.until(now))
    }
}

fn make_room(debts: &mut HashMap<Source, Debt>, newcomer: Source, now: Moment) {
    if debts.len() < SOURCES_MAX || debts.contains_key(&newcomer) {
        return;
    }
    debts.retain(|_, debt| debt.left(now) > Duration::ZERO);
    if debts.len() >= SOURCES_MAX {
        let least = debts.iter().min_by_key(|(_, debt)| debt.left(now)).map(|(source, _)| *source);
        least.map(|source| debts.remove(&source));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operation::Timestamp;

    fn failures() -> (Failures, Clock) {
        let clock = Clock::manual(Timestamp(0));
        (Failures::new(clock.clone()), clock)
    }

    fn wrong(failures: &Failures, address: &str) -> Denied {
        failures.wrong(Some(SocketAddr::new(address.parse().unwrap(), 4711)))
    }

    fn guess_often(failures: &Failures, addresses: &[&str]) {
        for address in addresses.iter().cycle().take(20) {
            wrong(failures, address);
        }
    }

    #[test]
    fn ten_wrong_tokens_are_told_so_and_then_ten_a_minute() {
        let (failures, clock) = failures();
        let guess = || wrong(&failures, "192.0.2.1");
        for _ in 0..10 {
            assert_eq!(guess(), Denied::Wrong);
        }
        assert_eq!(guess(), Denied::TooMany(COST));
        clock.advance(COST / 2);
        assert_eq!(guess(), Denied::TooMany(COST / 2));
        clock.advance(COST / 2);
        assert_eq!(guess(), Denied::Wrong);
        assert_eq!(guess(), Denied::TooMany(COST));
    }

    #[test]
    fn nobody_pays_for_others() {
        let failures = failures().0;
        guess_often(&failures, &["192.0.2.1"]);
        assert_eq!(wrong(&failures, "192.0.2.2"), Denied::Wrong);
        guess_often(&failures, &["2001:db8::1", "2001:db8::2"]);
        assert_eq!(wrong(&failures, "2001:db8::3"), Denied::TooMany(COST));
        assert_eq!(wrong(&failures, "2001:db8:0:1::1"), Denied::Wrong);
        assert_eq!(wrong(&failures, "::ffff:192.0.2.1"), Denied::TooMany(COST));
    }

    #[test]
    fn of_many_addresses_those_that_owe_most_are_kept() {
        let failures = failures().0;
        guess_often(&failures, &["192.0.2.1"]);
        for n in 0..3_000_u32 {
            let address = SocketAddr::new(std::net::Ipv4Addr::from_bits(n).into(), 1);
            assert_eq!(failures.wrong(Some(address)), Denied::Wrong);
        }
        assert!(failures.lock().len() <= SOURCES_MAX);
        assert_eq!(wrong(&failures, "192.0.2.1"), Denied::TooMany(COST));
    }
}
