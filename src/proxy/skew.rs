//! Detects a wrong clock: the signatures of a route are valid, but all of them are stale by about
//! the same time.
//!
//! Only valid signatures count, fresh or stale. Somebody without the secret can therefore neither
//! raise the suspicion nor end it. Somebody who has captured a request can send it again, so a
//! stale request counts only once. It is recognised by its body, which does not help if the
//! signature does not cover the body.

use std::hash::{BuildHasher as _, RandomState};
use std::sync::Arc;

use parking_lot::Mutex;

use crate::provider::signature::{SignatureError, Verified};
use crate::telemetry::ClockSkew;

/// How many of a route's latest signatures are looked at.
const SIGNATURES: usize = 50;
/// How many of them must be stale for a suspicion to begin.
const STALE_MIN: usize = 20;
/// How many of them must be stale by about the suspected offset for a suspicion to stay. The number
/// is half of [`STALE_MIN`], so that a suspicion does not come and go with every signature.
const STALE_TO_STAY: usize = 10;
/// How far each stale signature may be from the common offset, in milliseconds.
const SPREAD_MILLIS_MAX: u64 = 30_000;

/// A valid signature whose time is out of tolerance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stale {
    /// How far our clock was ahead of the signed time, in milliseconds. Negative if it was behind.
    ahead_millis: i64,
    /// A hash of the request, by which a request that was sent again is recognised.
    request: u64,
}

/// The latest valid signatures of a route, in a ring of fixed size. `None` is a fresh signature, or
/// a place that no signature has taken yet.
#[derive(Debug)]
struct Window {
    latest: [Option<Stale>; SIGNATURES],
    next: usize,
    /// How far our clock is suspected to be ahead, in milliseconds.
    suspected: Option<i64>,
}

/// The signatures of a route at work.
#[derive(Debug)]
pub(super) struct SkewWatch {
    route: Arc<str>,
    window: Mutex<Window>,
    /// Hashes the bodies of requests. Its keys are random, so nobody outside can find two bodies
    /// with the same hash.
    hasher: RandomState,
    shown: ClockSkew,
}

impl Default for Window {
    fn default() -> Self {
        Self { latest: [None; SIGNATURES], next: 0, suspected: None }
    }
}

impl Window {
    /// Takes in a signature. Returns by how many seconds our clock seems to be ahead. A negative
    /// number means that it seems to be behind. None, and never zero, means that it seems to be
    /// right.
    fn push(&mut self, signature: Option<Stale>) -> Option<i64> {
        if !signature.is_some_and(|stale| self.holds(stale.request)) {
            if let Some(oldest) = self.latest.get_mut(self.next) {
                *oldest = signature;
            }
            self.next = (self.next + 1) % SIGNATURES;
        }
        let stays = self.suspected.filter(|offset| self.supports(*offset));
        self.suspected = self.offset().or(stays);
        self.suspected.map(seconds)
    }

    fn stale(&self) -> impl Iterator<Item = &Stale> {
        self.latest.iter().flatten()
    }

    fn holds(&self, request: u64) -> bool {
        self.stale().any(|stale| stale.request == request)
    }

    /// The common offset of all stale signatures, if there are enough of them to suspect the clock.
    fn offset(&self) -> Option<i64> {
        if self.stale().count() < STALE_MIN {
            return None;
        }
        let least = self.stale().map(|stale| stale.ahead_millis).min()?;
        let most = self.stale().map(|stale| stale.ahead_millis).max()?;
        // A clock that is ahead never makes a signature seem to come from the future.
        let is_one_side = least.signum() == most.signum();
        let is_close = most.abs_diff(least) <= 2 * SPREAD_MILLIS_MAX;
        (is_one_side && is_close).then(|| i64::midpoint(least, most))
    }

    /// Whether enough signatures still support an offset.
    fn supports(&self, offset: i64) -> bool {
        let is_near = |stale: &&Stale| stale.ahead_millis.abs_diff(offset) <= SPREAD_MILLIS_MAX;
        self.stale().filter(is_near).count() >= STALE_TO_STAY
    }
}

/// Milliseconds, rounded to the nearest second, but never to zero.
fn seconds(millis: i64) -> i64 {
    let rounded = millis.saturating_add(500 * millis.signum()) / 1000;
    if rounded == 0 { millis.signum() } else { rounded }
}

