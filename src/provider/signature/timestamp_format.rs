//! How senders write the time of a signature.

use std::fmt;

/// How a time is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TimestampFormat {
    /// Seconds since 1970.
    #[default]
    Seconds,
    /// Milliseconds since 1970.
    Milliseconds,
    /// Either of the two, told apart by their number of digits: for senders whose pages and
    /// libraries contradict each other.
    SecondsOrMilliseconds,
    /// `2024-01-01T00:00:00Z`
    Rfc3339,
}

/// The number of digits from 2001 to 2286. It is fixed, because some senders sign timestamp and
/// body with nothing between them: a digit could be moved from one to the other under the same
/// signature.
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

    /// The time in milliseconds since 1970. None if it is not written in this format: digits alone,
    /// with no sign, no space and nothing after them.
    pub(super) fn millis(self, text: &[u8]) -> Option<u64> {
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
