//! The key that a sender sends in a header.

use std::borrow::Cow;

use http::{HeaderMap, HeaderName};

use crate::proxy::selector::InvalidReason;

/// The greatest length of a key header's value, in bytes. The key is stored as text and may be
/// forwarded in a header.
const KEY_BYTES_MAX: usize = 255;

/// The key in these headers. It must be the same in all their lines. A blank line counts as absent.
pub(super) fn find<'a>(
    headers: &'a HeaderMap,
    names: &[HeaderName],
) -> Result<Option<Cow<'a, str>>, InvalidReason> {
    let mut key: Option<Cow<'a, str>> = None;
    for value in names.iter().flat_map(|name| headers.get_all(name)) {
        let Some(found) = read(value.as_bytes())? else {
            continue;
        };
        if key.as_ref().is_some_and(|key| *key != found) {
            return Err(InvalidReason::KeysDiffer);
        }
        key = Some(found);
    }
    Ok(key)
}

/// The key in one header line, bare or as a string of RFC 9651: `"a"` and `a` are one key. The
/// draft of `Idempotency-Key` asks for a string, and most senders write the bare text.
fn read(line: &[u8]) -> Result<Option<Cow<'_, str>>, InvalidReason> {
    let line = line.trim_ascii();
    let key = match line.first() {
        Some(b'"') => Cow::Owned(unquoted(line)?),
        Some(_) | None => bare(line)?,
    };
    if key.trim_ascii().is_empty() {
        return Ok(None);
    }
    if !key.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(InvalidReason::KeyNotVisible);
    }
    if key.len() > KEY_BYTES_MAX {
        return Err(InvalidReason::KeyTooLong);
    }
    Ok(Some(key))
}

/// The key of a line without quotes. A proxy may join two lines into `K,K` (RFC 9110, 5.3). Such a
/// line is refused, because `K,K` is not the key that the sender chose. Other commas may be a part
/// of a key.
fn bare(line: &[u8]) -> Result<Cow<'_, str>, InvalidReason> {
    let text = std::str::from_utf8(line).map_err(|_| InvalidReason::KeyNotVisible)?;
    let mut members = text.split(',').map(str::trim_ascii);
    let first = members.next();
    let mut others = members.peekable();
    if others.peek().is_some() && others.all(|member| Some(member) == first) {
        return Err(InvalidReason::KeyRepeated);
    }
    Ok(Cow::Borrowed(text))
}

