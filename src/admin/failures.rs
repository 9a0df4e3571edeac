//! Counts wrong tokens by the address that they come from.
//!
//! After many wrong tokens a caller is told to come back later, and its guesses are no longer
//! logged one by one. The right token is never refused for that: otherwise anybody behind the
//! operator's address could lock the operator out.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use parking_lot::Mutex;

use crate::budget::peer_network;
use crate::clock::{Clock, Moment};

/// How much one wrong token fills a bucket.
const FILL: Duration = Duration::from_secs(6);
/// The capacity of a bucket. Ten wrong tokens in a row fit in, and then ten a minute.
const CAPACITY: Duration = Duration::from_mins(1);
/// The number of buckets that are kept. Beyond it the emptiest is dropped.
const BUCKETS_MAX: usize = 1024;

/// A leaky bucket of wrong tokens for each source.
#[derive(Debug)]
pub(super) struct Failures {
    clock: Clock,
    buckets: Mutex<HashMap<Source, Bucket>>,
}

/// An IPv4 address, or the /64 network of an IPv6 address, since one machine may use every address
/// of its network. None where the server does not know the caller's address.
type Source = Option<IpAddr>;

/// A bucket that leaks as time passes: one second of its fill in a second.
#[derive(Debug, Clone, Copy)]
struct Bucket {
    fill: Duration,
    filled_at: Moment,
}

/// Why a token does not count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Denied {
    /// The token is wrong.
    Wrong,
    /// The token is wrong, like too many before it. The caller has to wait this long.
    TooMany(Duration),
}

impl Failures {
    pub(super) fn new(clock: Clock) -> Self {
        Self { clock, buckets: Mutex::default() }
    }

    /// Counts a wrong token from this address.
    pub(super) fn wrong(&self, peer: Option<SocketAddr>) -> Denied {
        let source = peer.map(|peer| peer_network(peer.ip()));
        let mut buckets = self.buckets.lock();
        let now = self.clock.moment();
        let fill = buckets.get(&source).map_or(Duration::ZERO, |bucket| bucket.fill_at(now));
        let fill = fill.saturating_add(FILL);
        // A token that does not fit in does not fill the bucket either, so that a caller that goes
        // on guessing is told the same time, and not a longer one at every guess.
        if fill > CAPACITY {
            return Denied::TooMany(fill.saturating_sub(CAPACITY));
        }
        make_room(&mut buckets, source, now);
        buckets.insert(source, Bucket { fill, filled_at: now });
        Denied::Wrong
    }
}

impl Bucket {
    fn fill_at(self, now: Moment) -> Duration {
        self.fill.saturating_sub(self.filled_at.until(now))
    }
}

/// Drops a bucket if there is none to spare for a new source.
fn make_room(buckets: &mut HashMap<Source, Bucket>, source: Source, now: Moment) {
    if buckets.len() < BUCKETS_MAX || buckets.contains_key(&source) {
        return;
    }
    buckets.retain(|_, bucket| bucket.fill_at(now) > Duration::ZERO);
    if buckets.len() >= BUCKETS_MAX {
        // The emptiest goes: an attacker with many addresses cannot push out the bucket of an
        // address that has guessed more often.
        let emptiest = buckets.iter().min_by_key(|(_, bucket)| bucket.fill_at(now));
        let emptiest = emptiest.map(|(source, _)| *source);
        emptiest.map(|source| buckets.remove(&source));
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
    fn ten_wrong_tokens_are_refused_as_wrong_and_then_ten_a_minute() {
        let (failures, clock) = failures();
        let guess = || wrong(&failures, "192.0.2.1");
        for _ in 0..10 {
            assert_eq!(guess(), Denied::Wrong);
        }
        assert_eq!(guess(), Denied::TooMany(FILL));
        clock.advance(FILL / 2);
        assert_eq!(guess(), Denied::TooMany(FILL / 2));
        clock.advance(FILL / 2);
        assert_eq!(guess(), Denied::Wrong);
        assert_eq!(guess(), Denied::TooMany(FILL));
    }

    #[test]
    fn a_source_is_not_charged_for_others() {
        let failures = failures().0;
        guess_often(&failures, &["192.0.2.1"]);
        assert_eq!(wrong(&failures, "192.0.2.2"), Denied::Wrong);
        guess_often(&failures, &["2001:db8::1", "2001:db8::2"]);
        assert_eq!(wrong(&failures, "2001:db8::3"), Denied::TooMany(FILL));
        assert_eq!(wrong(&failures, "2001:db8:0:1::1"), Denied::Wrong);
        assert_eq!(wrong(&failures, "::ffff:192.0.2.1"), Denied::TooMany(FILL));
    }

    #[test]
    fn of_many_addresses_the_fullest_buckets_are_kept() {
        let failures = failures().0;
        guess_often(&failures, &["192.0.2.1"]);
        for n in 0..3_000_u32 {
            let address = SocketAddr::new(std::net::Ipv4Addr::from_bits(n).into(), 1);
            assert_eq!(failures.wrong(Some(address)), Denied::Wrong);
        }
        assert!(failures.buckets.lock().len() <= BUCKETS_MAX);
        assert_eq!(wrong(&failures, "192.0.2.1"), Denied::TooMany(FILL));
    }
}
