//! The values that a signature carries: those that a key selects as `signature:NAME`.
//!
//! A sender may write one fact in two locations, of which its signature covers one, or sign with
//! one of two families of headers. A key that was read without regard to the signature could come
//! from the other location, where an attacker may write anything. So each signing method says
//! where its values stand, and a key asks for them by name.

use std::borrow::Cow;
use std::collections::BTreeMap;

use super::part::{Selector, Value};
use super::request::RequestReader;
use crate::json::Scalar;

/// The values that belong to one signature, by name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Carried {
    values: BTreeMap<String, Result<CarriedValue, Unusable>>,
    /// Where the values that a table names stand. Several where they differ.
    locations: BTreeMap<String, Vec<Selector>>,
}

/// A value as it was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CarriedValue {
    /// A text: a header, a field, a JSON string.
    Text(String),
    /// A JSON number, `true` or `false`, as it is written.
    Literal(String),
}

/// Why a value is present and of no use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unusable {
    /// It is an object or an array.
    NotAValue,
    /// It is not UTF-8, or a JSON string that stands for no text (a lone surrogate).
    NotText,
    /// It is given twice, with different values: in one location, or in two families of headers.
    Differs,
}

impl Carried {
    /// The value of this name. None if the request has none.
    pub fn get(&self, name: &str) -> Option<Result<&CarriedValue, Unusable>> {
        self.values.get(name).map(|value| value.as_ref().map_err(|unusable| *unusable))
    }

    /// Where the value of this name stands, for people. Several locations where its values differ.
    pub fn places(&self, name: &str) -> Vec<String> {
        let selectors = self.locations.get(name).into_iter().flatten();
        selectors.map(|selector| selector.location().to_string()).collect()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// Reads the values of these names. Of several selectors the first counts that finds a value.
    pub(super) fn read(names: &[(String, Vec<Selector>)], request: &RequestReader<'_>) -> Self {
        let mut carried = Self::default();
        for (name, selectors) in names {
            let mut values =
                selectors.iter().filter_map(|selector| Some((selector, value(selector, request)?)));
            if let Some((selector, value)) = values.next() {
                carried.values.insert(name.clone(), value);
                carried.locations.insert(name.clone(), vec![selector.clone()]);
            }
        }
        carried
    }

    pub(super) fn insert(&mut self, name: &str, text: &[u8]) {
        let text = std::str::from_utf8(text).map_err(|_| Unusable::NotText);
        self.values.insert(name.to_owned(), text.map(|text| CarriedValue::Text(text.to_owned())));
    }

    /// Adds a value that is given twice, with different values, in these locations.
    pub(super) fn insert_differing(&mut self, name: &str, locations: Vec<Selector>) {
        self.values.insert(name.to_owned(), Err(Unusable::Differs));
        self.locations.insert(name.to_owned(), locations);
    }

    /// Marks the values that another signing method has differently as of no use: nobody can know
    /// which of the two the upstream reads.
    pub(super) fn must_agree_with(&mut self, other: &Self) {
        for (name, value) in &mut self.values {
            if other.values.get(name).is_some_and(|other| other != value) {
                *value = Err(Unusable::Differs);
                let locations = self.locations.entry(name.clone()).or_default();
                locations.extend(other.locations.get(name).into_iter().flatten().cloned());
            }
        }
    }
}

/// The value that a selector finds. None if it is absent, null or empty.
fn value(
    selector: &Selector,
    request: &RequestReader<'_>,
) -> Option<Result<CarriedValue, Unusable>> {
    let text = |text: Cow<'_, [u8]>| {
        let text = String::from_utf8(text.into_owned()).map_err(|_| Unusable::NotText);
        text.map(CarriedValue::Text)
    };
    match request.read(selector) {
        // A body that is no JSON has no members. Whether such a body is accepted is for the
        // signature to decide.
        Ok(Value::Absent | Value::Unreadable) => None,
        Ok(Value::Bytes(bytes)) => Some(text(bytes)),
        Ok(Value::Json(scalar)) => match scalar {
            Scalar::Text(it) if it.is_empty() => None,
            Scalar::Text(it) => Some(Ok(CarriedValue::Text(it.into_owned()))),
            Scalar::Literal(it) => Some(Ok(CarriedValue::Literal(it.to_owned()))),
            Scalar::Composite => Some(Err(Unusable::NotAValue)),
            Scalar::NotText => Some(Err(Unusable::NotText)),
            Scalar::Null => None,
        },
        Err(_) => Some(Err(Unusable::Differs)),
    }
}
