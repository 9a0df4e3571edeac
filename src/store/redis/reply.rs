//! Reads the replies of a server strictly. A value of another type is an error. If it were taken for
//! an absence, it could free the key of an operation.

use redis::Value;

use crate::store::Error;

/// Makes the error for a reply of another shape than the command gives.
pub(super) fn unexpected_shape() -> Error {
    Error::Failed("a reply of the server has an unexpected shape".into())
}

/// The bytes of a string.
pub(super) fn bytes(value: Value) -> Result<Vec<u8>, Error> {
    if let Value::BulkString(bytes) = value { Ok(bytes) } else { Err(unexpected_shape()) }
}

/// A string as text.
pub(super) fn text(value: &Value) -> Result<String, Error> {
    if let Value::SimpleString(text) = value {
        return Ok(text.clone());
    }
    let Value::BulkString(bytes) = value else { return Err(unexpected_shape()) };
    String::from_utf8(bytes.clone()).map_err(|_| unexpected_shape())
}

/// A whole number, as an integer or in digits. Lua's numbers have 53 bits, so scripts return longer
/// numbers as strings.
pub(super) fn number(value: &Value) -> Result<u64, Error> {
    if let Value::Int(number) = value {
        return u64::try_from(*number).map_err(|_| unexpected_shape());
    }
    text(value)?.parse().map_err(|_| unexpected_shape())
}

/// The elements of an array.
pub(super) fn parts(value: Value) -> Result<Vec<Value>, Error> {
    if let Value::Array(parts) = value { Ok(parts) } else { Err(unexpected_shape()) }
}
