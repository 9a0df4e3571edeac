//! Writes a JSON text without some of its members and without whitespace, for a fingerprint.

use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::pointer::{Pointer, Token};
use super::text::Document;

impl Document<'_> {
    /// The body as if the sender had left these members out. `None` if it is not JSON.
    ///
    /// Everything else stays as it is written: the digits of numbers, the order of members, the
    /// escapes in texts. A member that is left out here, and one that was never there, give the
    /// same bytes.
    pub(crate) fn without(&self, omitted: &[Pointer]) -> Option<Vec<u8>> {
        let whole = self.text()?.trim_ascii();
        let omitted: Vec<_> = omitted.iter().map(Pointer::tokens).collect();
        let mut out = Vec::with_capacity(whole.len());
        write(whole, &omitted, &mut out).ok()?;
        Some(out)
    }
}

/// Recurses along the pointers only: at most as deep as the longest of them, whatever the body is.
fn write(text: &str, omitted: &[&[Token]], out: &mut Vec<u8>) -> Result<(), serde_json::Error> {
    let visitor = OmitVisitor { omitted, out };
    match text.bytes().next() {
        Some(b'{') if !omitted.is_empty() => {
            serde_json::Deserializer::from_str(text).deserialize_map(visitor)
        }
        Some(b'[') if !omitted.is_empty() => {
            serde_json::Deserializer::from_str(text).deserialize_seq(visitor)
        }
        Some(_) | None => {
            write_compact(text, visitor.out);
            Ok(())
        }
    }
}

/// Writes a text without the whitespace between its tokens. The text is known to be JSON.
fn write_compact(text: &str, out: &mut Vec<u8>) {
    let mut in_string = false;
    let mut escaped = false;
    for byte in text.bytes() {
        if in_string {
            in_string = escaped || byte != b'"';
            escaped = byte == b'\\' && !escaped;
        } else if byte.is_ascii_whitespace() {
            continue;
        } else {
            in_string = byte == b'"';
        }
        out.push(byte);
    }
}

/// A member's name after its escapes are decoded. An escape that stands for no character, a lone
/// surrogate, is kept as the three bytes of its UTF-8 form, as `serde_json` gives it to
/// `visit_bytes`.
struct Name(Vec<u8>);

impl<'de> Deserialize<'de> for Name {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Bytes;
        impl Visitor<'_> for Bytes {
            type Value = Name;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a member's name")
            }

            fn visit_bytes<E>(self, name: &[u8]) -> Result<Name, E> {
                Ok(Name(name.to_vec()))
            }
        }
        from.deserialize_bytes(Bytes)
    }
}

/// Writes a name in one form, however it was escaped.
fn write_name(name: &[u8], out: &mut Vec<u8>) -> Result<(), serde_json::Error> {
    if let Ok(name) = std::str::from_utf8(name) {
        return serde_json::to_writer(out, name);
    }
    // The name is not UTF-8, so it is written in hexadecimal. The byte 0xff before it occurs in no
    // UTF-8 text, so no other name gives these bytes. They are only hashed, and never read again.
    out.push(0xff);
    out.extend_from_slice(hex::encode(name).as_bytes());
    Ok(())
}

/// Writes the members of one object, or the items of one array, that are not omitted.
struct OmitVisitor<'a> {
    omitted: &'a [&'a [Token]],
    out: &'a mut Vec<u8>,
}

impl OmitVisitor<'_> {
    /// The rests of the pointers that lead into a member or an item. `None` if one of them ends
    /// there, so that the member or item is omitted.
    fn below<'t>(
        omitted: &[&'t [Token]],
        leads_here: impl Fn(&Token) -> bool,
    ) -> Option<Vec<&'t [Token]>> {
        let steps = omitted.iter().filter_map(|tokens| tokens.split_first());
        let below: Vec<_> =
            steps.filter(|(step, _)| leads_here(step)).map(|(_, rest)| rest).collect();
        if below.iter().any(|rest| rest.is_empty()) { None } else { Some(below) }
    }
}

