//! `onceward providers`: lists the built-in presets of senders, or shows one.

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::output::Exit;
use crate::config::{Config, captured, nearest};
use crate::provider::{Preset, preset, presets};
use crate::proxy::RouteSettings;

/// List the senders that are known, or show what is known of one
///
/// A route with `provider = "NAME"` takes from the preset every setting that it does not have
/// itself.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example: onceward providers stripe")]
pub(super) struct Args {
    /// The name of a sender
    #[arg(value_name = "NAME")]
    name: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// There is no preset with this name.
#[derive(Debug, thiserror::Error)]
#[error("no provider `{}` is built in", .0.escape_debug())]
pub(super) struct Unknown(String);

impl Unknown {
    pub(super) fn named(name: &str) -> Self {
        Self(name.to_owned())
    }
}

impl From<&Unknown> for Exit {
    fn from(unknown: &Unknown) -> Self {
        let known = presets().iter().map(|preset| preset.name);
        let hint = nearest(&unknown.0, known).map_or_else(
            || "`onceward providers` lists those that are".to_owned(),
            |nearest| format!("did you mean `{nearest}`?"),
        );
        Self { status: 2, ..Self::failed(unknown) }.with_hint(&hint)
    }
}

/// Why nothing is shown. The exit status is 2.
#[derive(Debug, thiserror::Error)]
enum Error {
    #[error(transparent)]
    Unknown(#[from] Unknown),
    /// A test shows that this does not happen: every preset is TOML.
    #[error("a preset is not TOML")]
    Preset(#[from] toml::de::Error),
}

pub(super) fn run(args: &Args) -> Exit {
    let shown = match &args.name {
        None => list(args.json),
        Some(name) => match preset(name) {
            Some(preset) => one(preset, args.json),
            None => Err(Unknown::named(name).into()),
        },
    };
    match shown {
        Ok(text) => Exit::done(text),
        Err(Error::Unknown(unknown)) => (&unknown).into(),
        Err(error @ Error::Preset(_)) => Exit { status: 2, ..Exit::failed(&error) },
    }
}

fn list(as_json: bool) -> Result<String, Error> {
    let mut lines = String::new();
    let mut listed = Vec::new();
    for preset in presets() {
        let known = known(preset)?;
        let title = text(&known, "/title").unwrap_or(preset.name);
        // Writing to a string does not fail.
        let _written = writeln!(lines, "{:<18} {title}", preset.name);
        listed.push(json!({ "name": preset.name, "title": title, "signs": preset.signs() }));
    }
    if as_json {
        return Ok(format!("{:#}\n", json!({ "providers": listed })));
    }
    let count = listed.len();
    Ok(format!("{lines}\n{count} senders; `onceward providers NAME` shows what is known of one\n"))
}

fn one(preset: &Preset, as_json: bool) -> Result<String, Error> {
    let mut known = known(preset)?;
    if as_json {
        if let Value::Object(known) = &mut known {
            known.insert("name".to_owned(), json!(preset.name));
        }
        return Ok(format!("{known:#}\n"));
    }
    let title = text(&known, "/title").unwrap_or(preset.name);
    let mut page = format!("{title}\n\n");
    for line in about(preset) {
        let _written = writeln!(page, "{line}");
    }
    let route = Config::of_preset(preset.name).and_then(Result::ok);
    for (name, value) in of_key(route.as_ref()).into_iter().chain(rows(&known)) {
        let _written = writeln!(page, "  {name:<16} {value}");
    }
    let own = |pointer| list_of(&known, pointer).into_iter().map(str::to_owned).collect();
    let captured = route.as_ref().and_then(captured).into_iter().collect();
    let lists: [(_, Vec<String>); 4] = [
        ("One captured request", captured),
        ("Not the event", not_the_event(&known)),
        ("Worth knowing", own("/facts/notes")),
        ("Not confirmed", own(UNCONFIRMED)),
    ];
    for (heading, items) in lists.into_iter().filter(|(_, items)| !items.is_empty()) {
        let _written = write!(page, "\n  {heading}:\n    {}\n", items.join("\n    "));
    }
    Ok(page)
}

const UNCONFIRMED: &str = "/facts/unconfirmed";

fn known(preset: &Preset) -> Result<Value, Error> {
    Ok(toml::from_str(preset.toml)?)
}

/// The comment at the top of a preset's file, without its title.
fn about(preset: &Preset) -> Vec<String> {
    let lines = preset.toml.lines().map_while(|line| line.strip_prefix('#'));
    let indented = |line: &str| format!("  {}", line.trim()).trim_end().to_owned();
    // The first line is the title, which is printed already, and the second one is empty.
    let mut lines: Vec<String> = lines.skip(2).map(indented).collect();
    if !lines.is_empty() {
        lines.push(String::new());
    }
    lines
}

/// The rows about the idempotency key. They come from a whole route, so that they also show what is
/// built in where the preset says nothing.
fn of_key(route: Option<&RouteSettings>) -> Vec<(&'static str, String)> {
    let Some(RouteSettings { key, .. }) = route else {
        return Vec::new();
    };
    let headers: Vec<String> = key.headers.iter().map(|name| format!("header:{name}")).collect();
    let id = match headers.as_slice() {
        [] => key.event.id.to_string(),
        headers => format!("{}, else {}", headers.join(" or "), key.event.id),
    };
    let scope: Vec<String> = key.scope.iter().map(ToString::to_string).collect();
    let mut rows = vec![("key", id), ("type", key.event.kind.to_string())];
    if !scope.is_empty() {
        rows.push(("within", scope.join(" + ")));
    }
    rows
}

/// The rows about everything else.
fn rows(known: &Value) -> Vec<(&'static str, String)> {
    let own = |pointer| text(known, pointer).map(str::to_owned);
    let signature = match (own("/signature/scheme"), own("/signature/header")) {
        (None, _) => "none".to_owned(),
        (Some(scheme), None) => scheme,
        (Some(scheme), Some(header)) => format!("{scheme} in {header}"),
    };
    [
        ("without a key", own("/when_key_missing")),
        ("remembered for", own("/retention")),
        ("replayed", own("/replay/remember").map(|_| "only to copies in flight".to_owned())),
        ("a copy waits", own("/answer_within")),
        ("signature", Some(signature)),
        ("tolerance", own("/signature/tolerance")),
        ("its secret", own("/facts/secret")),
        ("handshakes", joined(&handshakes(known))),
        ("done means", own("/facts/success")),
        ("it waits", own("/facts/patience")),
        ("on failure", own("/facts/on_failure")),
        ("tries again for", own("/facts/retry_window")),
        ("after statuses", joined(&list_of(known, "/facts/retried"))),
        ("but not after", joined(&list_of(known, "/facts/not_retried"))),
        ("final to it", joined(&list_of(known, "/facts/final"))),
        ("by hand", own("/facts/resend")),
        ("by hand for", own("/facts/resend_window")),
        ("stops after", own("/facts/disabled_after")),
        ("largest event", own("/facts/largest_event")),
        ("batches", own("/facts/batch")),
        ("changes", joined(&list_of(known, "/fingerprint/ignore"))),
    ]
    .into_iter()
    .filter_map(|(name, value)| Some((name, value?)))
    .collect()
}

fn handshakes(known: &Value) -> Vec<String> {
    let handshakes = known.get("handshakes").and_then(Value::as_array).into_iter().flatten();
    // A handshake is signed unless the preset says that it is not.
    let shown = |handshake: &Value| {
        let signed = handshake.get("signed").and_then(Value::as_bool).unwrap_or(true);
        let name = text(handshake, "/name").unwrap_or("handshake");
        format!("{name} ({})", if signed { "signed" } else { "not signed" })
    };
    handshakes.map(shown).collect()
}

fn not_the_event(known: &Value) -> Vec<String> {
    let named = known.pointer("/facts/not_the_event").and_then(Value::as_object);
    let shown = |(at, what): (&String, &Value)| format!("{at} is {}", what.as_str().unwrap_or(""));
    named.into_iter().flatten().map(shown).collect()
}

fn text<'k>(known: &'k Value, pointer: &str) -> Option<&'k str> {
    known.pointer(pointer).and_then(Value::as_str)
}

fn list_of<'k>(known: &'k Value, pointer: &str) -> Vec<&'k str> {
    let items = known.pointer(pointer).and_then(Value::as_array);
    items.into_iter().flatten().filter_map(Value::as_str).collect()
}

