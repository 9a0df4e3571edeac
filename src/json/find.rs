//! Follows a pointer through a JSON text.

use serde_json::value::RawValue;

use super::pointer::{Pointer, Token};
use super::seeds::{Item, Items, Member, MemberMatch, parse};
use super::text::Document;

/// What was found at a pointer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Found<'b> {
    /// The body is not one JSON text in UTF-8, or it is nested too deeply.
    NotJson,
    /// Nothing.
    Absent,
    /// The values as they are written: one, or with `*` one from each item of the array.
    Values(Vec<&'b str>),
    /// Some items of the array have the value, and some do not.
    InSomeItems,
    /// A member on the way occurs twice. RFC 8259, 4 leaves it open which one counts, so the
    /// upstream may read another one than we do.
    Ambiguous,
    /// The array of `*` has too many items.
    TooMany,
}

/// Follows the pointer through a body of which only one value is needed.
pub(crate) fn find<'b>(body: &'b [u8], pointer: &Pointer) -> Found<'b> {
    Document::new(body).find(pointer)
}

impl<'b> Document<'b> {
    /// Follows the pointer through the whole body.
    pub(crate) fn find(&self, pointer: &Pointer) -> Found<'b> {
        let Some(text) = self.text() else { return Found::NotJson };
        follow(text, pointer.tokens()).unwrap_or(Found::NotJson)
    }
}

/// Recurses once for each step of the pointer. The body does not influence the depth.
fn follow<'b>(text: &'b str, tokens: &[Token]) -> Result<Found<'b>, serde_json::Error> {
    let Some((token, rest)) = tokens.split_first() else {
        return Ok(Found::Values(vec![text]));
    };
    // The slice of a value has no whitespace around it; only the whole body may have some.
    let opening = text.bytes().find(|byte| !byte.is_ascii_whitespace());
    match (opening, token) {
        (Some(b'{'), Token::Name(name)) => match parse(text, Member(name))? {
            MemberMatch::Absent => Ok(Found::Absent),
            MemberMatch::One(value) => follow(value.get(), rest),
            MemberMatch::Duplicate => Ok(Found::Ambiguous),
        },
        (Some(b'['), Token::Name(name)) => match parse(text, Item(Token::index(name)))? {
            Some(item) => follow(item.get(), rest),
            None => Ok(Found::Absent),
        },
        (Some(b'['), Token::Each) => Ok(match parse(text, Items)? {
            Some(items) => each(&items, rest)?,
            None => Found::TooMany,
        }),
        // `*` at an object, or any further step at a text or a number, leads nowhere.
        (Some(_) | None, Token::Name(_) | Token::Each) => Ok(Found::Absent),
    }
}

