//! The request as a check looks at it, with the document that `json:` means.

use std::borrow::Cow;
use std::sync::OnceLock;

use http::HeaderName;

use super::Signed;
use super::form::{self, Field};
use super::header::single;
use super::part::{Source, Value};
use super::verdict::{Place, Reason};
use crate::json::{self, Found, Pointer, Scalar};

/// A request, and the JSON text in it.
#[derive(Debug)]
pub(super) struct Request<'a> {
    pub(super) signed: Signed<'a>,
    /// The body, or a field of a form. None: there is no such field.
    document: Option<Cow<'a, [u8]>>,
    /// The fields of the form, if the body is one. Most senders write none.
    fields: OnceLock<Result<Vec<Field>, Reason>>,
}

impl<'a> Request<'a> {
    /// A request whose JSON text is the body, or the value of this field of a form.
    pub(super) fn new(signed: &Signed<'a>, field: Option<&str>) -> Result<Self, Reason> {
        let request = Self {
            signed: *signed,
            document: Some(Cow::Borrowed(signed.body)),
            fields: OnceLock::new(),
        };
        let Some(name) = field else { return Ok(request) };
        let document = request.field(name)?.map(|text| Cow::Owned(text.to_vec()));
        Ok(Self { document, ..request })
    }

    fn field(&self, name: &str) -> Result<Option<&[u8]>, Reason> {
        form::single(self.fields().as_ref().map_err(Clone::clone)?, name)
    }

    fn fields(&self) -> &Result<Vec<Field>, Reason> {
        self.fields.get_or_init(|| form::of(&self.signed))
    }

    /// What stands there.
    ///
    /// # Errors
    /// It is given twice, with different values.
    pub(super) fn read(&self, source: &Source) -> Result<Value<'_>, Reason> {
        let bytes = |found: Option<Cow<'static, [u8]>>| found.map_or(Value::Absent, Value::Bytes);
        match source {
            Source::Header(name) => self.header(name),
            Source::Query(name) => {
                let fields = form::fields(self.signed.query().as_bytes())?;
                let found = form::only(&fields, name, Place::Parameter(name.clone()))?;
                Ok(bytes(found.map(|text| Cow::Owned(text.to_vec()))))
            }
            Source::Field(name) => {
                let found = self.field(name)?;
                Ok(found.map_or(Value::Absent, |text| Value::Bytes(text.into())))
            }
            Source::Member(pointer) => self.member(pointer),
        }
    }

    fn header(&self, name: &HeaderName) -> Result<Value<'_>, Reason> {
        let found = single(self.signed.headers, name)?;
        Ok(found.map_or(Value::Absent, |text| Value::Bytes(text.into())))
    }

    fn member(&self, pointer: &Pointer) -> Result<Value<'_>, Reason> {
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
            Found::Ambiguous | Found::InSomeItems | Found::TooMany => {
                Err(Reason::Repeated(Place::Member(pointer.to_string())))
            }
        }
    }

    /// Whether something stands there, be it an empty text.
    pub(super) fn has(&self, source: &Source) -> bool {
        match source {
            Source::Header(name) => self.signed.headers.contains_key(name),
            Source::Query(name) => {
                let fields = form::fields(self.signed.query().as_bytes());
                fields.is_ok_and(|fields| form::has(&fields, name))
            }
            Source::Field(name) => {
                self.fields().as_ref().is_ok_and(|fields| form::has(fields, name))
            }
            Source::Member(pointer) => {
                let found = self.member(pointer);
                !matches!(found, Ok(Value::Absent | Value::Json(Scalar::Null) | Value::Unreadable))
            }
        }
    }

    /// The text that a signature covers; none if it is absent.
    ///
    /// # Errors
    /// It is given twice, or is no plain value.
    pub(super) fn text(&self, source: &Source) -> Result<Option<Cow<'_, [u8]>>, Reason> {
        let text = match self.read(source)? {
            Value::Absent | Value::Json(Scalar::Null) => return Ok(None),
            Value::Bytes(bytes) => bytes,
            Value::Unreadable => return Err(Reason::Body("JSON in UTF-8")),
            Value::Json(Scalar::Text(Cow::Borrowed(text)) | Scalar::Literal(text)) => {
                text.as_bytes().into()
            }
            Value::Json(Scalar::Text(Cow::Owned(text))) => text.into_bytes().into(),
            Value::Json(Scalar::Composite | Scalar::NotText) => {
                return Err(Reason::Unreadable(source.place()));
            }
        };
        Ok((!text.is_empty()).then_some(text))
    }

    /// The same, of what has to be there.
    pub(super) fn required(&self, source: &Source) -> Result<Cow<'_, [u8]>, Reason> {
        self.text(source)?.ok_or_else(|| Reason::Absent(source.place()))
    }
}
