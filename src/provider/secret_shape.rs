//! The shape of a sender's secrets, as far as the sender publishes it.
//!
//! A secret that was copied with a blank, or another secret of the same sender, refuses every
//! event, and the signature cannot say why. So `onceward check` warns of a secret of another shape.
//! It does not refuse it: a sender may change the shape.

use std::fmt;
use std::ops::RangeInclusive;

/// The published shape of a sender's secrets. What is not published is left open.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SecretShape {
    /// A secret begins with one of these. Empty: with anything.
    pub prefixes: Vec<String>,
    /// The number of characters.
    pub length: Option<RangeInclusive<usize>>,
    /// The characters of which a secret consists.
    pub letters: Option<Alphabet>,
}

/// The characters of which a secret consists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Alphabet {
    /// Hexadecimal digits.
    Hex,
    /// Letters of ASCII, digits, `_` and `-`.
    UrlSafe,
}

/// Why a secret is most likely not the right one. It names no character of the secret, because it
/// is printed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SecretFlaw {
    /// White space at one of its ends.
    #[error("begins or ends with a blank")]
    Blank,
    /// Quotes around it, or at one end.
    #[error("begins or ends with a quote")]
    Quote,
    /// A line break or another character that is not shown.
    #[error("has a control character in it, such as a line break")]
    Control,
    /// A text that stands for a secret in examples.
    #[error("looks like a placeholder")]
    Placeholder,
    /// White space in a secret that a sender makes.
    #[error("has a blank in it")]
    BlankInside,
    /// It begins with another text than the secrets of its sender.
    #[error("does not begin with {0}")]
    Prefix(String),
    /// It is longer or shorter than the secrets of its sender.
    #[error("does not have {0}")]
    Length(String),
    /// It has other characters than the secrets of its sender.
    #[error("does not have {0}")]
    Alphabet(Alphabet),
}

impl SecretFlaw {
    /// A stable word for it.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Blank => "secret-with-blanks-around",
            Self::Quote => "secret-with-quotes",
            Self::Control => "secret-with-control-characters",
            Self::Placeholder => "secret-placeholder",
            Self::BlankInside => "secret-with-blanks-inside",
            Self::Prefix(_) => "secret-prefix",
            Self::Length(_) => "secret-length",
            Self::Alphabet(_) => "secret-characters",
        }
    }

    /// Whether something was copied along with the secret. Otherwise it is another secret.
    pub const fn was_added(&self) -> bool {
        match self {
            Self::Blank | Self::Quote | Self::Control | Self::BlankInside => true,
            Self::Placeholder | Self::Prefix(_) | Self::Length(_) | Self::Alphabet(_) => false,
        }
    }
}

impl Alphabet {
    fn has(self, letter: char) -> bool {
        match self {
            Self::Hex => letter.is_ascii_hexdigit(),
            Self::UrlSafe => letter.is_ascii_alphanumeric() || letter == '_' || letter == '-',
        }
    }
}

impl fmt::Display for Alphabet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Hex => "hexadecimal digits alone",
            Self::UrlSafe => "the characters `A-Z`, `a-z`, `0-9`, `_` and `-` alone",
        })
    }
}

impl SecretShape {
    /// The first flaw that no secret of any sender has. A public key in PEM is exempt, because it
    /// has several lines.
    pub fn surroundings(secret: &str) -> Option<SecretFlaw> {
        // Word processors and chat programs replace straight quotes by curly ones.
        let is_quote = |c| matches!(c, '"' | '\'' | '`' | '\u{201c}' | '\u{201d}');
        if secret.contains("-----BEGIN ") {
            None
        } else if secret.trim() != secret {
            Some(SecretFlaw::Blank)
        } else if secret.starts_with(is_quote) || secret.ends_with(is_quote) {
            Some(SecretFlaw::Quote)
        } else if secret.contains(|c: char| c.is_control()) {
            Some(SecretFlaw::Control)
        } else if is_placeholder(secret) {
            Some(SecretFlaw::Placeholder)
        } else {
            None
        }
    }

    /// The first flaw of a secret. None: it may be right.
    pub fn misshapen(&self, secret: &str) -> Option<SecretFlaw> {
        Self::surroundings(secret).or_else(|| self.not_of_the_sender(secret))
    }

