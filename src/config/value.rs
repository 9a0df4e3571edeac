//! Values as they are written: `72h`, `256KiB`, `2xx`.

use std::borrow::Cow;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use http::{HeaderName, Method};
use ipnet::IpNet;

use super::leaf::Written;
use crate::clock;
use crate::idempotency::{Remember, WhenStoreFails};
use crate::proxy::{Mode, Pointer, RefusalBody, Selector, WhenKeyMissing};
use crate::store::embedded::Durability;
use crate::upstream::{StatusRange, may_be_added};

/// `""` stands for "not set" where a setting may be switched off again.
impl<T: Written> Written for Option<T> {
    const EXPECTED: &'static str = T::EXPECTED;

    fn read(text: &str) -> Option<Self> {
        if text.is_empty() { Some(None) } else { T::read(text).map(Some) }
    }

    fn expected(text: &str) -> Cow<'static, str> {
        T::expected(text)
    }
}

impl Written for String {
    const EXPECTED: &'static str = "a text that is not empty";

    fn read(text: &str) -> Option<Self> {
        (!text.trim().is_empty()).then(|| text.to_owned())
    }
}

impl Written for PathBuf {
    const EXPECTED: &'static str = "a path";

    fn read(text: &str) -> Option<Self> {
        (!text.is_empty() && !text.contains('\0')).then(|| Self::from(text))
    }
}

impl Written for Duration {
    const EXPECTED: &'static str = "a duration such as `500ms`, `30s`, `5m`, `72h` or `30d`";

    fn read(text: &str) -> Option<Self> {
        clock::duration(text)
    }
}

/// How a value is written that a person wrote in another way: `3 days`, `10 mb`, `127.0.0.1`.
pub(super) fn meant(expected: &str, text: &str) -> Option<String> {
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

/// A number of bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Size(pub(super) usize);

/// Not `bytesize`: it takes a plain number, and rounds a broken one.
impl Written for Size {
    const EXPECTED: &'static str = "a size such as `256KiB`, `1MiB` or `2GB`";

    fn read(text: &str) -> Option<Self> {
        let (number, unit) = number_and_unit(text)?;
        let bytes = match unit {
            "B" => 1,
            "KB" => 1_000,
            "MB" => 1_000_000,
            "GB" => 1_000_000_000,
            "KiB" => 1 << 10,
            "MiB" => 1 << 20,
            "GiB" => 1 << 30,
            _ => return None,
        };
        usize::try_from(number.checked_mul(bytes)?).ok().map(Self).filter(|size| *size <= LARGEST)
    }
}

/// Four tebibytes, where a machine has so many: above every memory, below every overflow.
const LARGEST: Size = Size(usize::MAX >> 22);

fn number_and_unit(text: &str) -> Option<(u64, &str)> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at_checked(digits)?;
    Some((number.parse().ok()?, unit))
}

impl Written for SocketAddr {
    const EXPECTED: &'static str = "an address and port such as `127.0.0.1:8080` or `[::1]:8080`";

    fn read(text: &str) -> Option<Self> {
        text.parse().ok()
    }
}

impl Written for IpNet {
    const EXPECTED: &'static str = "a network such as `10.0.0.0/8` or `fd00::/8`";

    fn read(text: &str) -> Option<Self> {
        text.parse().ok()
    }
}

impl Written for HeaderName {
    const EXPECTED: &'static str = "the name of a header such as `x-idempotency-key`";

    fn read(text: &str) -> Option<Self> {
        text.parse().ok()
    }
}

/// A header that is added to the upstream's request.
#[derive(Debug)]
pub(super) struct AddedHeader(pub(super) HeaderName);

impl Written for AddedHeader {
    const EXPECTED: &'static str = "the name of a header of its own such as `idempotency-key`, not one \
                                    that says how a request is framed, where it goes or what it is";

    fn read(text: &str) -> Option<Self> {
        text.parse().ok().filter(may_be_added).map(Self)
    }
}

impl Written for Method {
    const EXPECTED: &'static str = "a method in capitals such as `POST`";

    fn read(text: &str) -> Option<Self> {
        let method = Self::from_bytes(text.as_bytes()).ok()?;
        let capitals = !text.bytes().any(|byte| byte.is_ascii_lowercase());
        (capitals && method != Self::CONNECT).then_some(method)
    }
}

impl Written for Selector {
    const EXPECTED: &'static str = "`header:NAME`, `json:/pointer`, `form:FIELD`, `query:NAME`, \
                                    `signature:NAME` or `body`, several with `|` between them, \
                                    with `?` behind it where it may be absent";

    fn read(text: &str) -> Option<Self> {
        text.parse().ok()
    }
}

/// A member of a JSON body, written as a selector is.
impl Written for Pointer {
    const EXPECTED: &'static str = "a JSON member such as `json:/pending_webhooks`";

    fn read(text: &str) -> Option<Self> {
        text.strip_prefix("json:")?.parse().ok()
    }
}

impl Written for StatusRange {
    const EXPECTED: &'static str = "a status from 200 to 599 such as `2xx` or `504`";

    fn read(text: &str) -> Option<Self> {
        let class = text.strip_suffix("xx").filter(|class| class.len() == 1);
        let (first, last) = match class {
            Some(class) => {
                let hundreds = class.parse::<u16>().ok()? * 100;
                (hundreds, hundreds + 99)
            }
            None if text.len() == 3 => (text.parse().ok()?, text.parse().ok()?),
            None => return None,
        };
        (first >= 200 && last <= 599).then_some(Self { first, last })
    }
}

/// What a fingerprint is over, one item of it.
#[derive(Debug)]
pub(super) enum Over {
    Auto,
    Body,
    Part(Selector),
}