impl SkewWatch {
    pub(super) fn new(route: Arc<str>, shown: ClockSkew) -> Self {
        shown.set(0);
        Self { route, window: Mutex::default(), hasher: RandomState::new(), shown }
    }

    /// Takes the result of one check into account. `body` is the body of the checked request.
    pub(super) fn note(&self, checked: &Result<Verified, SignatureError>, body: &[u8]) {
        let signature = match checked {
            Ok(_) => None,
            Err(error) => {
                // Only a stale signature has an offset. An invalid one says nothing about the
                // clock.
                let Some(ahead_of_us) = error.offset_millis() else { return };
                let ahead_millis = ahead_of_us.saturating_neg();
                Some(Stale { ahead_millis, request: self.hasher.hash_one(body) })
            }
        };
        // Metric and log line are written under the lock, so they keep the order of the signatures.
        let mut window = self.window.lock();
        let now = window.push(signature).unwrap_or(0);
        let before = self.shown.set(now);
        match (before, now) {
            // Only changes are logged. Otherwise a wrong clock would fill the log.
            (0, 0) => {}
            (0, skew_seconds) => self.warn(skew_seconds),
            (_, 0) => tracing::info!(
                route.name = &*self.route,
                concern = ClockSkew::CONCERN,
                "clock skew is no longer suspected"
            ),
            (_, _) => {}
        }
    }

    fn warn(&self, skew_seconds: i64) {
        let size = skew_seconds.unsigned_abs();
        let relation = if skew_seconds > 0 { "ahead of" } else { "behind" };
        tracing::warn!(
            route.name = &*self.route,
            concern = ClockSkew::CONCERN,
            skew_seconds,
            hint = "compare this machine's clock with NTP (`timedatectl`, `chronyc tracking`); if it is \
                    right, the sender's is wrong, or somebody sends old requests again",
            "clock skew is suspected: this machine's clock seems to be {size} s {relation} the sender's, so \
             valid signatures are refused as stale"
        );
    }
}

#[cfg(test)]
mod tests {
    use std::iter::repeat_n;
    use std::time::Duration;

    use super::*;
    use crate::provider::signature::{Carried, InvalidReason, Location};
    use crate::telemetry::Metrics;

    const FRESH: Option<Stale> = None;

    fn stale(ahead_seconds: i64) -> Option<Stale> {
        of(ahead_seconds * 1000)
    }

    #[expect(clippy::unnecessary_wraps, reason = "a fresh one is none")]
    fn of(ahead_millis: i64) -> Option<Stale> {
        Some(Stale { ahead_millis, request: 0 })
    }

    /// Pushes a signature of the request with this number.
    fn push(window: &mut Window, request: u64, signature: Option<Stale>) -> Option<i64> {
        window.push(signature.map(|stale| Stale { request, ..stale }))
    }

    fn after(signatures: impl IntoIterator<Item = Option<Stale>>) -> Option<i64> {
        let mut window = Window::default();
        let signatures = (0..).zip(signatures);
        signatures.fold(None, |_, (request, signature)| push(&mut window, request, signature))
    }

    #[test]
    fn a_clock_is_suspected_from_the_twentieth_stale_signature_on() {
        assert_eq!(after(repeat_n(stale(400), STALE_MIN - 1)), None);
        assert_eq!(after(repeat_n(stale(400), STALE_MIN)), Some(400));
        assert_eq!(after(repeat_n(stale(-400), STALE_MIN)), Some(-400));
        assert_eq!(after(repeat_n(stale(400), SIGNATURES)), Some(400));
        assert_eq!(after(repeat_n(FRESH, 10 * SIGNATURES)), None);
    }

    #[test]
    fn all_stale_signatures_are_within_thirty_seconds_of_one_offset() {
        let with = |other: i64| after(repeat_n(stale(400), 19).chain([stale(other)]));
        assert_eq!(with(460), Some(430), "30 s from 430 s, all of them");
        assert_eq!(with(340), Some(370));
        assert_eq!(with(461), None);
        assert_eq!(with(339), None);
        assert_eq!(after(repeat_n(stale(400), 19).chain([of(460_001)])), None);
        let extremes = [i64::MIN, i64::MAX].map(of);
        assert_eq!(after(extremes.into_iter().cycle().take(SIGNATURES)), None);
    }

