//! The pages on senders: of those that are known, and of one's own.

use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

use onceward::config::{Config, captured};
use onceward::provider::{Preset, presets, signature};
use toml::{Table, Value};

use crate::blocks::config;
use crate::page::{Page, read};

/// The examples of the page on senders of one's own mean what it says.
#[test]
fn what_the_page_of_senders_shows_is_right() {
    let page = Page { file: String::new(), text: read("docs/senders.md") };
    let blocks = page.blocks().into_iter().filter(|block| block.language == "toml");
    let senders: Vec<_> = blocks
        .map(|block| {
            let config = config(&block.text, "a long secret").unwrap();
            config.routes[0].provider.as_ref().unwrap().clone()
        })
        .collect();
    let names: Vec<&str> = senders.iter().map(|sender| sender.name.as_str()).collect();
    assert_eq!(names, ["stripe", "acme", "shopify", "acme"]);
    let signature = |sender: usize| senders[sender].signature.as_ref().unwrap();
    let accepted = |sender: usize| signature(sender).accepts().collect::<Vec<&str>>();
    assert_eq!(accepted(1), ["timed", "plain"]);
    assert_eq!(accepted(2), ["shopify"]);
    assert!(signature(1).carries("id") && signature(1).covers("id"));
    assert_eq!(signature(1).tolerance(), Some(Duration::from_mins(5)));
    assert_eq!(senders[3].handshakes[0].name, "ping");
}

/// A page for each sender says what its preset says. `UPDATE_DOCS=1 cargo test --test documents`
/// writes them.
#[test]
fn every_sender_has_a_page_that_says_what_its_preset_says() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/providers");
    let update = std::env::var_os("UPDATE_DOCS").is_some();
    let mut pages: Vec<(String, String)> =
        presets().iter().map(|preset| (format!("{}.md", preset.name), page(preset))).collect();
    pages.push(("README.md".to_owned(), contents()));
    pages.sort();
    if update {
        std::fs::create_dir_all(&folder).unwrap();
        for (file, page) in &pages {
            std::fs::write(folder.join(file), page).unwrap();
        }
    }
    let mut written: Vec<(String, String)> = std::fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap())
        .map(|entry| {
            let page = std::fs::read_to_string(entry.path()).unwrap();
            (entry.file_name().into_string().unwrap(), page)
        })
        .collect();
    written.sort();
    assert!(written == pages, "`UPDATE_DOCS=1 cargo test --test documents` writes the pages");
}

#[test]
fn the_readme_says_how_many_senders_are_known() {
    let said = format!("Onceward knows {} [senders]", presets().len());
    assert!(read("README.md").contains(&said), "README.md does not say: {said}");
}

/// What stands above the list of all pages.
const CONTENTS: &str = r#"# Senders

This page lists the senders that Onceward knows. Each is a preset: a route with `provider = "NAME"` takes from it
every setting that it does not have itself. [Senders](../senders.md) explains presets, and how to describe
a sender of your own.

| sender | name | signs |
| --- | --- | --- |
"#;

/// The list of all pages.
fn contents() -> String {
    let mut page = CONTENTS.to_owned();
    for preset in presets() {
        let known: Table = preset.toml.parse().unwrap();
        let (name, title) = (preset.name, known.get("title").and_then(Value::as_str).unwrap());
        let signs = if known.contains_key("signature") { "yes" } else { "no" };
        writeln!(page, "| [{title}]({name}.md) | `{name}` | {signs} |").unwrap();
    }
    page
}

