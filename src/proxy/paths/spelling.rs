//! One spelling of a path that stands for all others.

use std::borrow::Cow;

use percent_encoding::percent_decode_str;

use super::shape::{with_single_slashes, with_slashes, without_dot_segments, without_parameters};

/// The normal form of a path (RFC 3986, 6.2.2, with doubled slashes merged): escapes of unreserved
/// characters are decoded, all other escapes are in upper case, dot segments are resolved. On a
/// prefix route it makes all spellings of a path one operation. A path in normal form does not
/// change.
pub(in crate::proxy) fn normal(path: &str) -> Cow<'_, str> {
    // Most paths are in normal form already. They are borrowed.
    if !path.contains('%') && !path.contains("//") && !path.contains("/.") {
        return Cow::Borrowed(path);
    }
    let escapes = with_escapes_of(path, |byte| !is_unreserved(byte));
    Cow::Owned(without_dot_segments(&with_single_slashes(&escapes)))
}

/// A reading of a path, as a request would spell it. Characters that a path cannot hold are escaped
/// (RFC 3986, 3.3). Escapes of characters that separate segments or parameters stay escapes.
pub(in crate::proxy) fn spelled(path: &str) -> String {
    let escapes = with_escapes_of(path, |byte| !stands_for_itself(byte));
    let mut spelled = String::with_capacity(escapes.len());
    let mut rest = escapes.as_str();
    while let Some(character) = rest.chars().next() {
        let (this, after) = rest.split_at(character.len_utf8());
        let ascii = u8::try_from(character).ok();
        let is_kept = match ascii {
            Some(b'%') => escaped(after).is_some(),
            Some(b'/' | b';') => true,
            Some(byte) => stands_for_itself(byte),
            None => false,
        };
        if is_kept {
            spelled.push_str(this);
        } else {
            this.bytes().for_each(|byte| push_escape(&mut spelled, byte));
        }
        rest = after;
    }
    spelled
}

/// The path after servers have decoded, resolved, merged and cut off all that they can, spelled as
/// in a request. A path in this form has one reading, apart from its case and a slash at its end.
/// None if its escapes are not UTF-8, because servers differ in how they read those.
pub(in crate::proxy) fn plainest(path: &str) -> Option<String> {
    // Each round makes the path shorter, so the loop ends. Bytes beyond ASCII stay escapes, so the
    // path stays text.
    let mut decoded = path.to_owned();
    loop {
        let next = with_escapes_of(&decoded, |byte| !byte.is_ascii());
        if next.len() == decoded.len() {
            break;
        }
        decoded = next;
    }
    percent_decode_str(&decoded).decode_utf8().ok()?;
    let bare = without_parameters(&with_slashes(&decoded));
    Some(spelled(&without_dot_segments(&with_single_slashes(&bare))))
}

/// The path with its escapes decoded, except for the escapes of bytes that `is_kept` names. These
/// become escapes in upper case. A `%` that begins no escape stays as it is.
fn with_escapes_of(path: &str, is_kept: impl Fn(u8) -> bool) -> String {
    let mut pieces = path.split('%');
    let mut written = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        let rest = piece.get(2..).unwrap_or_default();
        match escaped(piece) {
            Some(byte) if is_kept(byte) => push_escape(&mut written, byte),
            Some(byte) => written.push(char::from(byte)),
            None => {
                written.push('%');
                written.push_str(piece);
                continue;
            }
        }
        written.push_str(rest);
    }
    written
}

/// The byte that an escape stands for. `after` is the text after its `%`.
fn escaped(after: &str) -> Option<u8> {
    let digits = after.get(..2).filter(|it| it.bytes().all(|byte| byte.is_ascii_hexdigit()))?;
    u8::from_str_radix(digits, 16).ok()
}

fn push_escape(to: &mut String, byte: u8) {
    const DIGITS: [char; 16] =
        ['0', '1', '2', '3', '4', '5', '6', '7', '8', '9', 'A', 'B', 'C', 'D', 'E', 'F'];
    let digit = |value: u8| DIGITS.get(usize::from(value)).copied();
    to.push('%');
    to.extend(digit(byte >> 4));
    to.extend(digit(byte & 0xf));
}