/// The key of a quoted line. Parameters after the string are ignored (RFC 9651, 3.1.2).
fn unquoted(line: &[u8]) -> Result<String, InvalidReason> {
    let item = sfv::Parser::new(line).parse::<sfv::Item>();
    let item = item.map_err(|_| InvalidReason::KeyQuoting)?;
    let text = item.bare_item.as_string().ok_or(InvalidReason::KeyQuoting)?;
    Ok(text.as_str().to_owned())
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;
    use proptest::prelude::*;

    use super::*;

    fn find_in(lines: &[(&str, &[u8])]) -> Result<Option<String>, InvalidReason> {
        let mut headers = HeaderMap::new();
        for (name, value) in lines {
            let name: HeaderName = name.parse().unwrap();
            headers.append(name, HeaderValue::from_bytes(value).unwrap());
        }
        let names = ["x-idempotency-key", "idempotency-key"].map(HeaderName::from_static);
        Ok(find(&headers, &names)?.map(Cow::into_owned))
    }

    fn key(value: &str) -> Result<Option<String>, InvalidReason> {
        find_in(&[("x-idempotency-key", value.as_bytes())])
    }

    #[expect(clippy::unnecessary_wraps, reason = "it is compared with a result")]
    fn is(key: &str) -> Result<Option<String>, InvalidReason> {
        Ok(Some(key.to_owned()))
    }

    /// A key may have `/` and `:` inside, quotes, parameters, and whitespace around it.
    #[test]
    fn one_key_can_be_written_in_several_ways() {
        for (value, expected) in [
            ("a", "a"),
            ("\"a\"", "a"),
            ("  a\t", "a"),
            ("\"a\";v=1; w", "a"),
            (r#""a\"b\\c""#, r#"a"b\c"#),
            (r#"a"b\c"#, r#"a"b\c"#),
            ("arn:aws:sns/x;y=1", "arn:aws:sns/x;y=1"),
            ("8e03978e-40d5-43dd-bc93-6894a57f9324", "8e03978e-40d5-43dd-bc93-6894a57f9324"),
            ("a,b", "a,b"),
            (
                "']]--;redis.call('FLUSHALL')*?[a]{x}:%s<script>",
                "']]--;redis.call('FLUSHALL')*?[a]{x}:%s<script>",
            ),
        ] {
            assert_eq!(key(value), is(expected), "{value}");
        }
    }

    #[test]
    fn a_blank_key_counts_as_absent() {
        for value in ["", "    ", "\t", "\"\"", "\"  \"", "\"\";v=1"] {
            assert_eq!(key(value), Ok(None), "{value:?}");
        }
        let blank_and_one = find_in(&[("x-idempotency-key", b" "), ("idempotency-key", b"k")]);
        assert_eq!(blank_and_one, is("k"));
        assert_eq!(find_in(&[]), Ok(None));
    }

    #[test]
    fn an_unusable_key_is_invalid() {
        let longest = "k".repeat(255);
        assert_eq!(key(&longest), is(&longest));
        assert_eq!(key(&format!("\"{longest}\"")), is(&longest));
        for (value, reason) in [
            (format!("{longest}k"), InvalidReason::KeyTooLong),
            (format!("\"{longest}k\""), InvalidReason::KeyTooLong),
            ("a b".to_owned(), InvalidReason::KeyNotVisible),
            ("\"a b\"".to_owned(), InvalidReason::KeyNotVisible),
            ("a\tb".to_owned(), InvalidReason::KeyNotVisible),
            ("é".to_owned(), InvalidReason::KeyNotVisible),
            ("abc\u{a0}".to_owned(), InvalidReason::KeyNotVisible),
            ("\"é\"".to_owned(), InvalidReason::KeyQuoting),
            ("\"a".to_owned(), InvalidReason::KeyQuoting),
            ("\"".to_owned(), InvalidReason::KeyQuoting),
            (r#""a\n""#.to_owned(), InvalidReason::KeyQuoting),
            (r#""a\"#.to_owned(), InvalidReason::KeyQuoting),
            (r#""a"b"#.to_owned(), InvalidReason::KeyQuoting),
            (r#""a", "a""#.to_owned(), InvalidReason::KeyQuoting),
        ] {
            assert_eq!(key(&value), Err(reason), "{value}");
        }
        assert_eq!(find_in(&[("idempotency-key", b"\xff")]), Err(InvalidReason::KeyNotVisible));
    }

    #[test]
    fn equal_lines_are_one_key_and_different_ones_are_invalid() {
        let lines = |a: &'static [u8], b: &'static [u8]| {
            find_in(&[("x-idempotency-key", a), ("x-idempotency-key", b)])
        };
        assert_eq!(lines(b"K", b"K"), is("K"));
        assert_eq!(lines(b"K", b" \"K\";a=1"), is("K"));
        assert_eq!(lines(b"K", b"k"), Err(InvalidReason::KeysDiffer));
        assert_eq!(lines(b"K", b"\"L\""), Err(InvalidReason::KeysDiffer));
        for joined in ["K, K", "K,K", "K ,K,K"] {
            assert_eq!(key(joined), Err(InvalidReason::KeyRepeated), "{joined}");
        }
        assert_eq!(key("K, L"), Err(InvalidReason::KeyNotVisible));
    }

    #[test]
    fn two_configured_headers_agree_or_are_invalid() {
        let both = |a: &'static [u8], b: &'static [u8]| {
            find_in(&[("Idempotency-Key", a), ("X-IDEMPOTENCY-KEY", b)])
        };
        assert_eq!(both(b"u1", b"u1"), is("u1"));
        assert_eq!(both(b"u1", b"u2"), Err(InvalidReason::KeysDiffer));
        assert_eq!(find_in(&[("IDEMPOTENCY-KEY", b"u1"), ("x-other", b"u2")]), is("u1"));
    }

    proptest! {
        #[test]
        fn no_header_panics_and_every_key_is_visible(bytes in any::<Vec<u8>>()) {
            if HeaderValue::from_bytes(&bytes).is_ok()
                && let Ok(Some(key)) = find_in(&[("idempotency-key", &bytes)])
            {
                prop_assert!((1..=KEY_BYTES_MAX).contains(&key.len()));
                prop_assert!(key.bytes().all(|byte| byte.is_ascii_graphic()));
            }
        }

        /// The whitespace around a key and the quotes around it are not part of the key. All else
        /// is.
        #[test]
        fn bare_and_quoted_keys_are_compared_byte_for_byte(a in "[!-~]{1,20}", b in "[!-~]{1,20}") {
            let quoted = |key: &str| {
                format!("\"{}\"", key.replace('\\', "\\\\").replace('"', "\\\""))
            };
            prop_assert_eq!(key(&quoted(&a)), is(&a));
            prop_assert_eq!(a == b, key(&quoted(&a)) == key(&quoted(&b)));
        }
    }
}