/// What to write, what the sender does, and what of it is not confirmed.
fn page(preset: &Preset) -> String {
    let known: Table = preset.toml.parse().unwrap();
    let name = preset.name;
    let facts = known.get("facts").and_then(Value::as_table).unwrap();
    let fact = |name: &str| facts.get(name).and_then(Value::as_str);
    let provider = Config::of_preset(name).unwrap().unwrap().provider.unwrap();
    let purpose = "This page says what Onceward knows about this sender, and what to write for it.";
    let mut page = format!("# {}\n\n{purpose}\n\n", provider.title);
    let about = preset.toml.lines().map_while(|line| line.strip_prefix('#')).skip(2);
    let about: Vec<&str> = about.map(str::trim).collect();
    if !about.is_empty() {
        write!(page, "{}\n\n", about.join("\n")).unwrap();
    }

    let signs_url = provider.signature.as_ref().is_some_and(signature::Settings::needs_public_url);
    page += "## What to write\n\n```toml\n";
    if signs_url {
        page += "[server]\npublic_url = \"https://hooks.example.com\"   # as it is registered\n\n";
    }
    write!(page, "[routes.{name}]\npath = \"/webhooks/{name}\"\n").unwrap();
    write!(page, "upstream = \"http://127.0.0.1:3000\"\nprovider = \"{name}\"\n").unwrap();
    match fact("secret") {
        Some(secret) => {
            let variable = name.to_ascii_uppercase().replace('-', "_");
            write!(page, "secrets = [{{ env = \"{variable}_WEBHOOK_SECRET\" }}]\n```\n\n").unwrap();
            write!(page, "The secret: {secret}.\n\n").unwrap();
        }
        None => page += "```\n\nIts requests have no signature that could be checked.\n\n",
    }

    let route = Config::of_preset(name).unwrap().unwrap();
    if let Some(captured) = captured(&route) {
        write!(page, "## One captured request\n\n{}.\n\n", sentence(&captured)).unwrap();
    }

    page += "## What it does\n\n| | |\n| --- | --- |\n";
    let lists = |name: &str| items(facts.get(name)).join(", ");
    for (heading, text) in [
        ("takes as done", fact("success").unwrap_or_default().to_owned()),
        ("waits for an answer", fact("patience").unwrap_or("not known").to_owned()),
        ("on failure", fact("on_failure").unwrap_or_default().to_owned()),
        ("tries again for", fact("retry_window").unwrap_or_default().to_owned()),
        ("tries again after", lists("retried")),
        ("but not after", lists("not_retried")),
        ("gives up after", lists("final")),
        ("sent again by hand", fact("resend").unwrap_or_default().to_owned()),
        ("stops sending after", fact("disabled_after").unwrap_or_default().to_owned()),
        ("largest event", fact("largest_event").unwrap_or_default().to_owned()),
        ("several events at once", fact("batch").unwrap_or_default().to_owned()),
    ] {
        if !text.is_empty() {
            writeln!(page, "| {heading} | {text} |").unwrap();
        }
    }

    write!(page, "\n## What the preset sets\n\n```toml\n{}```\n", settings(preset)).unwrap();
    if !provider.handshakes.is_empty() {
        page += "\n## Handshakes\n\nForwarded as they are, without a key, and never answered from the store.\n\n";
        for handshake in &provider.handshakes {
            let signed = if handshake.signed { "signed, and verified" } else { "not signed" };
            writeln!(page, "- {} ({}): {signed}", handshake.name, handshake.method).unwrap();
        }
    }
    for (heading, items) in [
        ("What is not the event", not_the_event(facts)),
        ("Worth knowing", items(facts.get("notes"))),
        ("Not confirmed by the sender", items(facts.get("unconfirmed"))),
    ] {
        if !items.is_empty() {
            write!(page, "\n## {heading}\n\n- {}\n", items.join("\n- ")).unwrap();
        }
    }
    page
}

fn sentence(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().into_iter().flat_map(char::to_uppercase).chain(letters).collect()
}

/// The part of a preset that are settings of a route.
fn settings(preset: &Preset) -> String {
    let lines = preset.toml.lines().skip_while(|line| line.is_empty() || line.starts_with('#'));
    let lines = lines.filter(|line| !line.starts_with("title = "));
    let of_the_sender = ["[signature]", "[[handshakes]]", "[facts]"];
    let lines: Vec<&str> = lines.take_while(|line| !of_the_sender.contains(line)).collect();
    format!("{}\n", lines.join("\n").trim_end())
}

fn items(list: Option<&Value>) -> Vec<String> {
    let items = list.and_then(Value::as_array).into_iter().flatten();
    items.map(|item| item.as_str().unwrap().to_owned()).collect()
}

fn not_the_event(facts: &Table) -> Vec<String> {
    let named = facts.get("not_the_event").and_then(Value::as_table).into_iter().flatten();
    named.map(|(at, what)| format!("`{at}` is {}", what.as_str().unwrap())).collect()
}
