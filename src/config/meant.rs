//! What a person most likely meant by a value that is none.

use std::net::IpAddr;
use std::time::Duration;

use ipnet::IpNet;

use super::leaf::Written;
use super::quantity::{Size, number_and_unit};
use super::url::READ_ALIKE;
use crate::proxy::PathPattern;

/// How a value is written that a person wrote in another way: `3 days`, `10 mb`, `127.0.0.1`.
pub(super) fn meant(expected: &str, text: &str) -> Option<String> {
    if expected == READ_ALIKE {
        let plainest = PathPattern::plainest(text)?;
        return Some(format!("write `{plainest}`, which is how some receivers read it"));
    }
    let text = text.trim();
    let written = if expected == <Duration as Written>::EXPECTED {
        duration_meant(text).filter(|meant| Duration::read(meant).is_some())
    } else if expected == <Size as Written>::EXPECTED {
        size_meant(text).filter(|meant| Size::read(meant).is_some())
    } else if expected == <IpNet as Written>::EXPECTED {
        let address: IpAddr = text.parse().ok()?;
        Some(IpNet::from(address).to_string())
    } else {
        None
    };
    written.map(|written| format!("write `{written}`"))
}

fn duration_meant(text: &str) -> Option<String> {
    let (number, word) = number_and_unit(text)?;
    let unit = match word.trim().to_ascii_lowercase().as_str() {
        "ms" | "msec" | "millis" | "millisecond" | "milliseconds" => "ms",
        "s" | "sec" | "secs" | "second" | "seconds" | "" => "s",
        "m" | "min" | "mins" | "minute" | "minutes" => "m",
        "h" | "hr" | "hrs" | "hour" | "hours" => "h",
        "d" | "day" | "days" => "d",
        "w" | "week" | "weeks" => return Some(format!("{}d", number.checked_mul(7)?)),
        "y" | "year" | "years" => return Some(format!("{}d", number.checked_mul(365)?)),
        _ => return None,
    };
    Some(format!("{number}{unit}"))
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