fn joined<T: AsRef<str>>(items: &[T]) -> Option<String> {
    let items: Vec<&str> = items.iter().map(AsRef::as_ref).collect();
    (!items.is_empty()).then(|| items.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_preset_can_be_shown_as_text_and_as_json() {
        for preset in presets() {
            let page = one(preset, false).unwrap();
            assert!(page.contains("\n  key  "), "{page}");
            assert!(page.lines().all(|line| line.trim_end() == line), "{page}");
            let known: Value = serde_json::from_str(&one(preset, true).unwrap()).unwrap();
            assert_eq!(known["name"], preset.name);
            let unconfirmed = !list_of(&known, UNCONFIRMED).is_empty();
            assert_eq!(page.contains("Not confirmed:"), unconfirmed, "{page}");
        }
    }

    /// Where a preset says nothing, the built-in value is shown.
    #[test]
    fn a_page_says_what_the_key_and_the_type_of_an_event_are() {
        for preset in presets() {
            let key = Config::of_preset(preset.name).unwrap().unwrap().key;
            let page = one(preset, false).unwrap();
            assert!(page.contains(&format!("\n  type             {}\n", key.event.kind)), "{page}");
            assert!(page.contains(&format!("{}\n", key.event.id)), "{page}");
        }
        let built_in = Config::from_upstream("http://127.0.0.1:1", "/a", []).unwrap();
        let rows = of_key(built_in.routes.first());
        let expected = "header:x-idempotency-key or header:idempotency-key, else json:/id";
        assert_eq!(rows, [("key", expected.to_owned()), ("type", "json:/type?".to_owned())]);
    }

    #[test]
    fn the_list_has_them_all() {
        let text = list(false).unwrap();
        assert!(text.contains("\nstripe             Stripe (snapshot events, v1)\n"), "{text}");
        let listed: Value = serde_json::from_str(&list(true).unwrap()).unwrap();
        assert_eq!(listed["providers"].as_array().unwrap().len(), presets().len());
    }
}
