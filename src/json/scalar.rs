//! Reads a single JSON value from how it is written.

use std::borrow::Cow;

/// A JSON value. Objects and arrays are not read further.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Scalar<'b> {
    /// A string, decoded.
    Text(Cow<'b, str>),
    /// A number, `true` or `false`, as it is written.
    Literal(&'b str),
    /// `null`.
    Null,
    /// An object or an array.
    Composite,
    /// A string with an escape that stands for no character: a lone surrogate, such as `\ud800`.
    NotText,
}

/// Reads a value that [`super::find`] found. `raw` is known to be JSON, so its first byte decides.
pub(crate) fn scalar(raw: &str) -> Scalar<'_> {
    match raw.bytes().next() {
        Some(b'{' | b'[') => Scalar::Composite,
        Some(b'n') | None => Scalar::Null,
        Some(b'"') => text(raw),
        Some(_) => Scalar::Literal(raw),
    }
}

/// Reads a string. Without a backslash its content is what it means, and nothing is copied.
fn text(raw: &str) -> Scalar<'_> {
    if raw.contains('\\') {
        return serde_json::from_str(raw)
            .map_or(Scalar::NotText, |text: String| Scalar::Text(text.into()));
    }
    let inner = raw.strip_prefix('"').and_then(|raw| raw.strip_suffix('"'));
    Scalar::Text(inner.unwrap_or(raw).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_keeps_its_type_and_spelling() {
        for (raw, expected) in [
            (r#""a""#, Scalar::Text("a".into())),
            (r#""\u0061""#, Scalar::Text("a".into())),
            (r#""\ud800""#, Scalar::NotText),
            ("1e0", Scalar::Literal("1e0")),
            ("true", Scalar::Literal("true")),
            ("null", Scalar::Null),
            ("{ }", Scalar::Composite),
            ("[1]", Scalar::Composite),
        ] {
            assert_eq!(scalar(raw), expected, "{raw}");
        }
    }
}
