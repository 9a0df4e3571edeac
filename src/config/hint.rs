//! What may help with a mistake.

use super::file;
use super::key::{Key, is_index};
use super::sources::Sources;

/// Examples of settings that have no built-in value, by the last part of their name.
const EXAMPLES: [(&str, &str); 18] = [
    ("answer_from", "it names one of the `[[routes.NAME.steps]]`; left out, it is the last one"),
    ("answer_within", "`answer_within = \"25s\"`"),
    ("ca", "`ca = \"/etc/onceward/ca.pem\"`"),
    ("done_when", "`done_when = { \"json:/status\" = \"processed\" }`"),
    ("forward_key", "`forward_key = \"idempotency-key\"`"),
    ("host", "`host = \"hooks.example.com\"`, without scheme, port and path"),
    ("listen", "`listen = \"127.0.0.1:8080\"`"),
    ("master", "`master = \"mymaster\"`"),
    ("name", "`name = \"ledger\"`"),
    ("path", "`path = \"/webhooks/orders\"`, or `\"/webhooks/*\"` for all below it"),
    ("provider", "`onceward providers` lists them; `[providers.NAME]` makes another"),
    ("reference", "`reference = \"json:/id\"`"),
    ("retry_status", "`retry_status = 503`"),
    ("steps", "`[[routes.NAME.steps]]` with a `name` and an `upstream`, for each receiver"),
    ("threads", "left out, there is one for each processor"),
    ("tolerance", "`tolerance = \"5m\"`"),
    ("upstream", "`upstream = \"http://127.0.0.1:3000\"`"),
    ("url", "`url = \"http://127.0.0.1:3000/events/{key}\"`"),
];

const SECRET: &str =
    "`{ env = \"NAME\" }` names a variable that holds it, `{ file = \"/path\" }` a file";
const SENDER: &str = "`onceward providers NAME` shows what a built-in one knows of its sender";
const ALL: &str = "`onceward check --config FILE --effective` lists every setting once all is read";

/// A table with more settings than these does not list them all in a hint.
const LISTED_MAX: usize = 20;

/// A longer name is not compared with the known ones. It is no slip of the finger.
const NAME_BYTES_MAX: usize = 100;

/// How the setting at `key` is written.
pub(super) fn usual(sources: &Sources, key: &Key) -> String {
    // People who write a secret in the open need to know where it belongs.
    if key.is_secret() {
        return SECRET.to_owned();
    }
    let named: Vec<String> = key.parts().iter().filter(|part| !is_index(part)).cloned().collect();
    let name = named.last().map_or("", String::as_str);
    let example = |part: &String| EXAMPLES.iter().find(|(known, _)| known == part);
    // The last part may be a free name, as in `done_when`. Then the table around it has the
    // example.
    let example = named.iter().rev().take(2).find_map(example).map(|(_, text)| *text);
    if let Some(hint) = set_by_provider(sources, key, name) {
        return hint;
    }
    let built_in = sources.built_in(&Key::from_parts(named.clone()));
    // An empty text stands for a setting that is not set, which shows nothing.
    match (built_in.map(file::as_toml).filter(|text| text != "\"\""), example) {
        (Some(value), _) => format!("left out, `{name}` is `{value}`"),
        (None, Some(example)) => example.to_owned(),
        (None, None) if named.first().is_some_and(|table| table == "providers") => {
            SENDER.to_owned()
        }
        (None, None) => ALL.to_owned(),
    }
}

/// What a setting of a route is if the route's provider sets it.
fn set_by_provider(sources: &Sources, key: &Key, name: &str) -> Option<String> {
    let route = Key::from_parts(key.parts().get(..2)?.to_vec());
    let provider = sources.value(&route.join("provider"))?.as_str()?;
    let value = file::as_toml(sources.value(&key.in_provider(provider)?)?);
    Some(format!("left out, `{name}` is `{value}`, as `{provider}` says"))
}

/// Which setting may have been meant by a name that is not known.
pub(super) fn for_unknown(name: &str, known: &[&str]) -> String {
    const LISTED: &str =
        "once this is mended, `onceward check --config FILE --effective` lists the keys";
    if let Some(nearest) = nearest(name, known.iter().copied()) {
        return format!("did you mean `{nearest}`?");
    }
    if known.is_empty() {
        return "this table has no keys".to_owned();
    }
    if known.len() <= LISTED_MAX {
        return format!("known here: {}", quoted_list(known));
    }
    let related: Vec<&str> = known.iter().copied().filter(|it| shares_a_word(name, it)).collect();
    if related.is_empty() {
        return LISTED.to_owned();
    }
    format!("did you mean one of {}? {LISTED}", quoted_list(&related))
}

fn quoted_list(names: &[&str]) -> String {
    let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    names.join(", ")
}

/// Whether a word of both names is the same: `timeout` and `attempt_timeout`.
fn shares_a_word(one: &str, other: &str) -> bool {
    one.split('_').any(|word| !word.is_empty() && other.split('_').any(|it| it == word))
}

/// The name that was most likely meant.
pub(crate) fn nearest<'n>(name: &str, known: impl Iterator<Item = &'n str>) -> Option<&'n str> {
    if name.len() > NAME_BYTES_MAX {
        return None;
    }
    let distance = |known: &'n str| (strsim::levenshtein(name, known), known);
    let (distance, nearest) = known.map(distance).min()?;
    (distance <= 1 + nearest.len() / 5).then_some(nearest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_name_in_a_large_table_is_told_the_related_ones() {
        let filling = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l", "m"];
        let known = [&filling[..], &filling[..], &["attempt_timeout", "connect_timeout"]].concat();
        let hint = for_unknown("timeout", &known);
        assert!(hint.starts_with("did you mean one of `attempt_timeout`, `connect_timeout`? once"));
        assert!(for_unknown("upstream", &known).starts_with("once this is mended"));
    }

    #[test]
    fn the_nearest_name_is_one_that_a_slip_of_the_finger_makes_of_it() {
        let known = ["retention", "lease"];
        assert_eq!(nearest("retenton", known.into_iter()), Some("retention"));
        assert_eq!(nearest("path", known.into_iter()), None);
        assert_eq!(nearest(&"retention".repeat(100), known.into_iter()), None);
    }
}
