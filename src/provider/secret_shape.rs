//! What the secrets of a sender look like, as far as the sender says so itself.
//!
//! A secret that was copied with a blank, or that is another one of the same sender, refuses every
//! event, and nothing else tells why.

use std::fmt;
use std::ops::RangeInclusive;

/// What is known of a sender's secrets. What is not published is left open.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SecretShape {
    /// With which of these they begin; none: with anything.
    pub prefixes: Vec<String>,
    /// How many characters they have.
    pub length: Option<RangeInclusive<usize>>,
    /// Of which characters they are.
    pub letters: Option<Letters>,
}

/// Of which characters a secret is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Letters {
    /// Hexadecimal digits.
    Hex,
    /// Letters of ASCII, digits, `_` and `-`.
    UrlSafe,
}

/// Why a secret is most likely not the one that is meant. Says nothing of what is in it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Misshapen {
    /// White space at one of its ends.
    #[error("begins or ends with a blank")]
    Blank,
    /// Quotes around it, or at one end.
    #[error("begins or ends with a quote")]
    Quote,
    /// A line break or another character that is not shown.
    #[error("has a control character in it, such as a line break")]
    Control,
    /// White space in a secret that a sender makes.
    #[error("has a blank in it")]
    BlankInside,
    /// It begins in another way than those of its sender.
    #[error("does not begin with {0}")]
    Prefix(String),
    /// It is longer or shorter than those of its sender.
    #[error("does not have {0}")]
    Length(String),
    /// It has other characters than those of its sender.
    #[error("does not have {0}")]
    Letters(Letters),
}

impl Misshapen {
    /// A stable word for it.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Blank => "secret-with-blanks-around",
            Self::Quote => "secret-with-quotes",
            Self::Control => "secret-with-control-characters",
            Self::BlankInside => "secret-with-blanks-inside",
            Self::Prefix(_) => "secret-prefix",
            Self::Length(_) => "secret-length",
            Self::Letters(_) => "secret-characters",
        }
    }

    /// Whether it came with the secret when that was copied; else the secret is another one.
    pub const fn was_added(&self) -> bool {
        match self {
            Self::Blank | Self::Quote | Self::Control | Self::BlankInside => true,
            Self::Prefix(_) | Self::Length(_) | Self::Letters(_) => false,
        }
    }
}

impl Letters {
    fn has(self, letter: char) -> bool {
        match self {
            Self::Hex => letter.is_ascii_hexdigit(),
            Self::UrlSafe => letter.is_ascii_alphanumeric() || letter == '_' || letter == '-',
        }
    }
}

impl fmt::Display for Letters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Hex => "hexadecimal digits alone",
            Self::UrlSafe => "the characters `A-Z`, `a-z`, `0-9`, `_` and `-` alone",
        })
    }
}

impl SecretShape {
    /// What no secret has at its ends or in it. A public key in PEM has lines.
    pub fn surroundings(secret: &str) -> Option<Misshapen> {
        let is_quote = |c| matches!(c, '"' | '\'' | '`' | '\u{201c}' | '\u{201d}');
        if secret.contains("-----BEGIN ") {
            None
        } else if secret.trim() != secret {
            Some(Misshapen::Blank)
        } else if secret.starts_with(is_quote) || secret.ends_with(is_quote) {
            Some(Misshapen::Quote)
        } else if secret.contains(|c: char| c.is_control()) {
            Some(Misshapen::Control)
        } else {
            None
        }
    }

    /// What is most likely wrong with a secret; none: it may be right.
    pub fn misshapen(&self, secret: &str) -> Option<Misshapen> {
        Self::surroundings(secret).or_else(|| self.not_of_the_sender(secret))
    }

    fn not_of_the_sender(&self, secret: &str) -> Option<Misshapen> {
        let is_made = !self.prefixes.is_empty() || self.letters.is_some();
        let has_prefix = |prefix: &String| secret.starts_with(prefix);
        let count = secret.chars().count();
        if is_made && secret.contains(char::is_whitespace) {
            return Some(Misshapen::BlankInside);
        }
        if !self.prefixes.is_empty() && !self.prefixes.iter().any(has_prefix) {
            let named: Vec<String> = self.prefixes.iter().map(|it| format!("`{it}`")).collect();
            return Some(Misshapen::Prefix(named.join(" or ")));
        }
        if let Some(length) = self.length.as_ref().filter(|length| !length.contains(&count)) {
            let (least, most) = (length.start(), length.end());
            let counts =
                if least == most { least.to_string() } else { format!("{least} to {most}") };
            return Some(Misshapen::Length(format!("{counts} characters")));
        }
        let letters = self.letters?;
        (!secret.chars().all(|c| letters.has(c))).then_some(Misshapen::Letters(letters))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_copied_along_with_a_secret_is_noticed() {
        let open = SecretShape::default();
        for (secret, code) in [
            (" a", "secret-with-blanks-around"),
            ("a\r", "secret-with-blanks-around"),
            ("a\n", "secret-with-blanks-around"),
            ("\u{a0}a", "secret-with-blanks-around"),
            ("\"a\"", "secret-with-quotes"),
            ("'a", "secret-with-quotes"),
            ("a\nb", "secret-with-control-characters"),
            ("a\0b", "secret-with-control-characters"),
        ] {
            assert_eq!(open.misshapen(secret).unwrap().code(), code, "{secret:?}");
        }
        for secret in ["a", "a b", "a\"b", "é", "-----BEGIN PUBLIC KEY-----\nMII\n"] {
            assert_eq!(open.misshapen(secret), None, "{secret:?}");
        }
    }

    #[test]
    fn a_secret_of_another_kind_is_noticed() {
        let shape = SecretShape {
            prefixes: vec!["whsec_".to_owned(), "wh_".to_owned()],
            length: Some(8..=10),
            letters: Some(Letters::UrlSafe),
        };
        let told = |secret: &str| shape.misshapen(secret).map(|it| it.to_string());
        assert_eq!(told("whsec_12"), None);
        assert_eq!(told("sk_live_").unwrap(), "does not begin with `whsec_` or `wh_`");
        assert_eq!(told("whsec_1").unwrap(), "does not have 8 to 10 characters");
        assert_eq!(told("whsec_1 2").unwrap(), "has a blank in it");
        // One that a person chooses may have a blank in it, however long it has to be.
        let chosen = SecretShape { length: Some(6..=40), ..Default::default() };
        assert_eq!(chosen.misshapen("any words"), None);
        assert!(told("whsec_1+2").unwrap().starts_with("does not have the characters"));
        let hex =
            SecretShape { letters: Some(Letters::Hex), length: Some(4..=4), ..Default::default() };
        assert_eq!(hex.misshapen("0aF9"), None);
        assert_eq!(hex.misshapen("0a").unwrap().to_string(), "does not have 4 characters");
        assert_eq!(hex.misshapen("xyzz").unwrap().code(), "secret-characters");
    }
}
