//! Single settings, which are neither tables nor lists, and how each of them is read.
//!
//! Reading a leaf reports nothing and stops nothing: either the value is one of the setting, or it
//! is not. The table that holds the setting reports what is wrong.

use std::borrow::Cow;

use figment::value::Value;
use http::StatusCode;

use crate::budget::Share;
use crate::idempotency::Scalar;
use crate::provider::Expected;

/// A value that is written as text.
pub(super) trait FromText: Sized {
    /// What may be written, to complete `expected …`.
    const EXPECTED: &'static str;

    /// Reads the text, if it is what [`FromText::EXPECTED`] says.
    fn from_text(text: &str) -> Option<Self>;

    /// What may be written instead of this text, where more can be said than
    /// [`FromText::EXPECTED`].
    fn expected_for(_text: &str) -> Cow<'static, str> {
        Self::EXPECTED.into()
    }
}

/// A value of a setting that is neither a table nor a list.
pub(super) trait Leaf: Sized {
    /// What may be written, to complete `expected …`.
    const EXPECTED: &'static str;
    /// Whether the setting is written as text, so that a text is at least of the right type.
    const IS_TEXT: bool = false;

    /// Reads the value, if it is what [`Leaf::EXPECTED`] says.
    fn from_value(value: &Value) -> Option<Self>;

    /// What may be written instead of this value.
    fn expected_for(_value: &Value) -> Cow<'static, str> {
        Self::EXPECTED.into()
    }
}

impl<T: FromText> Leaf for T {
    const EXPECTED: &'static str = T::EXPECTED;
    const IS_TEXT: bool = true;

    fn from_value(value: &Value) -> Option<Self> {
        T::from_text(value.as_str()?)
    }

    fn expected_for(value: &Value) -> Cow<'static, str> {
        value.as_str().map_or(T::EXPECTED.into(), T::expected_for)
    }
}

impl Leaf for bool {
    const EXPECTED: &'static str = "`true` or `false`";

    fn from_value(value: &Value) -> Option<Self> {
        value.to_bool()
    }
}

/// A whole number above zero. Semaphores and channels take no more than this type holds.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd)]
pub(super) struct Count(pub(super) u32);

impl Count {
    pub(super) fn as_usize(self) -> usize {
        usize::try_from(self.0).unwrap_or(usize::MAX)
    }
}

impl Leaf for Count {
    const EXPECTED: &'static str = "a whole number from 1 to 4294967295";

    fn from_value(value: &Value) -> Option<Self> {
        let number = u32::try_from(value.to_i128()?).ok()?;
        (number > 0).then_some(Self(number))
    }
}

/// A number of replicas, which may be zero.
impl Leaf for u8 {
    const EXPECTED: &'static str = "a whole number from 0 to 255";

    fn from_value(value: &Value) -> Option<Self> {
        value.to_i128()?.try_into().ok()
    }
}

impl Leaf for Share {
    const EXPECTED: &'static str = "a number above 0 and up to 1, such as 0.25";

    fn from_value(value: &Value) -> Option<Self> {
        match value.to_i128() {
            // TOML reads `1` as an integer. Zero would let nobody in.
            Some(whole) => (whole == 1).then_some(Self::WHOLE),
            None => Self::new(value.to_f64()?),
        }
    }
}

/// A status that senders take as "try again later".
#[derive(Debug, Clone, Copy)]
pub(super) struct RetryStatus(pub(super) StatusCode);

impl Leaf for RetryStatus {
    const EXPECTED: &'static str = "409, 425, 429 or 503";

    fn from_value(value: &Value) -> Option<Self> {
        one_of(value, &[409, 425, 429, 503]).map(Self)
    }
}

/// A status that replaces another one. Unlike [`RetryStatus`] it may be a plain failure, since some
/// senders try again after a 500 and give up after a 502.
#[derive(Debug, Clone, Copy)]
pub(super) struct ReplacingStatus(pub(super) StatusCode);

impl Leaf for ReplacingStatus {
    const EXPECTED: &'static str = "409, 425, 429, 500 or 503";

    fn from_value(value: &Value) -> Option<Self> {
        one_of(value, &[409, 425, 429, 500, 503]).map(Self)
    }
}

fn one_of(value: &Value, statuses: &[u16]) -> Option<StatusCode> {
    let status = u16::try_from(value.to_i128()?).ok()?;
    statuses.contains(&status).then(|| StatusCode::from_u16(status).ok())?
}

/// What a part of a handshake has to be.
impl Leaf for Expected {
    const EXPECTED: &'static str =
        "a text, a whole number, `true`, `false`, `*` for any text or `0-9` for digits";

    fn from_value(value: &Value) -> Option<Self> {
        // A handshake may carry a challenge, of which nothing but its form is known.
        match value.as_str() {
            Some("*") => Some(Self::Some),
            Some("0-9") => Some(Self::Digits),
            Some(text) => Some(Self::Text(text.to_owned())),
            None => match value.to_bool() {
                Some(boolean) => Some(Self::Bool(boolean)),
                None => value.to_i128()?.try_into().ok().map(Self::Number),
            },
        }
    }
}

/// A value that a member of JSON is compared with.
impl Leaf for Scalar {
    const EXPECTED: &'static str = "a text, a whole number, `true` or `false`";

    fn from_value(value: &Value) -> Option<Self> {
        // Whole numbers have one spelling in JSON. A fraction has several, so that its text could
        // not be compared.
        let literal = || {
            let boolean = value.to_bool().map(|boolean| boolean.to_string());
            boolean.or_else(|| value.to_i128().map(|number| number.to_string()))
        };
        match value.as_str() {
            Some(text) => Some(Self::Text(text.to_owned())),
            None => literal().map(Self::Literal),
        }
    }
}
