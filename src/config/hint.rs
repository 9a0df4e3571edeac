//! What may help where nothing better is known of a mistake: how the setting is written.

use super::effective::as_toml;
use super::problem::Key;
use super::source::Sources;

/// Examples of settings that have no built-in value, by the last part of their name.
const EXAMPLES: [(&str, &str); 17] = [
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
    ("tolerance", "`tolerance = \"5m\"`"),
    ("upstream", "`upstream = \"http://127.0.0.1:3000\"`"),
    ("url", "`url = \"http://127.0.0.1:3000/events/{key}\"`"),
];

const SECRET: &str =
    "`{ env = \"NAME\" }` names a variable that holds it, `{ file = \"/path\" }` a file";
const SENDER: &str = "`onceward providers NAME` shows what a built-in one knows of its sender";
const ALL: &str = "`onceward check --config FILE --effective` lists every setting once all is read";

/// How the setting at `key` is written.
pub(super) fn usual(sources: &Sources, key: &Key) -> String {
    if key.is_secret() {
        return SECRET.to_owned();
    }
    let is_index = |part: &&String| part.bytes().all(|byte| byte.is_ascii_digit());
    let named: Vec<String> = key.parts().iter().filter(|part| !is_index(part)).cloned().collect();
    let name = named.last().map_or("", String::as_str);
    let example = |part: &String| EXAMPLES.iter().find(|(known, _)| known == part);
    // The names in a table such as `done_when` are free.
    let example = named.iter().rev().take(2).find_map(example).map(|(_, text)| *text);
    let built_in = |key: Key| sources.built_in(&key).map(as_toml).filter(|text| text != "\"\"");
    match (built_in(Key::from_parts(named.clone())), example) {
        (Some(value), _) => format!("left out, `{name}` is `{value}`"),
        (None, Some(example)) => example.to_owned(),
        (None, None) if named.first().is_some_and(|table| table == "providers") => {
            SENDER.to_owned()
        }
        (None, None) => ALL.to_owned(),
    }
}
