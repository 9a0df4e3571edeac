//! Values that a hint proposes: one that helps, instead of "more" or "less".

use std::borrow::Cow;
use std::time::Duration;

use crate::config::quantity::short;
use crate::provider::{Facts, Provider, preset};

/// Proposes a value; if the sender has a preset, leaving the setting to it would help as well.
pub(super) fn set(sender: &Provider, setting: &str, value: &str) -> Cow<'static, str> {
    let preset = if preset(&sender.name).is_some() { ", or leave it to the preset" } else { "" };
    format!("`{setting} = {value}`{preset}").into()
}

/// The next whole day after a time, as TOML writes it.
pub(super) fn longer_than(window: Duration) -> String {
    const DAY: u64 = 24 * 60 * 60;
    format!("\"{}\"", short(Duration::from_secs((window.as_secs() / DAY + 1) * DAY)))
}

/// A fifth less than a time, as TOML writes it; in whole seconds from one second on.
pub(super) fn shorter_than(patience: Duration) -> String {
    // The rest is for the way of the request and of the answer.
    let shorter = patience * 4 / 5;
    let whole = Duration::from_secs(shorter.as_secs());
    format!("\"{}\"", short(if whole.is_zero() { shorter } else { whole }))
}

/// A size that holds so many bytes, as TOML writes it.
pub(super) fn size_for(bytes: usize) -> String {
    const KIB: usize = 1 << 10;
    const MIB: usize = 1 << 20;
    if bytes < MIB {
        format!("\"{}KiB\"", bytes.div_ceil(KIB))
    } else {
        format!("\"{}MiB\"", bytes.div_ceil(MIB))
    }
}

/// The first of these statuses after which the sender is known to try again, or else the first.
pub(super) fn retried(facts: &Facts, statuses: &[u16]) -> String {
    let mut retried = statuses.iter().filter(|status| facts.retries_after(**status) == Some(true));
    retried.next().or(statuses.first()).map_or_else(|| "503".to_owned(), u16::to_string)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_that_is_proposed_is_on_the_right_side() {
        let hours = Duration::from_hours;
        assert_eq!([8, 24, 28].map(|h| longer_than(hours(h))), ["\"1d\"", "\"2d\"", "\"2d\""]);
        let patience = [500, 3_000, 10_000].map(Duration::from_millis);
        assert_eq!(patience.map(shorter_than), ["\"400ms\"", "\"2s\"", "\"8s\""]);
        let sizes = [1, 262_144, 262_145, 3 << 20];
        assert_eq!(sizes.map(size_for), ["\"1KiB\"", "\"256KiB\"", "\"257KiB\"", "\"3MiB\""]);
        let facts = Facts { retried: Some(vec![429..=429]), ..Facts::default() };
        assert_eq!(retried(&facts, &[503, 429]), "429");
        assert_eq!(retried(&Facts::default(), &[503, 429]), "503");
    }
}