    /// Such a signature is that of a request that its sender tries again an hour later.
    #[test]
    fn one_signature_of_another_age_prevents_a_suspicion_but_ends_none() {
        let mut window = Window::default();
        push(&mut window, 0, stale(3600));
        for request in 1..50 {
            assert_eq!(push(&mut window, request, stale(400)), None);
        }
        assert_eq!(push(&mut window, 50, stale(400)), Some(400));
        assert_eq!(push(&mut window, 51, stale(3600)), Some(400));
    }

    #[test]
    fn a_request_that_comes_again_counts_once() {
        let mut window = Window::default();
        for again in 0..1000 {
            // It grows older as it is sent again.
            assert_eq!(push(&mut window, again % 19, stale(400)), None);
        }
        assert_eq!(push(&mut window, 19, stale(400)), Some(400));
        for again in 0..1000 {
            push(&mut window, again % 9, stale(500));
        }
        assert_eq!(window.stale().count(), STALE_MIN);
    }

    #[test]
    fn a_suspicion_follows_the_clock() {
        let mut window = Window::default();
        let mut last = None;
        for request in 0..50 {
            last = push(&mut window, request, stale(400));
        }
        assert_eq!(last, Some(400));
        for request in 50..100 {
            last = push(&mut window, request, stale(600));
        }
        assert_eq!(last, Some(600));
    }

    #[test]
    fn only_the_latest_fifty_signatures_count() {
        let few = || repeat_n(stale(400), STALE_MIN - 1);
        let between = SIGNATURES - STALE_MIN;
        assert_eq!(after(few().chain(repeat_n(FRESH, between)).chain([stale(400)])), Some(400));
        assert_eq!(after(few().chain(repeat_n(FRESH, between + 1)).chain([stale(400)])), None);
        assert_eq!(after(few().chain(repeat_n(FRESH, SIGNATURES)).chain(few())), None);
    }

    #[test]
    fn a_suspicion_ends_when_fewer_than_ten_signatures_support_it() {
        let mut window = Window::default();
        for request in 0..20 {
            push(&mut window, request, stale(400));
        }
        for _ in 0..SIGNATURES - STALE_TO_STAY {
            assert_eq!(window.push(FRESH), Some(400));
        }
        assert_eq!(window.push(FRESH), None);
        // To begin again it takes as many as the first time.
        for request in 20..31 {
            assert_eq!(push(&mut window, request, stale(400)), None);
        }
    }

    /// A tolerance may be shorter than 30 s.
    #[test]
    fn signatures_that_are_stale_on_both_sides_raise_no_suspicion() {
        assert_eq!(after([stale(11), stale(-11)].into_iter().cycle().take(SIGNATURES)), None);
        assert_eq!(after(repeat_n(stale(11), SIGNATURES)), Some(11));
    }

    #[test]
    fn an_offset_is_shown_in_whole_seconds_and_never_as_zero() {
        for (millis, shown) in
            [(1, 1), (-1, -1), (1499, 1), (1500, 2), (-1500, -2), (-300_499, -300)]
        {
            assert_eq!(seconds(millis), shown, "{millis}");
        }
        assert_eq!(after(repeat_n(of(i64::MAX), SIGNATURES)), Some(i64::MAX / 1000));
    }

    #[test]
    fn only_valid_signatures_count() {
        let metrics = Metrics::new();
        let watch = SkewWatch::new("hooks".into(), metrics.clock_skew("hooks"));
        let place = || Location::Member("/signature".to_owned());
        let genuine = Ok(Verified { secret: 0, carried: Carried::default() });
        let stale = |distance| {
            let by = Duration::from_secs(1);
            Err(SignatureError::Stale { by, distance: Duration::from_secs(distance), ahead: true })
        };
        for number in 1..STALE_MIN {
            watch.note(&stale(400), &[u8::try_from(number).unwrap()]);
            watch.note(&stale(500), &[1]);
        }
        for _ in 0..10 * SIGNATURES {
            watch.note(&Err(SignatureError::Missing(place())), b"");
            watch.note(&Err(InvalidReason::Mismatch(place()).into()), b"");
        }
        assert!(!metrics.clock_is_suspected());
        watch.note(&stale(400), b"");
        assert!(metrics.clock_is_suspected(), "what is wrong has pushed nothing out");
        assert!(metrics.prometheus().unwrap().contains("{route=\"hooks\"} -400\n"));
        for _ in 0..SIGNATURES {
            watch.note(&genuine, b"");
        }
        assert!(!metrics.clock_is_suspected());
    }
}
