//! The leaves of the configuration: text, numbers and lists, as serde sees them.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use http::StatusCode;
use serde::de::{Deserialize, Deserializer, Error, SeqAccess, Unexpected, Visitor};

use crate::budget::Share;
use crate::provider::Expected;

/// A value that is written as text.
pub(super) trait Written: Sized {
    /// What is asked for, to complete `expected …`.
    const EXPECTED: &'static str;

    /// Reads it; none if it is not what [`Written::EXPECTED`] says.
    fn read(text: &str) -> Option<Self>;

    /// What is asked for in place of this text, where more can be said of it.
    fn expected(_text: &str) -> Cow<'static, str> {
        Self::EXPECTED.into()
    }
}

/// A [`Written`] value in its place in the file.
#[derive(Debug)]
pub(super) struct Text<T>(pub(super) T);

/// A whole number above zero. Semaphores and channels take no more than this many.
#[derive(Debug, Clone, Copy)]
pub(super) struct Count(pub(super) u32);

/// A part of a whole.
#[derive(Debug, Clone, Copy)]
pub(super) struct Portion(pub(super) Share);

/// A status that a sender takes as "try again later".
#[derive(Debug, Clone, Copy)]
pub(super) struct RetryStatus(pub(super) StatusCode);

/// The same for a status that replaces another one: a plain failure may do, too.
#[derive(Debug, Clone, Copy)]
pub(super) struct ReplacingStatus(pub(super) StatusCode);

/// What a part of a handshake has to be.
#[derive(Debug)]
pub(super) struct Wanted(pub(super) Expected);

/// A list. An item that was reported as a problem is none; TOML itself knows no such item.
#[derive(Debug)]
pub(super) struct List<T>(Vec<Option<Text<T>>>);

impl<T> List<T> {
    /// All items; none if one was reported as a problem.
    pub(super) fn complete(self) -> Option<Vec<T>> {
        self.0.into_iter().map(|item| item.map(|Text(value)| value)).collect()
    }
}

/// What a list says of a text in its place. Nothing else complains of the length of a text, so that
/// the reader knows by it where a variable may hold a list that is written with commas.
pub(super) fn text_for_a_list<E: Error>(list: &dyn serde::de::Expected) -> E {
    E::invalid_length(1, list)
}

impl<'de, T: Written> Deserialize<'de> for Text<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(TextVisitor(PhantomData)).map(Self)
    }
}

struct TextVisitor<T>(PhantomData<T>);

impl<T: Written> Visitor<'_> for TextVisitor<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(T::EXPECTED)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<T, E> {
        let expected = || T::expected(text);
        T::read(text).ok_or_else(|| E::invalid_value(Unexpected::Str(text), &&*expected()))
    }
}

impl<'de> Deserialize<'de> for Count {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_u32(CountVisitor).map(Self)
    }
}

struct CountVisitor;

impl Visitor<'_> for CountVisitor {
    type Value = u32;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a whole number from 1 to {}", u32::MAX)
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<u32, E> {
        u32::try_from(number)
            .ok()
            .filter(|number| *number > 0)
            .ok_or_else(|| E::invalid_value(Unexpected::Signed(number), &self))
    }
}

impl<'de> Deserialize<'de> for Portion {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_f64(PortionVisitor).map(Self)
    }
}

struct PortionVisitor;

impl Visitor<'_> for PortionVisitor {
    type Value = Share;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number above 0 and up to 1, such as 0.25")
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<Share, E> {
        Share::new(number).ok_or_else(|| E::invalid_value(Unexpected::Float(number), &self))
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Share, E> {
        let whole = (number == 1).then_some(Share::WHOLE);
        whole.ok_or_else(|| E::invalid_value(Unexpected::Signed(number), &self))
    }
}

impl<'de> Deserialize<'de> for RetryStatus {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        const STATUSES: OneOf = OneOf {
            statuses: &[
                StatusCode::CONFLICT,
                StatusCode::TOO_EARLY,
                StatusCode::TOO_MANY_REQUESTS,
                StatusCode::SERVICE_UNAVAILABLE,
            ],
            expected: "409, 425, 429 or 503",
        };
        deserializer.deserialize_u16(STATUSES).map(Self)
    }
}

impl<'de> Deserialize<'de> for ReplacingStatus {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        const STATUSES: OneOf = OneOf {
            statuses: &[
                StatusCode::CONFLICT,
                StatusCode::TOO_EARLY,
                StatusCode::TOO_MANY_REQUESTS,
                StatusCode::INTERNAL_SERVER_ERROR,
                StatusCode::SERVICE_UNAVAILABLE,
            ],
            expected: "409, 425, 429, 500 or 503",
        };
        deserializer.deserialize_u16(STATUSES).map(Self)
    }
}

/// Statuses that a setting may have.
struct OneOf {
    statuses: &'static [StatusCode],
    expected: &'static str,
}

impl Visitor<'_> for OneOf {
    type Value = StatusCode;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.expected)
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<StatusCode, E> {
        let known = self.statuses.iter().find(|status| i64::from(status.as_u16()) == number);
        known.copied().ok_or_else(|| E::invalid_value(Unexpected::Signed(number), &self))
    }
}

impl<'de> Deserialize<'de> for Wanted {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(WantedVisitor).map(Self)
    }
}

struct WantedVisitor;

impl Visitor<'_> for WantedVisitor {
    type Value = Expected;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text, a whole number, `true`, `false`, `*` for any text or `0-9` for digits")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Expected, E> {
        Ok(match text {
            "*" => Expected::Some,
            "0-9" => Expected::Digits,
            text => Expected::Text(text.to_owned()),
        })
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Expected, E> {
        Ok(Expected::Number(number))
    }

    fn visit_bool<E: Error>(self, word: bool) -> Result<Expected, E> {
        Ok(Expected::Bool(word))
    }
}

impl<'de, T: Written> Deserialize<'de> for List<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(ListVisitor(PhantomData)).map(Self)
    }
}

struct ListVisitor<T>(PhantomData<T>);

impl<'de, T: Written> Visitor<'de> for ListVisitor<T> {
    type Value = Vec<Option<Text<T>>>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of texts")
    }

    fn visit_str<E: Error>(self, _text: &str) -> Result<Self::Value, E> {
        Err(text_for_a_list(&self))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Self::Value, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element()? {
            list.push(item);
        }
        Ok(list)
    }
}
