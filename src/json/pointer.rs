//! JSON pointers: where in a JSON text a value stands.

use std::fmt;
use std::str::FromStr;

/// A JSON pointer (RFC 6901) in which `*` stands for each item of an array.
///
/// So a member that is itself named `*` cannot be pointed at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pointer {
    tokens: Vec<Token>,
}

/// One step of a pointer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Token {
    /// The member of this name, or the item of an array at this index. Only the body tells which.
    Name(String),
    /// Each item of an array.
    Each,
}

/// Why a text is not a pointer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PointerError {
    /// A pointer must name a member. RFC 6901 has the empty pointer for the whole document; as a
    /// key or an event id that would be a mistake.
    #[error("expected `/` and the name of a member")]
    NoSlash,
    /// `~` occurs only in `~0` and `~1` (RFC 6901, 3).
    #[error("expected `~0` for `~` or `~1` for `/`")]
    Tilde,
    /// With two `*`, the values of one inner array could not be told from those of the next.
    #[error("expected `*` at most once")]
    EachTwice,
    /// More than [`Pointer::DEPTH_MAX`] steps.
    #[error("expected at most {} steps", Pointer::DEPTH_MAX)]
    TooDeep,
}

impl Pointer {
    /// The most steps of a pointer. This bounds the recursion over a body.
    pub const DEPTH_MAX: usize = 32;

    /// The pointer through members of these names.
    pub(crate) fn along(names: &[&str]) -> Self {
        let name = |name: &&str| Token::Name((*name).to_owned());
        Self { tokens: names.iter().map(name).collect() }
    }

    /// The pointer to each item of the array of this name.
    pub(crate) fn of_each(name: &str) -> Self {
        Self { tokens: vec![Token::Name(name.to_owned()), Token::Each] }
    }

    /// Whether it contains `*`.
    pub fn has_wildcard(&self) -> bool {
        self.tokens.contains(&Token::Each)
    }

    pub(super) fn tokens(&self) -> &[Token] {
        &self.tokens
    }
}

impl Token {
    /// The index of an array that a name stands for: digits without a leading zero (RFC 6901, 4).
    pub(super) fn index(name: &str) -> Option<usize> {
        let plain = name.bytes().all(|byte| byte.is_ascii_digit());
        let leading_zero = name.len() > 1 && name.starts_with('0');
        if plain && !leading_zero { name.parse().ok() } else { None }
    }
}

impl FromStr for Pointer {
    type Err = PointerError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let steps = text.strip_prefix('/').ok_or(PointerError::NoSlash)?;
        let tokens = steps.split('/').map(token).collect::<Result<Vec<_>, _>>()?;
        if tokens.len() > Self::DEPTH_MAX {
            return Err(PointerError::TooDeep);
        }
        if tokens.iter().filter(|token| **token == Token::Each).count() > 1 {
            return Err(PointerError::EachTwice);
        }
        Ok(Self { tokens })
    }
}

/// Reads one step, and decodes its escapes.
fn token(text: &str) -> Result<Token, PointerError> {
    if text == "*" {
        return Ok(Token::Each);
    }
    let (plain, escaped) = text.split_once('~').map_or((text, None), |(a, b)| (a, Some(b)));
    let mut name = plain.to_owned();
    for piece in escaped.into_iter().flat_map(|escaped| escaped.split('~')) {
        let rest = match piece.as_bytes().first() {
            Some(b'0') => "~",
            Some(b'1') => "/",
            Some(_) | None => return Err(PointerError::Tilde),
        };
        name.push_str(rest);
        name.push_str(piece.get(1..).unwrap_or_default());
    }
    Ok(Token::Name(name))
}

impl fmt::Display for Pointer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.tokens.iter().try_for_each(|token| match token {
            Token::Name(name) => write!(f, "/{}", name.replace('~', "~0").replace('/', "~1")),
            Token::Each => f.write_str("/*"),
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn steps_are_unescaped() {
        let pointer: Pointer = "/a~1b/m~0n/~01//*/0".parse().unwrap();
        let name = |name: &str| Token::Name(name.to_owned());
        let expected = [name("a/b"), name("m~n"), name("~1"), name(""), Token::Each, name("0")];
        assert_eq!(pointer.tokens(), expected);
    }

    #[test]
    fn a_text_that_is_no_pointer_says_why() {
        let deep = "/a".repeat(Pointer::DEPTH_MAX + 1);
        for (text, error) in [
            ("", PointerError::NoSlash),
            ("id", PointerError::NoSlash),
            ("/a~", PointerError::Tilde),
            ("/a~2", PointerError::Tilde),
            ("/~~0", PointerError::Tilde),
            ("/~é", PointerError::Tilde),
            ("/*/a/*", PointerError::EachTwice),
            (deep.as_str(), PointerError::TooDeep),
        ] {
            assert_eq!(text.parse::<Pointer>(), Err(error), "{text}");
        }
    }

    #[test]
    fn an_index_is_written_one_way() {
        assert_eq!(["0", "10"].map(Token::index), [Some(0), Some(10)]);
        assert_eq!(["", "00", "01", "-", "+1", "1e0"].map(Token::index), [None; 6]);
        assert_eq!(Token::index("99999999999999999999999999"), None);
    }

    proptest! {
        #[test]
        fn what_is_read_is_written_again(text in "(/[a~01é*]{0,3}){1,4}") {
            if let Ok(pointer) = text.parse::<Pointer>() {
                prop_assert_eq!(pointer.to_string(), text);
            }
        }
    }
}
