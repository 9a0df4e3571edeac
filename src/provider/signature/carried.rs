//! What belongs to a signature: the values that a key takes from the very place that was checked.
//!
//! A sender may write one fact in two places, of which its signature covers one, or sign with one
//! of two families of headers. A key that is read on its own could then be that of the other place.
//! So the way to sign names its values, and a selector asks for them by name.

use std::borrow::Cow;
use std::collections::BTreeMap;

use super::part::{Source, Value};
use super::request::Request;
use crate::json::Scalar;

/// The values that belong to one signature, by name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Carried {
    values: BTreeMap<String, Result<CarriedValue, Unusable>>,
    /// Where those of a sender's table stand; several where they differ.
    places: BTreeMap<String, Vec<Source>>,
}

/// A value as it was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CarriedValue {
    /// A text: a header, a field, a JSON string.
    Text(String),
    /// A JSON number, `true` or `false`, as it is written.
    Literal(String),
}

/// Why a value is there and of no use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unusable {
    /// It is an object or an array.
    NotAValue,
    /// It stands for no text.
    NotText,
    /// It is given twice, with different values: in one place, or by two families of headers.
    Differs,
}

impl Carried {
    /// The value of this name; none if the request has none.
    pub fn get(&self, name: &str) -> Option<Result<&CarriedValue, Unusable>> {
        self.values.get(name).map(|value| value.as_ref().map_err(|unusable| *unusable))
    }

    /// Where the value of this name stands, for people; several places where they differ.
    pub fn places(&self, name: &str) -> Vec<String> {
        let sources = self.places.get(name).into_iter().flatten();
        sources.map(|source| source.place().to_string()).collect()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// Reads what these names stand for. Of several places the first one counts that has a value.
    pub(super) fn read(names: &[(String, Vec<Source>)], request: &Request<'_>) -> Self {
        let mut carried = Self::default();
        for (name, sources) in names {
            let mut values =
                sources.iter().filter_map(|source| Some((source, value(source, request)?)));
            if let Some((source, value)) = values.next() {
                carried.values.insert(name.clone(), value);
                carried.places.insert(name.clone(), vec![source.clone()]);
            }
        }
        carried
    }

    pub(super) fn insert(&mut self, name: &str, text: &[u8]) {
        let text = std::str::from_utf8(text).map_err(|_| Unusable::NotText);
        self.values.insert(name.to_owned(), text.map(|text| CarriedValue::Text(text.to_owned())));
    }

    /// Notes a value that is given twice, with different values, in these places.
    pub(super) fn insert_differing(&mut self, name: &str, places: Vec<Source>) {
        self.values.insert(name.to_owned(), Err(Unusable::Differs));
        self.places.insert(name.to_owned(), places);
    }

    /// Marks what another family of headers says in another way: nobody can know who of the two
    /// readers behind us is right.
    pub(super) fn must_agree_with(&mut self, other: &Self) {
        for (name, value) in &mut self.values {
            if other.values.get(name).is_some_and(|other| other != value) {
                *value = Err(Unusable::Differs);
                let places = self.places.entry(name.clone()).or_default();
                places.extend(other.places.get(name).into_iter().flatten().cloned());
            }
        }
    }
}

/// None if it is absent, null or empty.
fn value(source: &Source, request: &Request<'_>) -> Option<Result<CarriedValue, Unusable>> {
    let text = |text: Cow<'_, [u8]>| {
        let text = String::from_utf8(text.into_owned()).map_err(|_| Unusable::NotText);
        text.map(CarriedValue::Text)
    };
    match request.read(source) {
        // A body that is no JSON has no members; the signature decides whether it may be so.
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
