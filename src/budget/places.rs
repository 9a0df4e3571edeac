//! Counts places: how many requests there may be at a time, in all and from one peer.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;

use crate::telemetry::{Limit, Metrics};

/// How many places there are of one kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// The limit that is reported when all places are taken.
    pub limit: Limit,
    /// The number of places.
    pub max: usize,
    /// The share of the places that one peer may have: `server.limits.per_peer_max`.
    pub per_peer_max: Share,
}

/// A part of a whole, in millionths.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Share(u32);

impl Share {
    /// The whole, which sets no limit.
    pub const WHOLE: Self = Self(1_000_000);

    /// A share from a number above 0 and at most 1. None for any other number.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "it was checked to be within a million"
    )]
    pub fn new(number: f64) -> Option<Self> {
        let is_share = number > 0.0 && number <= 1.0;
        is_share.then(|| Self(((number * f64::from(Self::WHOLE.0)).round() as u32).max(1)))
    }

    /// This share of `places`, but at least one. None for the whole.
    fn of(self, places: usize) -> Option<usize> {
        (self != Self::WHOLE).then(|| {
            let millionths = u128::from(self.0) * places as u128;
            usize::try_from(millionths / u128::from(Self::WHOLE.0)).unwrap_or(places).max(1)
        })
    }
}

/// Places of one kind. Clones share them.
#[derive(Debug, Clone)]
pub struct Places(Arc<PlaceCount>);

#[derive(Debug)]
struct PlaceCount {
    limit: Limit,
    max: usize,
    taken: AtomicUsize,
    peers: PeerLimit,
    metrics: Arc<Metrics>,
}

/// A place that is taken. Dropping it makes it free.
#[derive(Debug)]
pub struct Place {
    places: Places,
    peer: Option<IpAddr>,
}

impl Places {
    /// Places that are all free.
    pub fn new(settings: Settings, metrics: Arc<Metrics>) -> Self {
        let Settings { limit, max, per_peer_max } = settings;
        let peers = PeerLimit::new(max, per_peer_max);
        Self(Arc::new(PlaceCount { limit, max, taken: AtomicUsize::new(0), peers, metrics }))
    }

    /// Takes a place for a peer. None if all are taken, or the peer has its share.
    pub fn take(&self, peer: Option<IpAddr>) -> Option<Place> {
        let PlaceCount { limit, max, taken, peers, metrics } = &*self.0;
        let found = taken.try_update(Ordering::Relaxed, Ordering::Relaxed, |taken| {
            (taken < *max).then_some(taken + 1)
        });
        if found.is_err() {
            metrics.limit_reached(*limit);
            return None;
        }
        // Without a limit per peer the table and its lock are not touched.
        let peer = peer.filter(|_| peers.is_set());
        if let Some(peer) = peer
            && !peers.enter(peer)
        {
            // The place was taken before the peer was counted, and is given back.
            taken.fetch_sub(1, Ordering::Relaxed);
            metrics.limit_reached(Limit::PerPeer);
            return None;
        }
        Some(Place { places: self.clone(), peer })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let PlaceCount { taken, peers, .. } = &*self.places.0;
        if let Some(peer) = self.peer {
            peers.leave(peer);
        }
        taken.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Counts the places of each peer, if there is a limit per peer.
#[derive(Debug)]
pub struct PeerLimit {
    max: Option<usize>,
    taken: Mutex<HashMap<IpAddr, usize>>,
}

impl PeerLimit {
    /// Limits each peer to a share of `places`.
    pub fn new(places: usize, share: Share) -> Self {
        Self { max: share.of(places), taken: Mutex::default() }
    }

    /// Whether there is a limit.
    pub const fn is_set(&self) -> bool {
        self.max.is_some()
    }

    /// Counts one more place of a peer. False if the peer has its share already.
    pub fn enter(&self, peer: IpAddr) -> bool {
        let Some(max) = self.max else { return true };
        let mut taken = self.taken.lock();
        let count = taken.entry(peer_network(peer)).or_default();
        let fits = *count < max;
        *count += usize::from(fits);
        fits
    }

    /// Counts one place less.
    pub fn leave(&self, peer: IpAddr) {
        if self.max.is_none() {
            return;
        }
        if let Entry::Occupied(mut count) = self.taken.lock().entry(peer_network(peer)) {
            *count.get_mut() -= 1;
            // A peer without places is forgotten: otherwise the table would grow with every address
            // that was ever seen.
            if *count.get() == 0 {
                count.remove();
            }
        }
    }
}

/// The address that counts as one peer: an IPv4 address, or the /64 network of an IPv6 address. A
/// single machine usually has a whole /64 (RFC 4291, 2.5.1) and can use any address in it.
pub fn peer_network(address: IpAddr) -> IpAddr {
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

    fn places(max: usize, per_peer_max: f64) -> Places {
        let per_peer_max = Share::new(per_peer_max).unwrap();
        let settings = Settings { limit: Limit::RequestsInFlight, max, per_peer_max };
        Places::new(settings, Arc::new(Metrics::new()))
    }

    fn take(places: &Places, peer: &str) -> Option<Place> {
        places.take(Some(peer.parse().unwrap()))
    }

    #[test]
    fn a_place_that_is_dropped_is_free_again() {
        let places = places(2, 1.0);
        let both = [places.take(None).unwrap(), take(&places, "192.0.2.1").unwrap()];
        assert!(places.take(None).is_none());
        drop(both);
        assert!(places.take(None).is_some());
    }

    #[test]
    fn a_peer_has_its_share_and_one_place_at_least() {
        let places = places(10, 0.25);
        let [one, other] = ["192.0.2.1", "192.0.2.2"];
        let taken = [take(&places, one).unwrap(), take(&places, one).unwrap()];
        assert!(take(&places, one).is_none());
        assert!(take(&places, other).is_some());
        drop(taken);
        assert!(take(&places, one).is_some());
        let few = self::places(2, 0.1);
        let first = take(&few, one).unwrap();
        assert!(take(&few, one).is_none());
        drop(first);
        assert!(take(&few, one).is_some());
    }

    #[test]
    fn the_addresses_of_one_ipv6_network_are_one_peer() {
        let places = places(10, 0.1);
        let _first = take(&places, "2001:db8::1").unwrap();
        assert!(take(&places, "2001:db8::2").is_none());
        assert!(take(&places, "2001:db8:0:1::1").is_some());
    }

    #[test]
    fn a_share_is_above_nothing_and_no_more_than_all() {
        for none in [0.0, -0.1, 1.1, f64::NAN, f64::INFINITY] {
            assert_eq!(Share::new(none), None, "{none}");
        }
        assert_eq!(Share::new(1.0), Some(Share::WHOLE));
        assert_eq!(Share::new(0.1).unwrap().of(4096), Some(409));
        assert_eq!(Share::WHOLE.of(4096), None);
    }

    #[test]
    fn nothing_is_kept_of_a_peer_that_has_no_place() {
        let limit = PeerLimit::new(10, Share::new(0.5).unwrap());
        let peer = "192.0.2.1".parse().unwrap();
        assert!(limit.enter(peer));
        limit.leave(peer);
        assert!(limit.taken.lock().is_empty());
    }
}
