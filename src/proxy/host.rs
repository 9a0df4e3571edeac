//! Hosts that a request may name and that an upstream may have.

use std::borrow::Cow;
use std::net::{Ipv4Addr, Ipv6Addr};

/// Why a text cannot be a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum HostError {
    /// RFC 3986, 3.2.2.
    #[error("a name, an IPv4 address or an IPv6 address in brackets")]
    NotAName,
    /// A host whose last part is a number is an IPv4 address to many parsers (WHATWG URL Standard,
    /// host parsing), and never a name.
    #[error("an IPv4 address in four decimal parts")]
    NotIpv4,
    /// RFC 3986, 3.2.2.
    #[error("an IPv6 address between the brackets")]
    NotIpv6,
    /// An IPv6 zone means something on one machine only, and must not stand in a URL (RFC 9844, 4).
    #[error("an IPv6 address without a zone, which means something on one machine alone")]
    Zone,
}

/// The canonical form of a host without its port: in lower case, without a dot at its end, an
/// address in its shortest form. Canonical hosts can be compared.
///
/// # Errors
///
/// The text cannot be a host.
pub fn canonical_host(text: &str) -> Result<Cow<'_, str>, HostError> {
    if let Some(rest) = text.strip_prefix('[') {
        let inside = rest.strip_suffix(']').ok_or(HostError::NotIpv6)?;
        // `fe80::1%25lo` names an interface of the machine that reads it.
        if inside.contains('%') {
            return Err(HostError::Zone);
        }
        let address: Ipv6Addr = inside.parse().map_err(|_| HostError::NotIpv6)?;
        // One address has many spellings. The parsed one is the same for all of them (RFC 5952).
        return Ok(Cow::Owned(format!("[{address}]")));
    }
    // A name with a dot at its end is the same name (RFC 1034, 3.1). Both spellings must reach the
    // same route.
    let name = text.strip_suffix('.').unwrap_or(text);
    // No host name has an underscore (RFC 1123, 2.1), but names in container networks do.
    let letter = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    if name.split('.').any(|label| label.is_empty() || !label.bytes().all(letter)) {
        return Err(HostError::NotAName);
    }
    // The C library reads `127.1` and `0x7f.1` as addresses. A route or an upstream would then mean
    // another host than the one that is written.
    let last = name.rsplit('.').next().unwrap_or_default();
    if is_number(last) && name.parse::<Ipv4Addr>().is_err() {
        return Err(HostError::NotIpv4);
    }
    let is_lower = !name.bytes().any(|byte| byte.is_ascii_uppercase());
    Ok(if is_lower { Cow::Borrowed(name) } else { Cow::Owned(name.to_ascii_lowercase()) })
}

/// Whether a label is a number: decimal, or hexadecimal as the C library reads it ("URL Standard",
/// 3.5).
fn is_number(label: &str) -> bool {
    match label.strip_prefix("0x").or_else(|| label.strip_prefix("0X")) {
        Some(digits) => digits.bytes().all(|byte| byte.is_ascii_hexdigit()),
        None => label.bytes().all(|byte| byte.is_ascii_digit()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_spellings_of_a_host_are_one() {
        for (text, expected) in [
            ("Hooks.Example.com", "hooks.example.com"),
            ("hooks.example.com.", "hooks.example.com"),
            ("localhost", "localhost"),
            ("my_app-1", "my_app-1"),
            ("a.1b", "a.1b"),
            ("127.0.0.1", "127.0.0.1"),
            ("[::1]", "[::1]"),
            ("[0:0:0:0:0:0:0:1]", "[::1]"),
            ("[2001:DB8::A]", "[2001:db8::a]"),
        ] {
            assert_eq!(canonical_host(text).unwrap(), expected, "{text}");
        }
    }

    #[test]
    fn a_text_that_is_no_host_says_why() {
        for (text, error) in [
            ("", HostError::NotAName),
            (".", HostError::NotAName),
            ("a..b", HostError::NotAName),
            ("a b", HostError::NotAName),
            ("é.example", HostError::NotAName),
            ("1.2.3", HostError::NotIpv4),
            ("127.1", HostError::NotIpv4),
            ("1.2.3.4.5", HostError::NotIpv4),
            ("1.2.3.256", HostError::NotIpv4),
            ("01.2.3.4", HostError::NotIpv4),
            ("2130706433", HostError::NotIpv4),
            ("a.0x7f", HostError::NotIpv4),
            ("[::g]", HostError::NotIpv6),
            ("[anything]", HostError::NotIpv6),
            ("[v1.x]", HostError::NotIpv6),
            ("[1.2.3.4]", HostError::NotIpv6),
            ("[::1", HostError::NotIpv6),
            ("[fe80::1%25lo]", HostError::Zone),
            ("[fe80::1%lo]", HostError::Zone),
        ] {
            assert_eq!(canonical_host(text), Err(error), "{text}");
        }
    }
}