/// Follows the rest of the pointer in each item of an array.
fn each<'b>(items: &[&'b RawValue], rest: &[Token]) -> Result<Found<'b>, serde_json::Error> {
    let mut values = Vec::with_capacity(items.len());
    let mut absent = false;
    for item in items {
        match follow(item.get(), rest)? {
            Found::Values(found) => values.extend(found),
            // Not an error yet: a pointer that leads to nothing in every item is simply absent.
            Found::Absent => absent = true,
            other @ (Found::NotJson | Found::InSomeItems | Found::Ambiguous | Found::TooMany) => {
                return Ok(other);
            }
        }
    }
    Ok(match (values.is_empty(), absent) {
        (true, _) => Found::Absent,
        (false, true) => Found::InSomeItems,
        (false, false) => Found::Values(values),
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::json::seeds::ITEMS_MAX;
    use crate::json::text;

    fn at<'b>(pointer: &str, body: &'b [u8]) -> Found<'b> {
        find(body, &pointer.parse().unwrap())
    }

    fn values<'b>(values: &[&'b str]) -> Found<'b> {
        Found::Values(values.to_vec())
    }

    fn first(found: &Found<'_>) -> Option<String> {
        if let Found::Values(values) = found { Some(values.first()?.to_string()) } else { None }
    }

    /// No digit is lost, no spelling is changed.
    #[test]
    fn a_value_is_found_as_it_is_written() {
        let forty = "1234567890123456789012345678901234567890";
        for written in [
            "8202522731445525542",
            forty,
            "1",
            "1.0",
            "1e0",
            "-0",
            "1e999",
            "\"1\"",
            "\"\\u0031\"",
            "null",
            "true",
            "[1, 2]",
            "{ }",
        ] {
            let body = format!("{{\"a\":[{{}}],\"id\" : {written} ,\"z\":0}}");
            assert_eq!(at("/id", body.as_bytes()), values(&[written]), "{written}");
        }
    }

    /// A pointer leads to one place, not to the first member of that name anywhere.
    #[test]
    fn a_pointer_leads_to_one_place() {
        let body =
            br#"{"request":{"id":"req_9"},"data":{"a/b":[{"m~n":1},{"m~n":2}],"":3},"id":4}"#;
        assert_eq!(at("/id", body), values(&["4"]));
        assert_eq!(at("/request/id", body), values(&["\"req_9\""]));
        assert_eq!(at("/data/a~1b/1/m~0n", body), values(&["2"]));
        assert_eq!(at("/data/", body), values(&["3"]));
        for absent in [
            "/ID",
            "/data/id",
            "/data/a~1b/2/m~0n",
            "/data/a~1b/01",
            "/data/a~1b/-",
            "/id/0",
            "/*",
            "/data/*/id",
            "/request/id/length",
        ] {
            assert_eq!(at(absent, body), Found::Absent, "{absent}");
        }
    }

    #[test]
    fn each_item_gives_its_value_in_order() {
        let body = br#"{"items":[{"id":2},{"id":"a"},{"id":[1]}],"some":[{"id":1},{}],"none":[]}"#;
        assert_eq!(at("/items/*/id", body), values(&["2", "\"a\"", "[1]"]));
        assert_eq!(at("/items/*/x", body), Found::Absent);
        assert_eq!(at("/some/*/id", body), Found::InSomeItems);
        assert_eq!(at("/none/*/id", body), Found::Absent);
        assert_eq!(at("/*", b"[1, 2]"), values(&["1", "2"]));
        assert_eq!(at("/*/id", br#"[{"id":1},{"id":2,"id":3}]"#), Found::Ambiguous);
    }

    #[test]
    fn the_items_of_a_key_are_bounded() {
        let array = |items: usize| format!("[{}0]", "0,".repeat(items - 1));
        let most = array(ITEMS_MAX);
        assert!(matches!(at("/*", most.as_bytes()), Found::Values(all) if all.len() == ITEMS_MAX));
        assert_eq!(at("/*", array(ITEMS_MAX + 1).as_bytes()), Found::TooMany);
        let broken = array(ITEMS_MAX + 9).replace(']', "");
        assert_eq!(at("/*", broken.as_bytes()), Found::NotJson);
    }

    /// Bodies on which parsers disagree.
    #[test]
    fn a_hostile_body_is_read_in_one_way_or_not_at_all() {
        let a = values(&["\"a\""]);
        let table: &[(&[u8], Found<'_>)] = &[
            (br#"{"id":"a"}"#, a.clone()),
            (b" \t\r\n{\"id\":\"a\"}\r\n", a.clone()),
            (br#"{"\u0069d":"a"}"#, a.clone()),
            (br#"{"id":"a","ID":"b","Id":"c"}"#, a.clone()),
            (br#"{"id":"a","id\u0000":"b"}"#, a.clone()),
            (br#"{"id":"a","x":{"id":"b"}}"#, a.clone()),
            (br#"{"id":"a","x":"\"id\":\"b\""}"#, a.clone()),
            (br#"{"id":"a","x":1,"x":2}"#, a.clone()),
            (br#"{"id":"a","x":1e999}"#, a.clone()),
            (br#"{"id":"a","x":"\ud800"}"#, a.clone()),
            (br#"{"id":"a","id":"b"}"#, Found::Ambiguous),
            (br#"{"id":"a","id":"a"}"#, Found::Ambiguous),
            (br#"{"id":"a","\u0069\u0064":"b"}"#, Found::Ambiguous),
            (br#"{"id":null,"id":"a"}"#, Found::Ambiguous),
            (br#"{"id":"a","x":1,"id":{}}"#, Found::Ambiguous),
            (br#"{"id":"a","id":"b"} x"#, Found::NotJson),
            (br#"{"id":"a"}{"id":"b"}"#, Found::NotJson),
            (br#"{"id":"a"},"#, Found::NotJson),
            (br#"{"id":"a"} // x"#, Found::NotJson),
            (br#"{"id":"a",}"#, Found::NotJson),
            (br#"{"id":"a""#, Found::NotJson),
            (br"{'id':'a'}", Found::NotJson),
            (br#"{id:"a"}"#, Found::NotJson),
            (br#"/**/{"id":"a"}"#, Found::NotJson),
            (b"{\"id\":\"a\"}\0", Found::NotJson),
            (b"\x0c{\"id\":\"a\"}", Found::NotJson),
            (b"\xef\xbb\xbf{\"id\":\"a\"}", a.clone()),
            (b"\xef\xbb\xbf\xef\xbb\xbf{\"id\":\"a\"}", Found::NotJson),
            (b"{\0\"\0i\0d\0\"\0:\0\"\0a\0\"\0}\0", Found::NotJson),
            (b"\xfe\xff\0{\0\"\0i\0d\0\"\0:\0\"\0a\0\"\0}", Found::NotJson),
            (b"{\"id\":\"\xff\"}", Found::NotJson),
            (b"{\"id\":\"a\",\"x\":\"\xc0\x80\"}", Found::NotJson),
            (b"{\"id\":\"a\nb\"}", Found::NotJson),
            (br#"{"id":"\x61"}"#, Found::NotJson),
            (br#"{"id":01}"#, Found::NotJson),
            (br#"{"id":+1}"#, Found::NotJson),
            (br#"{"id":.5}"#, Found::NotJson),
            (br#"{"id":0x1}"#, Found::NotJson),
            (br#"{"id":NaN}"#, Found::NotJson),
            (br#"{"id":Infinity}"#, Found::NotJson),
            (br#"{"id":1_000}"#, Found::NotJson),
            (br#"{"id":True}"#, Found::NotJson),
            (br#"{"\ud800":1,"id":"a"}"#, a.clone()),
            (br#"{"\ud800":1,"\ud800":2,"id":"a"}"#, a.clone()),
            (b"{\"x\ny\":1,\"id\":\"a\"}", Found::NotJson),
            (b"id=a", Found::NotJson),
            (b"<id>a</id>", Found::NotJson),
            (b"", Found::NotJson),
            (b"  ", Found::NotJson),
            (br#"[{"id":"a"}]"#, Found::Absent),
            (br#""id""#, Found::Absent),
            (b"null", Found::Absent),
            (b"{}", Found::Absent),
        ];
        for (body, expected) in table {
            assert_eq!(at("/id", body), *expected, "{:?}", String::from_utf8_lossy(body));
        }
    }

    #[test]
    fn hostile_nesting_takes_no_stack() {
        const LEVELS: usize = 1 << 20;
        let open = "[".repeat(LEVELS);
        let deep = format!("{open}{}", "]".repeat(LEVELS));
        let objects = "{\"id\":".repeat(LEVELS / 6);
        for pointer in ["/id", "/0/0/0", "/*/0/0"] {
            for body in [&open, &objects, &deep] {
                assert_eq!(at(pointer, body.as_bytes()), Found::NotJson);
            }
        }
    }

    #[test]
    fn what_is_not_on_the_way_may_be_deep() {
        let beside = |levels: usize| {
            let open = "[".repeat(levels);
            let close = "]".repeat(levels);
            format!("{{\"x\":{open}{close},\"id\":7}}")
        };
        assert_eq!(at("/id", beside(text::DEPTH_MAX - 1).as_bytes()), values(&["7"]));
        assert_eq!(at("/id", beside(text::DEPTH_MAX).as_bytes()), Found::NotJson);
    }

    proptest! {
        #[test]
        fn no_body_panics(bytes in any::<Vec<u8>>(), text in r#"[\[\]{}",:\\idu06x0-9. ]{0,24}"#) {
            for pointer in ["/id", "/id/0", "/*/id", "/0", "/*"] {
                at(pointer, &bytes);
                at(pointer, text.as_bytes());
            }
        }

        /// A tree agrees wherever it loses nothing.
        #[test]
        fn a_tree_agrees(name in "[a-d]{1,2}", value in any::<i64>(), names in "[a-d]{1,2}") {
            let text = format!("{{\"{name}\":{value},\"x\":{{\"{names}\":1}}}}");
            let tree: serde_json::Value = serde_json::from_str(&text).unwrap();
            let pointer = format!("/{names}");
            let expected = tree.pointer(&pointer).map(ToString::to_string);
            prop_assert_eq!(first(&at(&pointer, text.as_bytes())), expected);
        }
    }
}
