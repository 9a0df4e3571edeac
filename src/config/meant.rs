//! What a person most likely meant by a value that cannot be read.

use std::net::IpAddr;
use std::time::Duration;

use figment::value::Value;
use ipnet::IpNet;

use super::leaf::FromText;
use super::quantity::{Size, number_and_unit, short};
use super::url::READ_ALIKE;
use crate::proxy::PathPattern;

/// Says how a value is written that a person wrote in another way: `"30s"` for the number `30`,
/// `3d` for `3 days`. What was expected tells what kind of value it is.
pub(super) fn meant_by(expected: &str, value: &Value) -> Option<String> {
    match value {
        Value::String(_, text) => meant_by_text(expected, text),
        Value::Num(_, number) => {
            let digits = number.to_i128()?.to_string();
            let written = written(expected, &digits)?;
            let is_duration = expected == <Duration as FromText>::EXPECTED;
            let others =
                if is_duration { " for seconds; `m`, `h` and `d` are other units" } else { "" };
            Some(format!("write `\"{written}\"`{others}"))
        }
        Value::Char(..)
        | Value::Bool(..)
        | Value::Empty(..)
        | Value::Dict(..)
        | Value::Array(..) => None,
    }
}

fn meant_by_text(expected: &str, text: &str) -> Option<String> {
    if expected == READ_ALIKE {
        let plainest = PathPattern::plainest(text)?;
        return Some(format!("write `{plainest}`, which is how some receivers read it"));
    }
    written(expected, text.trim()).map(|written| format!("write `{written}`"))
}

fn written(expected: &str, text: &str) -> Option<String> {
    if expected == <Duration as FromText>::EXPECTED {
        // What is proposed must be taken when it is written.
        duration_meant(text).filter(|meant| Duration::from_text(meant).is_some())
    } else if expected == <Size as FromText>::EXPECTED {
        size_meant(text).filter(|meant| Size::from_text(meant).is_some())
    } else if expected == <IpNet as FromText>::EXPECTED {
        // An address alone is the network that has no other address.
        let address: IpAddr = text.parse().ok()?;
        Some(IpNet::from(address).to_string())
    } else {
        None
    }
}

fn duration_meant(text: &str) -> Option<String> {
    if let Some((whole, rest)) = text.split_once('.') {
        return with_fraction(whole, rest);
    }
    let (number, word) = number_and_unit(text)?;
    let unit = match word.trim().to_ascii_lowercase().as_str() {
        "ms" | "msec" | "millis" | "millisecond" | "milliseconds" => "ms",
        // Most programs take a time without a unit as seconds.
        "s" | "sec" | "secs" | "second" | "seconds" | "" => "s",
        "m" | "min" | "mins" | "minute" | "minutes" => "m",
        "h" | "hr" | "hrs" | "hour" | "hours" => "h",
        "d" | "day" | "days" => "d",
        // A week and a year are not units, since a year has no fixed length.
        "w" | "week" | "weeks" => return Some(format!("{}d", number.checked_mul(7)?)),
        "y" | "year" | "years" => return Some(format!("{}d", number.checked_mul(365)?)),
        _ => return None,
    };
    Some(format!("{number}{unit}"))
}

/// A duration with a fraction, in the unit that makes it whole: `90s` for `1.5m`.
fn with_fraction(whole: &str, rest: &str) -> Option<String> {
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    let (fraction, word) = rest.split_at_checked(digits)?;
    let one = Duration::from_text(&duration_meant(&format!("1{word}"))?)?;
    // In whole numbers, since a float would turn `0.1` into something else.
    let of_fraction: u64 = fraction.parse().ok()?;
    let parts = 10_u64.checked_pow(u32::try_from(digits).ok()?)?;
    let millis = u64::try_from(one.as_millis()).ok()?;
    let all = whole.parse::<u64>().ok()?.checked_mul(millis)?;
    let all = all.checked_add(of_fraction.checked_mul(millis)?.checked_div(parts)?)?;
    Some(short(Duration::from_millis(all)))
}

fn size_meant(text: &str) -> Option<String> {
    let (number, word) = number_and_unit(text)?;
    let unit = match word.trim().to_ascii_lowercase().as_str() {
        "b" | "byte" | "bytes" | "" => "B",
        "k" | "kb" => "KB",
        "m" | "mb" => "MB",
        "g" | "gb" => "GB",
        "ki" | "kib" => "KiB",
        "mi" | "mib" => "MiB",
        "gi" | "gib" => "GiB",
        _ => return None,
    };
    Some(format!("{number}{unit}"))
}