/// The unreserved characters of RFC 3986, 2.3.
const fn is_unreserved(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~')
}

/// Whether a byte may stand in a path segment unescaped (RFC 3986, 3.3). `;` is excluded, because
/// some servers read parameters after it, and `*`, because it has a meaning in a route's path.
const fn stands_for_itself(byte: u8) -> bool {
    is_unreserved(byte)
        || matches!(
            byte,
            b'!' | b'$' | b'&' | b'\'' | b'(' | b')' | b'+' | b',' | b'=' | b':' | b'@'
        )
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::readings::readings;
    use super::*;

    #[test]
    fn all_spellings_have_one_normal_form() {
        for (path, expected) in [
            ("/st/acct", "/st/acct"),
            ("/st/%61cct", "/st/acct"),
            ("/st//acct", "/st/acct"),
            ("/st/./acct", "/st/acct"),
            ("/st/%2e/acct", "/st/acct"),
            ("/st/x/%2E./acct", "/st/acct"),
            ("/st/a%2fb%C3%a9", "/st/a%2Fb%C3%A9"),
            ("/st/100%", "/st/100%"),
            ("/st/%zz%7E", "/st/%zz~"),
            ("/st/acct/", "/st/acct/"),
            ("/st/acct/.", "/st/acct/"),
            ("/st/a;b=c", "/st/a;b=c"),
            ("/../st", "/st"),
            ("/%c3é", "/%C3é"),
        ] {
            assert_eq!(normal(path), expected, "{path}");
        }
    }

    #[test]
    fn a_reading_is_spelled_as_a_request_would_have_it() {
        for (reading, expected) in [
            ("/a/b", "/a/b"),
            ("/a b", "/a%20b"),
            ("/a%20b", "/a%20b"),
            ("/caf\u{e9}", "/caf%C3%A9"),
            ("/caf%c3%a9", "/caf%C3%A9"),
            ("/a%2cb", "/a,b"),
            ("/a%2fb", "/a%2Fb"),
            ("/a%3bb;c", "/a%3Bb;c"),
            ("/a\\b", "/a%5Cb"),
            ("/100%", "/100%25"),
            ("/a*b", "/a%2Ab"),
        ] {
            assert_eq!(spelled(reading), expected, "{reading}");
        }
    }

    #[test]
    fn every_path_has_a_form_that_all_receivers_read_alike() {
        for (path, expected) in [
            ("/w/..%2f", "/"),
            ("/w/%2e%2E/x", "/x"),
            ("/w/%252e%252e/x", "/x"),
            ("/w//x", "/w/x"),
            ("/w/./x/", "/w/x/"),
            ("/w%2Fx", "/w/x"),
            ("/w%255Cx", "/w/x"),
            ("/w\\x", "/w/x"),
            ("/w;v=1/x%3By", "/w/x"),
            ("/w/..;/x", "/x"),
            ("/%77", "/w"),
            ("/a%2Cb", "/a,b"),
            ("/a%2Ab", "/a%2Ab"),
            ("/caf%c3%a9", "/caf%C3%A9"),
            ("/caf\u{e9}", "/caf%C3%A9"),
            ("/a b", "/a%20b"),
            ("/100%25", "/100%25"),
            ("/100%2525", "/100%25"),
            ("/%25%37%37", "/w"),
        ] {
            assert_eq!(plainest(path).as_deref(), Some(expected), "{path}");
        }
        assert_eq!(plainest("/%AA"), None);
    }

    proptest! {
        #[test]
        fn a_plainest_form_is_its_own_plainest_form_and_has_one_reading(path in "/[a/.;%\\\\25eEfF\u{e9} ]{0,24}") {
            let normal = normal(&path);
            prop_assert!(normal.starts_with('/') && !normal.contains("//"));
            let Some(plainest) = plainest(&path) else { return Ok(()) };
            prop_assert_eq!(super::plainest(&plainest), Some(plainest.clone()));
            let readings = readings(&plainest).unwrap();
            prop_assert!(readings.iter().all(|it| spelled(it) == plainest), "{:?}", readings);
        }
    }
}
