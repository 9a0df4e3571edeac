//! The text before a signature, such as `sha256=` or `v1=`.

use std::fmt;

/// A literal, in which one `*` stands for a name of letters, digits, `-`, `_` and `.`. Worldpay
/// writes `3/SHA256/…`, where 3 is the number of the key, which grows with each renewal ("Event
/// signature", docs.worldpay.com).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Prefix {
    before: String,
    /// The literal after the name. None: there is no name.
    after: Option<String>,
}

impl Prefix {
    pub(super) const EXPECTED: &'static str = "a text with at most one `*`";

    pub(super) fn read(text: &str) -> Option<Self> {
        let (before, after) = match text.split_once('*') {
            // Without a literal after it, the name would take in the signature.
            Some((_, after)) if after.is_empty() || after.contains('*') => return None,
            Some((before, after)) => (before, Some(after.to_owned())),
            None => (text, None),
        };
        Some(Self { before: before.to_owned(), after })
    }

    /// The text after the prefix. None if the entry begins with another text.
    pub(super) fn strip<'a>(&self, entry: &'a [u8]) -> Option<&'a [u8]> {
        let rest = entry.strip_prefix(self.before.as_bytes())?;
        let Some(after) = &self.after else {
            return Some(rest);
        };
        let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_.".contains(byte);
        let name = rest.iter().take_while(|byte| is_name(byte)).count();
        let rest = rest.get(name..).filter(|_| name > 0)?;
        rest.strip_prefix(after.as_bytes())
    }
}

impl fmt::Display for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.before)?;
        self.after.as_ref().map_or(Ok(()), |after| write!(f, "*{after}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stands_for_one_name() {
        let prefix = Prefix::read("*/SHA256/").unwrap();
        assert_eq!(prefix.strip(b"12/SHA256/ab"), Some(&b"ab"[..]));
        for other in [&b"/SHA256/ab"[..], b"1/SHA1/ab", b"1/2/SHA256/ab", b"ab", b""] {
            assert_eq!(prefix.strip(other), None, "{other:?}");
        }
        assert_eq!(prefix.to_string(), "*/SHA256/");
        assert_eq!(Prefix::read("v1=").unwrap().strip(b"v1=ab"), Some(&b"ab"[..]));
        for unreadable in ["*", "a*", "*/*/"] {
            assert_eq!(Prefix::read(unreadable), None, "{unreadable}");
        }
    }
}
