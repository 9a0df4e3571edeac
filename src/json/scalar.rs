//! A single JSON value, read from how it is written.

use std::borrow::Cow;

/// What a piece of JSON text is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Scalar<'b> {
    /// A text, decoded.
    Text(Cow<'b, str>),
    /// A number, `true` or `false`, as it is written.
    Literal(&'b str),
    /// `null`.
    Null,
    /// An object or an array.
    Composite,
    /// A text with an escape that stands for no character.
    NotText,
}

/// Reads a value that [`super::find`] found.
pub(crate) fn scalar(raw: &str) -> Scalar<'_> {
    match raw.bytes().next() {
        Some(b'{' | b'[') => Scalar::Composite,
        Some(b'n') | None => Scalar::Null,
        Some(b'"') => text(raw),
        Some(_) => Scalar::Literal(raw),
    }
}

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
