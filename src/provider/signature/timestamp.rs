//! How far the timestamp of a signature may be from now.

use std::time::Duration;

use super::timestamp_format::TimestampFormat;
use super::verdict::{InvalidReason, Location, SignatureError};
use crate::provider::ReceivedRequest;

impl TimestampFormat {
    /// Checks a timestamp. To be called once the signature is known to be right: anybody can write
    /// a wrong signature with any timestamp, and many stale timestamps mean that a clock is wrong.
    ///
    /// # Errors
    /// The text is no time, or the time is further from now than `tolerance`, in the past or in the
    /// future. The libraries of many senders (Stripe's) refuse only what is too old. A timestamp
    /// from the future would be accepted for longer than the tolerance, and no sender with a right
    /// clock writes one.
    pub(super) fn check(
        self,
        text: &[u8],
        location: &Location,
        received: &ReceivedRequest<'_>,
        tolerance: Option<Duration>,
    ) -> Result<(), SignatureError> {
        let at =
            self.millis(text).ok_or_else(|| InvalidReason::Timestamp(location.clone(), self))?;
        let Some(tolerance) = tolerance else {
            return Ok(());
        };
        // Whole seconds are compared with whole seconds, as the senders' libraries do. Otherwise a
        // timestamp at the edge of the tolerance would be refused for a part of a second.
        let now = match self {
            Self::Seconds => received.now.0 - received.now.0 % 1000,
            Self::Milliseconds | Self::SecondsOrMilliseconds | Self::Rfc3339 => received.now.0,
        };
        let distance = Duration::from_millis(now.abs_diff(at));
        match distance.checked_sub(tolerance) {
            Some(by) if !by.is_zero() => {
                Err(SignatureError::Stale { by, distance, ahead: at > now })
            }
            Some(_) | None => Ok(()),
        }
    }
}