impl<'de> Visitor<'de> for OmitVisitor<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object or an array")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<(), A::Error> {
        // An opening brace before the first member that is kept, a comma before each later one.
        let mut separator = b'{';
        while let Some(Name(name)) = members.next_key()? {
            let value: &RawValue = members.next_value()?;
            let leads_here =
                |step: &Token| matches!(step, Token::Name(wanted) if wanted.as_bytes() == name);
            let Some(below) = Self::below(self.omitted, leads_here) else {
                continue;
            };
            self.out.push(std::mem::replace(&mut separator, b','));
            write_name(&name, self.out).map_err(A::Error::custom)?;
            self.out.push(b':');
            write(value.get(), &below, self.out).map_err(A::Error::custom)?;
        }
        self.out.extend_from_slice(if separator == b'{' { b"{}" } else { b"}" });
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        // As for objects.
        let mut separator = b'[';
        let mut index = 0;
        while let Some(item) = items.next_element::<&RawValue>()? {
            let leads_here = |step: &Token| match step {
                Token::Each => true,
                Token::Name(name) => Token::index(name) == Some(index),
            };
            let below = Self::below(self.omitted, leads_here);
            // Omitted items count: a pointer names an index in the body as it was received.
            index += 1;
            let Some(below) = below else { continue };
            self.out.push(std::mem::replace(&mut separator, b','));
            write(item.get(), &below, self.out).map_err(A::Error::custom)?;
        }
        self.out.extend_from_slice(if separator == b'[' { b"[]" } else { b"]" });
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn without(body: &[u8], omitted: &[Pointer]) -> Option<Vec<u8>> {
        Document::new(body).without(omitted)
    }

    fn omit(body: &str, pointers: &[&str]) -> Option<String> {
        let pointers: Vec<Pointer> = pointers.iter().map(|text| text.parse().unwrap()).collect();
        without(body.as_bytes(), &pointers).map(|bytes| String::from_utf8(bytes).unwrap())
    }

    #[test]
    fn an_omitted_member_and_one_that_was_never_there_are_equal() {
        for (body, without) in [
            (r#"{"a":1,"x":2}"#, r#"{"a":1}"#),
            (r#"{"x":2,"a":1}"#, r#"{"a":1}"#),
            (r#"{"x":{"y":[1]}}"#, "{}"),
            (r#"{"\u0078":2,"a":1}"#, r#"{"a":1}"#),
            (r#"{"x":1,"x":2,"a":1}"#, r#"{"a":1}"#),
            (" { \"a\" : 1 , \"x\" : 2 } ", r#"{"a":1}"#),
        ] {
            assert_eq!(omit(body, &["/x"]).as_deref(), Some(without), "{body}");
            assert_eq!(omit(without, &["/x"]).as_deref(), Some(without), "{without}");
        }
    }

    #[test]
    fn members_of_each_item_and_items_themselves_can_be_omitted() {
        let body = r#"{"items":[{"id":1,"at":5},{"id":2},7],"at":9}"#;
        let each = r#"{"items":[{"id":1},{"id":2},7],"at":9}"#;
        assert_eq!(omit(body, &["/items/*/at"]).as_deref(), Some(each));
        let second = r#"{"items":[{"id":1,"at":5},7],"at":9}"#;
        assert_eq!(omit(body, &["/items/1"]).as_deref(), Some(second));
        let both = r#"{"items":[{"id":1}]}"#;
        assert_eq!(
            omit(body, &["/items/1", "/at", "/items/2", "/items/0/at"]).as_deref(),
            Some(both)
        );
    }

    /// What is kept is the text, not what a parser made of it.
    #[test]
    fn all_else_stays_as_it_is_written() {
        let body = r#"{"n":8202522731445525543,"f":1.0,"e":1e0,"b":2,"a":"\u0041 \" [","x":1}"#;
        let kept = r#"{"n":8202522731445525543,"f":1.0,"e":1e0,"b":2,"a":"\u0041 \" ["}"#;
        assert_eq!(omit(body, &["/x"]).as_deref(), Some(kept));
        assert_eq!(omit(r#"[ 1, "a b" ]"#, &["/x"]).as_deref(), Some(r#"[1,"a b"]"#));
        assert_eq!(omit(" 1e999 ", &["/x"]).as_deref(), Some("1e999"));
    }

    #[test]
    fn what_is_not_json_is_left_alone() {
        for body in ["", "{", "{} {}", "\u{feff}\u{feff}{}", "a=1", r#"{"a":01}"#] {
            assert_eq!(omit(body, &["/x"]), None, "{body}");
        }
        assert_eq!(without(b"\"\xff\"", &[]), None);
    }

    /// What is not on the way need not be readable.
    #[test]
    fn a_name_that_is_no_text_stays_and_is_told_from_others() {
        let x = "/x".parse::<Pointer>().unwrap();
        let omit = |body: &str| without(body.as_bytes(), std::slice::from_ref(&x)).unwrap();
        let one = omit(r#"{"\ud800":1,"x":2}"#);
        assert_eq!(one, omit(r#"{"\uD800":1}"#));
        assert_ne!(one, omit(r#"{"\ud801":1,"x":2}"#));
        assert_eq!(omit("\u{feff}{\"x\":1}"), b"{}");
    }

    #[test]
    fn hostile_nesting_takes_no_stack() {
        let open = "[".repeat(500_000);
        assert_eq!(omit(&open, &["/x", "/*/0"]), None);
        assert_eq!(omit(&format!("{open}{}", "]".repeat(500_000)), &["/x", "/*/0"]), None);
        let deep = format!("{}{}", "[".repeat(1000), "]".repeat(1000));
        assert_eq!(omit(&deep, &["/x", "/*/0"]).map(|out| out.len()), Some(4));
    }

    proptest! {
        #[test]
        fn whitespace_is_all_that_is_lost_and_nothing_panics(
            body in r#"[\[\]{}",:\\ax0-9. ]{0,24}"#, bytes in any::<Vec<u8>>(),
        ) {
            let pointers = ["/x".parse::<Pointer>().unwrap(), "/a/*/x".parse().unwrap()];
            let _ = without(&bytes, &pointers);
            if let Some(out) = without(body.as_bytes(), &pointers) {
                let again = without(&out, &pointers);
                prop_assert!(again.is_none_or(|again| again == out));
            }
        }
    }
}
