//! The time that a signature names, and how far it may be from now.

use std::fmt;
use std::time::Duration;

use super::Signed;
use super::verdict::{Place, Reason, Refused};

/// How a time is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TimestampFormat {
    /// Seconds since 1970.
    #[default]
    Seconds,
    /// Milliseconds since 1970.
    Milliseconds,
    /// Either of the two, told apart by their digits: for senders that contradict themselves.
    SecondsOrMilliseconds,
    /// `2024-01-01T00:00:00Z`
    Rfc3339,
}

/// From 2001 to 2286. Where nothing stands between timestamp and body, a digit that is moved from
/// one to the other leaves the signed bytes as they are, but not the number of digits.
const SECONDS_DIGITS: usize = 10;
const MILLISECONDS_DIGITS: usize = 13;

impl TimestampFormat {
    pub(super) const EXPECTED: &'static str =
        "`seconds`, `milliseconds`, `seconds-or-milliseconds` or `rfc3339`";

    pub(super) fn read(text: &str) -> Option<Self> {
        match text {
            "seconds" => Some(Self::Seconds),
            "milliseconds" => Some(Self::Milliseconds),
            "seconds-or-milliseconds" => Some(Self::SecondsOrMilliseconds),
            "rfc3339" => Some(Self::Rfc3339),
            _ => None,
        }
    }

    /// Milliseconds since 1970. Digits only: no sign, no space, nothing behind them.
    fn millis(self, text: &[u8]) -> Option<u64> {
        let text = str::from_utf8(text).ok()?;
        let number = |digits: usize| {
            let all_digits = text.len() == digits && text.bytes().all(|b| b.is_ascii_digit());
            text.parse::<u64>().ok().filter(|_| all_digits)
        };
        match self {
            Self::Seconds => number(SECONDS_DIGITS)?.checked_mul(1000),
            Self::Milliseconds => number(MILLISECONDS_DIGITS),
            Self::SecondsOrMilliseconds => {
                number(MILLISECONDS_DIGITS).or_else(|| number(SECONDS_DIGITS)?.checked_mul(1000))
            }
            Self::Rfc3339 => {
                let at: jiff::Timestamp = text.parse().ok()?;
                u64::try_from(at.as_millisecond()).ok()
            }
        }
    }

    /// Refuses what is no time, or one that is further from now than `tolerance`, into the past
    /// or into the future. To be asked once the signature is known to be right.
    ///
    /// Many senders' own libraries refuse only what is too old (Stripe's). A timestamp from the
    /// future outlives the tolerance, and no honest clock makes one.
    pub(super) fn check(
        self,
        text: &[u8],
        place: &Place,
        signed: &Signed<'_>,
        tolerance: Option<Duration>,
    ) -> Result<(), Refused> {
        let at = self.millis(text).ok_or_else(|| Reason::Timestamp(place.clone(), self))?;
        let Some(tolerance) = tolerance else {
            return Ok(());
        };
        // Whole seconds are compared with whole seconds, as the libraries do.
        let now = match self {
            Self::Seconds => signed.now.0 - signed.now.0 % 1000,
            Self::Milliseconds | Self::SecondsOrMilliseconds | Self::Rfc3339 => signed.now.0,
        };
        let distance = Duration::from_millis(now.abs_diff(at));
        match distance.checked_sub(tolerance) {
            Some(by) if !by.is_zero() => Err(Refused::Stale { by, distance, ahead: at > now }),
            Some(_) | None => Ok(()),
        }
    }
}

impl fmt::Display for TimestampFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Seconds => "seconds",
            Self::Milliseconds => "milliseconds",
            Self::SecondsOrMilliseconds => "seconds or milliseconds",
            Self::Rfc3339 => "RFC 3339",
        })
    }
}