    fn not_of_the_sender(&self, secret: &str) -> Option<SecretFlaw> {
        // A secret that its sender makes has no blank in it. One that a person chooses may have.
        let is_made = !self.prefixes.is_empty() || self.letters.is_some();
        let has_prefix = |prefix: &String| secret.starts_with(prefix);
        let count = secret.chars().count();
        if is_made && secret.contains(char::is_whitespace) {
            return Some(SecretFlaw::BlankInside);
        }
        if !self.prefixes.is_empty() && !self.prefixes.iter().any(has_prefix) {
            let named: Vec<String> = self.prefixes.iter().map(|it| format!("`{it}`")).collect();
            return Some(SecretFlaw::Prefix(named.join(" or ")));
        }
        if let Some(length) = self.length.as_ref().filter(|length| !length.contains(&count)) {
            let least = length.start();
            let most = length.end();
            let counts =
                if least == most { least.to_string() } else { format!("{least} to {most}") };
            return Some(SecretFlaw::Length(format!("{counts} characters")));
        }
        let letters = self.letters?;
        (!secret.chars().all(|c| letters.has(c))).then_some(SecretFlaw::Alphabet(letters))
    }
}

/// Words that stand for a secret in examples, without what may stand between their parts.
const PLACEHOLDERS: [&str; 4] = ["changeme", "replaceme", "placeholder", "yoursecret"];

/// Whether a text is not a secret but stands for one, such as `whsec_...`, `<secret>` or
/// `change-me`.
fn is_placeholder(text: &str) -> bool {
    let letters = text.chars().filter(|letter| !matches!(letter, '_' | '-' | ' '));
    let word = letters.collect::<String>().to_lowercase();
    text.ends_with("...")
        || text.ends_with('\u{2026}')
        || text.starts_with('<') && text.ends_with('>')
        || PLACEHOLDERS.iter().any(|placeholder| word.contains(placeholder))
}

/// Beginnings of secrets, and of nothing else that anybody writes.
const BEGINNINGS: [&str; 3] = ["whsec_", "pdl_ntfset_", "-----BEGIN "];

/// Beginnings of secrets that an ordinary name may have too.
const SHORT_BEGINNINGS: [&str; 2] = ["sk_", "wsk_"];

/// An ordinary word is shorter than the last part of a secret, and has no digit in it.
const SECRET_WORD_MIN: usize = 16;

/// Whether a text is most likely a secret. People paste one where a name or another value belongs,
/// and messages show names and values.
pub fn looks_like_a_secret(text: &str) -> bool {
    let has_short = SHORT_BEGINNINGS.iter().any(|beginning| text.starts_with(beginning));
    let last_word = text.rsplit(['_', '-']).next().unwrap_or_default();
    let is_long =
        last_word.len() >= SECRET_WORD_MIN && last_word.contains(|c: char| c.is_ascii_digit());
    BEGINNINGS.iter().any(|beginning| text.contains(beginning)) || has_short && is_long
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::provider::presets;

    #[test]
    fn a_text_that_begins_as_secrets_do_looks_like_one() {
        for secret in
            ["whsec_abc", "\"whsec_abc", "sk_live_0123456789abcdef", "-----BEGIN PRIVATE KEY-----"]
        {
            assert!(looks_like_a_secret(secret), "{secret}");
        }
        for name in ["", "orders", "sk_orders_production_2", "shop-eu", "http://a/0123456789abcdef"]
        {
            assert!(!looks_like_a_secret(name), "{name}");
        }
    }

    #[test]
    fn the_secrets_of_every_sender_that_has_a_beginning_of_its_own_are_known() {
        let known = [&BEGINNINGS[..], &SHORT_BEGINNINGS].concat();
        for preset in presets() {
            let table: toml::Table = preset.toml.parse().unwrap();
            let beginnings = table["facts"].get("secret_prefix").and_then(|it| it.as_array());
            for beginning in beginnings.into_iter().flatten() {
                assert!(
                    known.contains(&beginning.as_str().unwrap()),
                    "{}: {beginning}",
                    preset.name
                );
            }
        }
    }

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
            ("whsec_...", "secret-placeholder"),
            ("whsec_\u{2026}", "secret-placeholder"),
            ("<secret>", "secret-placeholder"),
            ("Change-Me", "secret-placeholder"),
            ("YOUR_SECRET_HERE", "secret-placeholder"),
        ] {
            assert_eq!(open.misshapen(secret).unwrap().code(), code, "{secret:?}");
        }
        for secret in ["a", "a b", "a\"b", "é", "a...b", "<a", "-----BEGIN PUBLIC KEY-----\nMII\n"]
        {
            assert_eq!(open.misshapen(secret), None, "{secret:?}");
        }
    }

    #[test]
    fn a_secret_of_another_kind_is_noticed() {
        let shape = SecretShape {
            prefixes: vec!["whsec_".to_owned(), "wh_".to_owned()],
            length: Some(8..=10),
            letters: Some(Alphabet::UrlSafe),
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
            SecretShape { letters: Some(Alphabet::Hex), length: Some(4..=4), ..Default::default() };
        assert_eq!(hex.misshapen("0aF9"), None);
        assert_eq!(hex.misshapen("0a").unwrap().to_string(), "does not have 4 characters");
        assert_eq!(hex.misshapen("xyzz").unwrap().code(), "secret-characters");
    }
}
