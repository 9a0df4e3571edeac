//! Is it a wrong clock that makes the signatures of a route stale?
//!
//! Only signatures that are right count, fresh or stale: who does not have the secret can neither
//! raise the suspicion nor end it.

use std::sync::{Arc, Mutex, PoisonError};

use crate::provider::signature::{Refused, Verified};
use crate::telemetry::ClockSkew;

/// How many of a route's signatures are looked at, the latest ones.
const SIGNATURES: usize = 50;
/// How many of them have to be stale.
const STALE_MIN: usize = 20;
/// How far from one and the same offset all stale ones may be.
const SPREAD_MILLIS_MAX: u64 = 30_000;

/// A signature that is right.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Signature {
    Fresh,
    /// By how much our time of day was ahead of the signed one, or behind it if that is negative.
    Stale {
        ahead_millis: i64,
    },
}

/// The latest signatures of a route. Its size is fixed; a place that no signature has taken yet is
/// like a fresh one.
#[derive(Debug)]
struct Window {
    latest: [Signature; SIGNATURES],
    next: usize,
}

/// The signatures of a route at work.
#[derive(Debug)]
pub(super) struct SkewWatch {
    route: Arc<str>,
    window: Mutex<Window>,
    shown: ClockSkew,
}

impl Default for Window {
    fn default() -> Self {
        Self { latest: [Signature::Fresh; SIGNATURES], next: 0 }
    }
}

impl Window {
    /// Takes in a signature. Gives by how many seconds our clock seems to be ahead, or behind if
    /// that is negative; none, and never zero, if it seems to be right.
    fn push(&mut self, signature: Signature) -> Option<i64> {
        if let Some(oldest) = self.latest.get_mut(self.next) {
            *oldest = signature;
        }
        self.next = (self.next + 1) % SIGNATURES;
        self.suspected()
    }

    fn suspected(&self) -> Option<i64> {
        let stale = || self.latest.iter().filter_map(Signature::ahead_millis);
        if stale().count() < STALE_MIN {
            return None;
        }
        let least = stale().min()?;
        let most = stale().max()?;
        // A clock that is ahead makes no signature one of the future.
        let is_one_side = least.signum() == most.signum();
        let is_close = most.abs_diff(least) <= 2 * SPREAD_MILLIS_MAX;
        (is_one_side && is_close).then(|| seconds(i64::midpoint(least, most)))
    }
}

impl Signature {
    fn ahead_millis(&self) -> Option<i64> {
        match self {
            Self::Fresh => None,
            Self::Stale { ahead_millis } => Some(*ahead_millis),
        }
    }

    /// None if it is not known to be right.
    fn of(checked: &Result<Verified, Refused>) -> Option<Self> {
        match checked {
            Ok(_) => Some(Self::Fresh),
            Err(refused) => {
                let ahead_of_us = refused.offset_millis()?;
                Some(Self::Stale { ahead_millis: ahead_of_us.saturating_neg() })
            }
        }
    }
}

/// To the nearest second, but not to zero.
fn seconds(millis: i64) -> i64 {
    let rounded = millis.saturating_add(500 * millis.signum()) / 1000;
    if rounded == 0 { millis.signum() } else { rounded }
}

impl SkewWatch {
    pub(super) fn new(route: Arc<str>, shown: ClockSkew) -> Self {
        shown.set(0);
        Self { route, window: Mutex::default(), shown }
    }

    /// Takes in what came out of a check.
    pub(super) fn saw(&self, checked: &Result<Verified, Refused>) {
        let Some(signature) = Signature::of(checked) else { return };
        // Shown and told before the next one comes, so that the last word is the latest one.
        let mut window = self.window.lock().unwrap_or_else(PoisonError::into_inner);
        let now = window.push(signature).unwrap_or(0);
        let before = self.shown.set(now);
        match (before, now) {
            (0, 0) => {}
            (0, skew_seconds) => self.tell_begin(skew_seconds),
            (_, 0) => tracing::info!(
                route.name = &*self.route,
                concern = ClockSkew::CONCERN,
                "clock skew is no longer suspected"
            ),
            (_, _) => {}
        }
    }

