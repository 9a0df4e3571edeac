//! Wrong tokens, counted by where they come from, so that nobody can guess for long.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::clock::{Clock, Moment};

/// A wrong token is paid for with so much time;
const COST: Duration = Duration::from_secs(6);
/// who owes more than this is not listened to. So ten in a row are free, then ten a minute.
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
    /// It was not looked at; the caller may try again after this time.
    TooMany(Duration),
}

impl Failures {
    pub(super) fn new(clock: Clock) -> Self {
        Self { clock, debts: Mutex::default() }
    }

    /// Asks whether a token from this address is right, unless too many were wrong of late. An
    /// address pays for its own failures only.
    pub(super) fn judge(
        &self,
        peer: Option<SocketAddr>,
        is_right: impl FnOnce() -> bool,
    ) -> Result<(), Denied> {
        let source = peer.map(|peer| network(peer.ip()));
        // held while the token is compared, so that no two guesses are made for the price of one
        let mut debts = self.lock();
        let now = self.clock.moment();
        let owed = debts.get(&source).map_or(Duration::ZERO, |debt| debt.left(now));
        let after = owed.saturating_add(COST);
        if after > DEBT_MAX {
            return Err(Denied::TooMany(after.saturating_sub(DEBT_MAX)));
        }
        if is_right() {
            return Ok(());
        }
        make_room(&mut debts, source, now);
        debts.insert(source, Debt { owed: after, at: now });
        Err(Denied::Wrong)
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

fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V4(address) => IpAddr::V4(address),
        IpAddr::V6(address) => {
            IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() & !u128::from(u64::MAX)))
        }
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

    fn judge(failures: &Failures, address: &str, is_right: bool) -> Result<(), Denied> {
        failures.judge(Some(SocketAddr::new(address.parse().unwrap(), 4711)), || is_right)
    }

    #[test]
    fn ten_wrong_tokens_are_judged_and_then_ten_a_minute() {
        let (failures, clock) = failures();
        let guess = || judge(&failures, "192.0.2.1", false);
        for _ in 0..10 {
            assert_eq!(guess(), Err(Denied::Wrong));
        }
        assert_eq!(guess(), Err(Denied::TooMany(COST)));
        clock.advance(COST / 2);
        assert_eq!(guess(), Err(Denied::TooMany(COST / 2)));
        clock.advance(COST / 2);
        assert_eq!(guess(), Err(Denied::Wrong));
        assert_eq!(guess(), Err(Denied::TooMany(COST)));
    }

    #[test]
    fn a_token_that_comes_too_soon_is_not_even_compared() {
        let failures = failures().0;
        (0..10).for_each(|_| assert!(failures.judge(None, || false).is_err()));
        let denied = failures.judge(None, || panic!("it was compared"));
        assert_eq!(denied, Err(Denied::TooMany(COST)));
    }

    #[test]
    fn nobody_pays_for_others() {
        let failures = failures().0;
        (0..20).for_each(|_| assert!(judge(&failures, "192.0.2.1", false).is_err()));
        assert_eq!(judge(&failures, "192.0.2.2", true), Ok(()));
        let network = ["2001:db8::1", "2001:db8::2"];
        (0..20).for_each(|n| assert!(judge(&failures, network[n % 2], false).is_err()));
        assert_eq!(judge(&failures, "2001:db8::3", true), Err(Denied::TooMany(COST)));
        assert_eq!(judge(&failures, "2001:db8:0:1::1", true), Ok(()));
        let mapped = judge(&failures, "::ffff:192.0.2.1", true);
        assert_eq!(mapped, Err(Denied::TooMany(COST)));
    }

    #[test]
    fn of_many_addresses_those_that_owe_most_are_kept() {
        let failures = failures().0;
        (0..20).for_each(|_| assert!(judge(&failures, "192.0.2.1", false).is_err()));
        for n in 0..3_000_u32 {
            let address = SocketAddr::new(std::net::Ipv4Addr::from_bits(n).into(), 1);
            assert_eq!(failures.judge(Some(address), || false), Err(Denied::Wrong));
        }
        assert!(failures.lock().len() <= SOURCES_MAX);
        assert_eq!(judge(&failures, "192.0.2.1", true), Err(Denied::TooMany(COST)));
    }
}
