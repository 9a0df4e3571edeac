//! Numbers with a unit: `72h` and `256KiB`.

use std::borrow::Cow;
use std::time::Duration;

use super::leaf::FromText;
use crate::clock;

impl FromText for Duration {
    const EXPECTED: &'static str = "a duration such as `500ms`, `30s`, `5m`, `72h` or `30d`";

    fn from_text(text: &str) -> Option<Self> {
        clock::parse_duration(text)
    }

    fn expected_for(text: &str) -> Cow<'static, str> {
        // Zero of the same unit is a duration, so that only the number is too large.
        let unit = number_and_unit(text).map(|(_, unit)| unit);
        if unit.is_some_and(|unit| clock::parse_duration(&format!("0{unit}")).is_some()) {
            return format!("a duration of at most `{}`", short(clock::LONGEST)).into();
        }
        Self::EXPECTED.into()
    }
}

/// A number of bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Size(pub(super) usize);

/// The crate `bytesize` would take a plain number too, and round a broken one.
impl FromText for Size {
    const EXPECTED: &'static str = "a size such as `256KiB`, `1MiB` or `2GB`";

    fn from_text(text: &str) -> Option<Self> {
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

/// The largest size, which is 4 TiB on a machine with 64 bits. It is more than any memory, and sums
/// of sizes do not overflow.
const LARGEST: Size = Size(usize::MAX >> 22);

/// Divides a text behind its leading digits.
pub(super) fn number_and_unit(text: &str) -> Option<(u64, &str)> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at_checked(digits)?;
    Some((number.parse().ok()?, unit))
}

/// A duration in the largest unit that keeps it whole.
pub(super) fn short(duration: Duration) -> String {
    let units = [(86_400_000, "d"), (3_600_000, "h"), (60_000, "m"), (1_000, "s")];
    let millis = duration.as_millis();
    let whole = units.into_iter().find(|(unit, _)| millis > 0 && millis.is_multiple_of(*unit));
    whole.map_or_else(|| format!("{millis}ms"), |(unit, name)| format!("{}{name}", millis / unit))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_is_a_whole_number_and_a_unit() {
        let read = |text| Duration::from_text(text).map(|duration| duration.as_millis());
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
        let read = |text| Size::from_text(text).map(|size| size.0);
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
    fn a_duration_is_short_and_whole() {
        for (millis, text) in [
            (0, "0ms"),
            (1_500, "1500ms"),
            (8_000, "8s"),
            (90_000, "90s"),
            (79 * 3_600_000, "79h"),
            (31 * 86_400_000, "31d"),
        ] {
            assert_eq!(short(Duration::from_millis(millis)), text);
        }
    }
}