    fn tell_begin(&self, skew_seconds: i64) {
        let size = skew_seconds.unsigned_abs();
        let relation = if skew_seconds > 0 { "ahead of" } else { "behind" };
        tracing::warn!(
            route.name = &*self.route,
            concern = ClockSkew::CONCERN,
            skew_seconds,
            hint = "compare this machine's clock with NTP (`timedatectl`, `chronyc tracking`); if it is \
                    right, the sender's is wrong, or somebody sends old requests again",
            "clock skew is suspected: this machine's clock seems to be {size} s {relation} the sender's, so \
             that right signatures are refused as stale"
        );
    }
}

#[cfg(test)]
mod tests {
    use std::iter::repeat_n;
    use std::time::Duration;

    use super::*;
    use crate::provider::signature::{Carried, Place, Reason};
    use crate::telemetry::Metrics;

    const FRESH: Signature = Signature::Fresh;

    fn stale(ahead_seconds: i64) -> Signature {
        Signature::Stale { ahead_millis: ahead_seconds * 1000 }
    }

    fn after(signatures: impl IntoIterator<Item = Signature>) -> Option<i64> {
        let mut window = Window::default();
        signatures.into_iter().fold(None, |_, signature| window.push(signature))
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
        let beyond = Signature::Stale { ahead_millis: 460_001 };
        assert_eq!(after(repeat_n(stale(400), 19).chain([beyond])), None);
        let extremes = [i64::MIN, i64::MAX].map(|ahead_millis| Signature::Stale { ahead_millis });
        assert_eq!(after(extremes.into_iter().cycle().take(SIGNATURES)), None);
    }

    /// One signature of another age, such as a request that its sender tries again an hour later,
    /// ends the suspicion only for as long as it is among the latest.
    #[test]
    fn a_signature_of_another_age_speaks_against_it_until_it_has_left_the_window() {
        let mut window = Window::default();
        window.push(stale(3600));
        for _ in 1..SIGNATURES {
            assert_eq!(window.push(stale(400)), None);
        }
        assert_eq!(window.push(stale(400)), Some(400));
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
    fn it_is_over_when_fewer_than_twenty_of_them_are_stale() {
        let mut window = Window::default();
        for _ in 0..STALE_MIN {
            window.push(stale(400));
        }
        for _ in 0..SIGNATURES - STALE_MIN {
            assert_eq!(window.push(FRESH), Some(400));
        }
        assert_eq!(window.push(FRESH), None);
    }

    /// A tolerance may be shorter than 30 s.
    #[test]
    fn signatures_that_are_stale_on_both_sides_speak_of_no_clock() {
        assert_eq!(after([stale(11), stale(-11)].into_iter().cycle().take(SIGNATURES)), None);
        assert_eq!(after(repeat_n(stale(11), SIGNATURES)), Some(11));
    }

    #[test]
    fn the_size_is_whole_seconds_and_never_none() {
        for (millis, shown) in
            [(1, 1), (-1, -1), (1499, 1), (1500, 2), (-1500, -2), (-300_499, -300)]
        {
            assert_eq!(seconds(millis), shown, "{millis}");
        }
        let far = Signature::Stale { ahead_millis: i64::MAX };
        assert_eq!(after(repeat_n(far, SIGNATURES)), Some(i64::MAX / 1000));
    }

    #[test]
    fn only_signatures_that_are_right_count() {
        let metrics = Metrics::new();
        let watch = SkewWatch::new("hooks".into(), metrics.clock_skew("hooks"));
        let place = || Place::Member("/signature".to_owned());
        let genuine = Ok(Verified { secret: 0, carried: Carried::default() });
        let stale = |distance| {
            let by = Duration::from_secs(1);
            Err(Refused::Stale { by, distance: Duration::from_secs(distance), ahead: true })
        };
        for _ in 1..STALE_MIN {
            watch.saw(&stale(400));
        }
        for _ in 0..10 * SIGNATURES {
            watch.saw(&Err(Refused::Missing(place())));
            watch.saw(&Err(Reason::Mismatch(place()).into()));
        }
        assert!(!metrics.clock_is_suspected());
        watch.saw(&stale(400));
        assert!(metrics.clock_is_suspected(), "what is wrong has pushed nothing out");
        assert!(metrics.prometheus().unwrap().contains("{route=\"hooks\"} -400\n"));
        for _ in 0..SIGNATURES {
            watch.saw(&genuine);
        }
        assert!(!metrics.clock_is_suspected());
    }
}
