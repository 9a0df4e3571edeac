//! Reads the values of a request that selectors name.

use std::borrow::Cow;
use std::sync::OnceLock;

use http::HeaderName;

use super::field::{self, Field};
use super::form;
use super::header::single;
use super::part::{Selector, Value};
use super::verdict::{InvalidReason, Location};
use crate::json::{self, Found, Pointer, Scalar};
use crate::provider::ReceivedRequest;

/// A request, with the JSON text that `json:` selects from.
#[derive(Debug)]
pub(super) struct RequestReader<'a> {
    pub(super) received: ReceivedRequest<'a>,
    /// The JSON text: the body, or a field of a form. None: there is no such field.
    document: Option<Cow<'a, [u8]>>,
    /// The fields of the form, if the body is one. They are read when they are first needed,
    /// because most senders write none.
    fields: OnceLock<Result<Vec<Field>, InvalidReason>>,
}

impl<'a> RequestReader<'a> {
    /// A request of which the JSON text is the body, or the value of this field of a form.
    ///
    /// # Errors
    /// The form cannot be read, or has the field twice with different values.
    pub(super) fn new(
        received: &ReceivedRequest<'a>,
        field: Option<&str>,
    ) -> Result<Self, InvalidReason> {
        let request = Self {
            received: *received,
            document: Some(Cow::Borrowed(received.body)),
            fields: OnceLock::new(),
        };
        let Some(name) = field else { return Ok(request) };
        let document = request.field(name)?.map(|text| Cow::Owned(text.to_vec()));
        Ok(Self { document, ..request })
    }

    fn field(&self, name: &str) -> Result<Option<&[u8]>, InvalidReason> {
        field::single(self.fields().as_ref().map_err(Clone::clone)?, name)
    }

    fn fields(&self) -> &Result<Vec<Field>, InvalidReason> {
        self.fields.get_or_init(|| form::of(&self.received))
    }

    /// The value that a selector finds.
    ///
    /// # Errors
    /// The value is given twice, differently.
    pub(super) fn read(&self, selector: &Selector) -> Result<Value<'_>, InvalidReason> {
        let bytes = |found: Option<Cow<'static, [u8]>>| found.map_or(Value::Absent, Value::Bytes);
        match selector {
            Selector::Header(name) => self.header(name),
            Selector::Query(name) => {
                let fields = form::fields(self.received.query().as_bytes())?;
                let found = field::single_at(&fields, name, Location::Parameter(name.clone()))?;
                Ok(bytes(found.map(|text| Cow::Owned(text.to_vec()))))
            }
            Selector::Field(name) => {
                let found = self.field(name)?;
                Ok(found.map_or(Value::Absent, |text| Value::Bytes(text.into())))
            }
            Selector::Member(pointer) => self.member(pointer),
        }
    }

    fn header(&self, name: &HeaderName) -> Result<Value<'_>, InvalidReason> {
        let found = single(self.received.headers, name)?;
        Ok(found.map_or(Value::Absent, |text| Value::Bytes(text.into())))
    }

    fn member(&self, pointer: &Pointer) -> Result<Value<'_>, InvalidReason> {
        let Some(document) = &self.document else {
            return Ok(Value::Absent);
        };
        match json::find(document, pointer) {
            Found::Values(values) => Ok(match values.first().map(|raw| json::scalar(raw)) {
                None => Value::Absent,
                Some(scalar) => Value::Json(scalar),
            }),
            Found::Absent => Ok(Value::Absent),
            Found::NotJson => Ok(Value::Unreadable),
            // JSON parsers disagree about which of two members of one name counts (RFC 8259,
            // section 4).
            Found::Ambiguous | Found::InSomeItems | Found::TooMany => {
                Err(InvalidReason::Repeated(Location::Member(pointer.to_string())))
            }
        }
    }

    /// Whether a selector finds anything, even an empty text.
    pub(super) fn has(&self, selector: &Selector) -> bool {
        match selector {
            Selector::Header(name) => self.received.headers.contains_key(name),
            Selector::Query(name) => {
                let fields = form::fields(self.received.query().as_bytes());
                fields.is_ok_and(|fields| field::has(&fields, name))
            }
            Selector::Field(name) => {
                self.fields().as_ref().is_ok_and(|fields| field::has(fields, name))
            }
            Selector::Member(pointer) => {
                let found = self.member(pointer);
                !matches!(found, Ok(Value::Absent | Value::Json(Scalar::Null) | Value::Unreadable))
            }
        }
    }

    /// The text that a selector finds, as a signature covers it. None if it is absent, null or
    /// empty.
    ///
    /// # Errors
    /// The text is given twice, differently, or is an object or an array.
    pub(super) fn text(&self, selector: &Selector) -> Result<Option<Cow<'_, [u8]>>, InvalidReason> {
        let text = match self.read(selector)? {
            Value::Absent | Value::Json(Scalar::Null) => return Ok(None),
            Value::Bytes(bytes) => bytes,
            Value::Unreadable => return Err(InvalidReason::Body("JSON in UTF-8")),
            Value::Json(Scalar::Text(Cow::Borrowed(text)) | Scalar::Literal(text)) => {
                text.as_bytes().into()
            }
            Value::Json(Scalar::Text(Cow::Owned(text))) => text.into_bytes().into(),
            Value::Json(Scalar::Composite | Scalar::NotText) => {
                return Err(InvalidReason::Unreadable(selector.location()));
            }
        };
        Ok((!text.is_empty()).then_some(text))
    }

    /// The text that a selector finds, where it has to be present.
    ///
    /// # Errors
    /// As [`Self::text`], or the text is absent.
    pub(super) fn required(&self, selector: &Selector) -> Result<Cow<'_, [u8]>, InvalidReason> {
        self.text(selector)?.ok_or_else(|| InvalidReason::Absent(selector.location()))
    }
}
