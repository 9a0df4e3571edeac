//! The arguments of the functions that make swaps.

use std::borrow::Cow;
use std::error::Error;

use bytes::BytesMut;
use tokio_postgres::types::{IsNull, ToSql, Type, to_sql_checked};

use super::pool::Parameter;

/// An argument of a function.
#[derive(Debug)]
pub(super) struct Argument {
    pub(super) name: &'static str,
    /// The name of the argument in `swap_all`, which takes an array with a value of each swap. None
    /// if `swap_all` does not take it.
    pub(super) name_of_array: Option<&'static str>,
    pub(super) value: Value,
}

/// The value of an argument, or none for `NULL`.
#[derive(Debug)]
pub(super) enum Value {
    Text(Option<Cow<'static, str>>),
    Bytes(Option<Vec<u8>>),
    Int4(Option<i32>),
    Int8(Option<i64>),
    Bool(Option<bool>),
}

impl Argument {
    /// Makes an argument that each swap of a group brings.
    pub(super) const fn of_each(name: &'static str, array: &'static str, value: Value) -> Self {
        Self { name, name_of_array: Some(array), value }
    }

    /// Makes an argument of which a call takes only one value.
    pub(super) const fn of_call(name: &'static str, value: Value) -> Self {
        Self { name, name_of_array: None, value }
    }
}

impl Value {
    /// Returns the value as the parameter of a statement.
    pub(super) fn parameter(&self) -> Parameter<'_> {
        let [kind, _] = self.kinds();
        (self, kind)
    }

    /// Returns the type of the value, and the type of an array of such values.
    pub(super) fn kinds(&self) -> [Type; 2] {
        match self {
            Self::Text(_) => [Type::TEXT, Type::TEXT_ARRAY],
            Self::Bytes(_) => [Type::BYTEA, Type::BYTEA_ARRAY],
            Self::Int4(_) => [Type::INT4, Type::INT4_ARRAY],
            Self::Int8(_) => [Type::INT8, Type::INT8_ARRAY],
            Self::Bool(_) => [Type::BOOL, Type::BOOL_ARRAY],
        }
    }
}

impl ToSql for Value {
    fn to_sql(
        &self,
        kind: &Type,
        out: &mut BytesMut,
    ) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        match self {
            Self::Text(value) => value.to_sql(kind, out),
            Self::Bytes(value) => value.to_sql(kind, out),
            Self::Int4(value) => value.to_sql(kind, out),
            Self::Int8(value) => value.to_sql(kind, out),
            Self::Bool(value) => value.to_sql(kind, out),
        }
    }

    /// The type comes from the value itself.
    fn accepts(_kind: &Type) -> bool {
        true
    }

    to_sql_checked!();
}
