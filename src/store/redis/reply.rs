//! Reads the replies of a server strictly. A value of another type gives none, and callers report
//! that as an error. If they took it for an absence, it could free the key of an operation.

use redis::Value;

/// The bytes of a string.
pub(super) fn bytes(value: Value) -> Option<Vec<u8>> {
    if let Value::BulkString(bytes) = value { Some(bytes) } else { None }
}

/// A string as text.
pub(super) fn text(value: &Value) -> Option<String> {
    if let Value::SimpleString(text) = value {
        return Some(text.clone());
    }
    let Value::BulkString(bytes) = value else { return None };
    String::from_utf8(bytes.clone()).ok()
}

/// A whole number, as an integer or in digits. Lua's numbers have 53 bits, so scripts return longer
/// numbers as strings.
pub(super) fn number(value: &Value) -> Option<u64> {
    if let Value::Int(number) = value {
        return u64::try_from(*number).ok();
    }
    text(value)?.parse().ok()
}

/// The elements of an array.
pub(super) fn parts(value: Value) -> Option<Vec<Value>> {
    if let Value::Array(parts) = value { Some(parts) } else { None }
}