impl Written for Over {
    const EXPECTED: &'static str = "`auto`, `body`, or a selector such as `json:/amount`";

    fn read(text: &str) -> Option<Self> {
        match text {
            "auto" => Some(Self::Auto),
            "body" => Some(Self::Body),
            _ => Selector::read(text).map(Self::Part),
        }
    }
}

/// What a copy does that meets an attempt in flight.
#[derive(Debug, Clone, Copy)]
pub(super) enum InFlightWord {
    Refuse,
    Wait,
}

impl Written for InFlightWord {
    const EXPECTED: &'static str = "`refuse` or `wait`";

    fn read(text: &str) -> Option<Self> {
        match text {
            "refuse" => Some(Self::Refuse),
            "wait" => Some(Self::Wait),
            _ => None,
        }
    }
}

/// What becomes of an operation whose outcome is unknown.
#[derive(Debug, Clone, Copy)]
pub(super) enum UncertainWord {
    Hold,
    LookUp,
    Retry,
}

impl Written for UncertainWord {
    const EXPECTED: &'static str = "`hold`, `lookup` or `retry`";

    fn read(text: &str) -> Option<Self> {
        match text {
            "hold" => Some(Self::Hold),
            "lookup" => Some(Self::LookUp),
            "retry" => Some(Self::Retry),
            _ => None,
        }
    }
}

impl Written for WhenKeyMissing {
    const EXPECTED: &'static str = "`refuse`, `forward` or `hash-body`";

    fn read(text: &str) -> Option<Self> {
        match text {
            "refuse" => Some(Self::Refuse),
            "forward" => Some(Self::Forward),
            "hash-body" => Some(Self::HashBody),
            _ => None,
        }
    }
}

impl Written for RefusalBody {
    const EXPECTED: &'static str = "`problem` or `none`";

    fn read(text: &str) -> Option<Self> {
        match text {
            "problem" => Some(Self::Problem),
            "none" => Some(Self::None),
            _ => None,
        }
    }
}

impl Written for Mode {
    const EXPECTED: &'static str = "`enforce`, `observe` or `pass`";

    fn read(text: &str) -> Option<Self> {
        match text {
            "enforce" => Some(Self::Enforce),
            "observe" => Some(Self::Observe),
            "pass" => Some(Self::Pass),
            _ => None,
        }
    }
}

impl Written for Remember {
    const EXPECTED: &'static str = "`retention` or `in-flight`";

    fn read(text: &str) -> Option<Self> {
        match text {
            "retention" => Some(Self::Retention),
            "in-flight" => Some(Self::InFlight),
            _ => None,
        }
    }
}

impl Written for WhenStoreFails {
    const EXPECTED: &'static str = "`refuse` or `forward`";

    fn read(text: &str) -> Option<Self> {
        match text {
            "refuse" => Some(Self::Refuse),
            "forward" => Some(Self::Forward),
            _ => None,
        }
    }
}

impl Written for Durability {
    const EXPECTED: &'static str = "`sync` or `os`";

    fn read(text: &str) -> Option<Self> {
        match text {
            "sync" => Some(Self::Sync),
            "os" => Some(Self::Os),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_is_a_whole_number_and_a_unit() {
        let read = |text| Duration::read(text).map(|duration| duration.as_millis());
        assert_eq!(read("500ms"), Some(500));
        assert_eq!(read("30s"), Some(30_000));
        assert_eq!(read("5m"), Some(300_000));
        assert_eq!(read("72h"), Some(259_200_000));
        assert_eq!(read("30d"), Some(2_592_000_000));
        assert_eq!(read("0s"), Some(0));
        for refused in [
            "",
            "30",
            "s",
            "30 s",
            " 30s",
            "30M",
            "3 days",
            "1.5s",
            "-1s",
            "+1s",
            "1h30m",
            "3651d",
            "18446744073709551615d",
            "99999999999999999999s",
        ] {
            assert_eq!(read(refused), None, "{refused}");
        }
    }

    #[test]
    fn a_size_is_a_whole_number_and_a_unit() {
        let read = |text| Size::read(text).map(|size| size.0);
        assert_eq!(read("0B"), Some(0));
        assert_eq!(read("256KiB"), Some(262_144));
        assert_eq!(read("1MiB"), Some(1_048_576));
        assert_eq!(read("2GiB"), Some(2_147_483_648));
        assert_eq!(read("1KB"), Some(1_000));
        assert_eq!(read("1MB"), Some(1_000_000));
        assert_eq!(read("1GB"), Some(1_000_000_000));
        for refused in
            ["", "256", "KiB", "1 KiB", "1kib", "1.5MiB", "-1B", "18446744073709551615GiB"]
        {
            assert_eq!(read(refused), None, "{refused}");
        }
    }

    #[test]
    fn a_status_is_one_or_a_hundred() {
        let read = |text| StatusRange::read(text).map(|range| (range.first, range.last));
        assert_eq!(read("2xx"), Some((200, 299)));
        assert_eq!(read("5xx"), Some((500, 599)));
        assert_eq!(read("409"), Some((409, 409)));
        for refused in
            ["", "xx", "1xx", "6xx", "22xx", "2XX", "+20", "40", "4090", "100", "600", "éxx"]
        {
            assert_eq!(read(refused), None, "{refused}");
        }
    }

    #[test]
    fn a_method_is_in_capitals_and_no_tunnel() {
        assert_eq!(Method::read("PROPFIND").unwrap(), "PROPFIND");
        for refused in ["", "post", "Post", "PO ST", "CONNECT"] {
            assert_eq!(Method::read(refused), None, "{refused}");
        }
    }
}
