//! The reader beside serde's tree: where they may differ, and that they agree everywhere else.

use proptest::prelude::*;
use serde_json::Value;

use super::{Found, Pointer, find};

/// What the tree makes of a body.
fn in_a_tree(body: &[u8], pointer: &str) -> Result<Option<Value>, serde_json::Error> {
    let tree: Value = serde_json::from_slice(body)?;
    Ok(tree.pointer(pointer).cloned())
}

/// Whether a member occurs twice anywhere, of which a tree keeps the last one.
fn has_twice(text: &str) -> bool {
    ["\"a\"", "\"b\"", "\"\\u0061\""].iter().any(|name| text.matches(name).count() > 1)
        || (text.contains("\"a\"") && text.contains("\"\\u0061\""))
}

fn value() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        Just("null".to_owned()),
        Just("true".to_owned()),
        "-?(0|[1-9][0-9]{0,30})(\\.[0-9]{1,3})?([eE][+-]?[0-9]{1,4})?",
        "\"[ -!#-\\[\\]-~é😀]{0,6}\"",
        prop::sample::select(vec![
            r#""\ud800""#,
            r#""\ud83d\ude00""#,
            r#""\ude00\ud83d""#,
            r#""\u0000\n\/""#,
            r#""\x""#,
            "\"\t\"",
            "NaN",
            "01",
            "+1",
            "1.",
            "nul",
        ])
        .prop_map(str::to_owned),
    ];
    leaf.prop_recursive(5, 24, 4, |inner| {
        let name = prop::sample::select(vec![r#""a""#, r#""b""#, r#""\u0061""#, r#""\ud800""#]);
        let space = prop::sample::select(vec!["", " ", "\r\n", "\t", "\u{c}"]);
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4)
                .prop_map(|items| format!("[{}]", items.join(","))),
            prop::collection::vec((name, space, inner), 0..4).prop_map(|members| {
                let members = members.iter().map(|(name, space, it)| format!("{name}{space}:{it}"));
                format!("{{{}}}", members.collect::<Vec<_>>().join(","))
            }),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    /// What the tree reads, this reader reads, and finds the same value there.
    #[test]
    fn what_a_tree_reads_is_read_alike(text in value(), cut in any::<prop::sample::Index>(), whole: bool) {
        let end = if whole { text.len() } else { cut.index(text.len() + 1) };
        let body = text.as_bytes().get(..end).unwrap();
        for pointer in ["/a", "/a/b", "/b/a", "/0", "/1/a"] {
            let found = find(body, &pointer.parse::<Pointer>().unwrap());
            match (in_a_tree(body, pointer), found) {
                (Ok(None), found) => prop_assert!(matches!(found, Found::Absent | Found::Ambiguous)),
                (Ok(Some(value)), Found::Values(raw)) => {
                    let raw: Value = serde_json::from_str(raw.first().unwrap()).unwrap();
                    prop_assert!(raw == value || has_twice(&text), "{text} {pointer}");
                }
                // A member on the way occurs twice: the tree took the last one.
                (Ok(_), Found::Ambiguous) => prop_assert!(has_twice(&text), "{text}"),
                (Ok(Some(_)), found) => {
                    prop_assert!(has_twice(&text), "{text} {pointer} {found:?}");
                }
                // What the tree does not read is read here only for one of the wanted differences.
                (Err(_), Found::NotJson) => {}
                (Err(_), _) => prop_assert!(is_wanted(body), "{text}"),
            }
        }
    }

    /// Bytes that are no UTF-8 make the body unreadable, wherever they stand.
    #[test]
    fn what_is_not_utf_8_is_not_read(text in value(), at in any::<prop::sample::Index>()) {
        let mut body = text.into_bytes();
        let at = at.index(body.len() + 1);
        body.insert(at, 0xff);
        prop_assert_eq!(find(&body, &"/a".parse().unwrap()), Found::NotJson);
    }
}

/// The differences that are wanted: escapes that stand for no character, and numbers of any size.
/// Whether the body is read by the tree once these are taken out.
fn is_wanted(body: &[u8]) -> bool {
    let text = std::str::from_utf8(body).unwrap();
    let mended =
        text.replace(r"\ud83d\ude00", "").replace(r"\ude00\ud83d", "").replace(r"\ud800", "");
    let mut small = String::new();
    let mut digits = mended.chars().peekable();
    while let Some(character) = digits.next() {
        small.push(character);
        // An exponent of any size becomes a small one.
        if matches!(character, 'e' | 'E')
            && small.chars().rev().nth(1).is_some_and(|c| c.is_ascii_digit())
        {
            while let Some(next) = digits.next_if(|c| matches!(c, '+' | '-' | '0'..='9')) {
                if !small.ends_with(['0', '1', '2', '3', '4', '5', '6', '7', '8', '9']) {
                    small.push(next);
                }
            }
        }
    }
    serde_json::from_str::<Value>(&small).is_ok()
}

/// Each wanted difference by itself: the tree refuses, this reader reads.
#[test]
fn the_wanted_differences_are_these() {
    let deep = |levels: usize| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
    for beside in [
        r#""\ud800""#.to_owned(),
        r#"{"\udc00":1}"#.to_owned(),
        "1e999999".to_owned(),
        deep(200),
        deep(1000),
    ] {
        let body = format!(r#"{{"x":{beside},"a":1}}"#);
        assert!(in_a_tree(body.as_bytes(), "/a").is_err(), "{beside:.20}");
        let found = find(body.as_bytes(), &"/a".parse().unwrap());
        assert_eq!(found, Found::Values(vec!["1"]), "{beside:.20}");
    }
    let marked = b"\xef\xbb\xbf{\"a\":1}";
    assert!(in_a_tree(marked, "/a").is_err());
    assert_eq!(find(marked, &"/a".parse().unwrap()), Found::Values(vec!["1"]));
    // The tree takes one of two; nobody can say which the sender meant.
    let twice = br#"{"a":1,"a":2}"#;
    assert!(in_a_tree(twice, "/a").is_ok());
    assert_eq!(find(twice, &"/a".parse().unwrap()), Found::Ambiguous);
}
