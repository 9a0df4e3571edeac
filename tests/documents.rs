//! What is written down for people is true.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fmt::Write as _;
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Duration;

use onceward::config::{Config, Place, Sources, captured};
use onceward::provider::{Preset, presets, signature};
use toml::{Table, Value};

fn sources(file: &str) -> Sources {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("config").join(file);
    Sources::from_file(&path, []).unwrap()
}

/// Examples have no sender whose signature or types could be known, and no other risk.
fn assert_only_unsigned(config: &Config) {
    let risks = config.risks();
    let usual = ["signature-unchecked", "event-without-type"];
    assert!(risks.iter().all(|risk| usual.contains(&risk.code)), "{risks:?}");
}

/// Whatever the reference says beside its example routes is built in, and nothing else is.
#[test]
fn the_reference_shows_every_built_in_value() {
    let reference = sources("onceward.toml");
    let minimal = sources("minimal.toml");
    for config in [reference.check(), minimal.check()] {
        assert_only_unsigned(&config.unwrap());
    }

    let shown = |sources: &Sources| -> Vec<String> {
        let shared = sources.effective().into_iter();
        let shared = shared.filter(|setting| !setting.key.to_string().starts_with("routes."));
        shared.map(|setting| format!("{} = {}", setting.key, setting.value)).collect()
    };
    assert_eq!(shown(&reference), shown(&minimal));
    let written = reference.effective().into_iter().filter(|setting| {
        // A route's name is its events' source, so that no file can show the value.
        setting.place == Place::BuiltIn && !setting.key.to_string().ends_with(".key.event.source")
    });
    assert_eq!(written.count(), 0);
}

/// What the documentation has an operator write is what the tests have proved to suffice.
#[test]
fn the_page_of_redis_has_the_line_of_its_permissions() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/docs/redis.md");
    let page = std::fs::read_to_string(page).unwrap();
    assert!(page.contains(onceward::store::redis::ACL_LINE));
}

/// Whoever is killed sooner leaves what is in flight uncertain.
#[test]
fn what_is_shown_to_start_it_with_gives_it_the_time_to_end() {
    let server = sources("minimal.toml").check().unwrap().server;
    let needed = (server.drain_delay + server.shutdown_timeout).as_secs() + 7;
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let read = |file: &str| std::fs::read_to_string(root.join(file)).unwrap();
    let seconds = |file: &str, before: &str| -> u64 {
        let text = read(file);
        let (_, rest) = text.split_once(before).unwrap();
        let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
        digits.parse().unwrap()
    };
    for (file, before) in [
        ("examples/cluster/compose.yaml", "stop_grace_period: "),
        ("Dockerfile", "docker stop -t "),
        ("Dockerfile", "terminationGracePeriodSeconds: "),
        ("src/docs/deployment.md", "of the pod (built-in: 30) | `"),
        ("src/docs/deployment.md", "of the unit (built-in: 90 s) | `"),
        ("src/docs/deployment.md", "of the service (built-in: 10 s) | `"),
        ("src/docs/deployment.md", "`docker run --stop-timeout` (built-in: 10 s) | `"),
    ] {
        assert!(seconds(file, before) >= needed, "{file}: {before}");
    }
    let shutdown = server.shutdown_timeout.as_secs();
    let shown = format!("(0 s and {shutdown} s) that is {needed} s");
    assert!(read("src/docs/deployment.md").contains(&shown), "{shown}");
    assert!(server.shutdown_timeout >= Duration::from_mins(1), "the built-in `attempt_timeout`");
}

/// A round of the tests is named where it fails, and nothing is run after it.
#[test]
fn the_runner_of_the_tests_stops_at_the_first_round_that_fails_and_names_it() {
    let runner = Runner::that_fails_in_round(2);
    let ended = runner.runs(&["--repeat", "3"]);
    assert_eq!(ended.status.code(), Some(1));
    let told = String::from_utf8(ended.stdout).unwrap();
    let last = told.trim_end().lines().last().unwrap();
    assert!(last.starts_with("failed: test-2-of-3 (after "), "{told}");
    assert!(last.ends_with("passed: install format lint test-1-of-3"), "{told}");
    let called = runner.called();
    assert_eq!(called[called.len() - 3..], ["cargo clippy", "cargo test", "cargo test"]);
}

#[test]
fn the_runner_of_the_tests_repeats_the_tests_alone() {
    let runner = Runner::that_fails_in_round(4);
    assert!(runner.runs(&["--repeat", "3"]).status.success());
    let mut repeated = runner.called();
    let once = Runner::that_fails_in_round(2);
    assert!(once.runs(&[]).status.success());
    let first = repeated.iter().position(|call| call == "cargo test").unwrap();
    assert_eq!(repeated.drain(first..first + 2).as_slice(), ["cargo test", "cargo test"]);
    assert_eq!(repeated, once.called());
}

#[test]
fn the_runner_of_the_tests_says_what_it_takes_and_refuses_the_rest() {
    let runner = Runner::that_fails_in_round(1);
    let help = runner.runs(&["--help"]);
    assert!(help.status.success());
    assert!(String::from_utf8(help.stdout).unwrap().contains("--repeat N"));
    for wrong in [&["--repeat"][..], &["--repeat", "0"], &["--repeat", "1.5"], &["--again"]] {
        let ended = runner.runs(wrong);
        assert_eq!(ended.status.code(), Some(2), "{wrong:?}");
        let told = String::from_utf8(ended.stderr).unwrap();
        assert!(told.starts_with("error: ") && told.contains(wrong[0]), "{told}");
    }
    assert!(runner.called().is_empty(), "nothing was run");
}

/// `tests/run`, where the programs that it calls only note that they were called. So a test
/// installs nothing and builds nothing.
struct Runner(tempfile::TempDir);

impl Runner {
    fn that_fails_in_round(round: usize) -> Self {
        let runner = Self(tempfile::tempdir().unwrap());
        let calls = runner.calls();
        let calls = calls.display();
        runner.has("bash", &format!("echo \"bash $1\" >>'{calls}'"));
        let fails = format!("[ \"$(grep -c 'cargo test' '{calls}')\" -eq {round} ]");
        runner.has(
            "cargo",
            &format!("echo \"cargo $1\" >>'{calls}'; ! {{ [ \"$1\" = test ] && {fails}; }}"),
        );
        for part in ["cargo-clippy", "cargo-fmt", "cargo-deny"] {
            runner.has(part, "exit 1");
        }
        runner
    }

    fn calls(&self) -> PathBuf {
        self.0.path().join("calls")
    }

    fn has(&self, name: &str, does: &str) {
        let file = self.0.path().join(name);
        std::fs::write(&file, format!("#!/bin/sh\n{does}\n")).unwrap();
        std::fs::set_permissions(&file, Permissions::from_mode(0o755)).unwrap();
    }

    fn runs(&self, arguments: &[&str]) -> Output {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/run");
        let path = std::env::var("PATH").unwrap();
        let mut bash = Command::new("/bin/bash");
        bash.arg(script).args(arguments);
        bash.env("PATH", format!("{}:{path}", self.0.path().display())).output().unwrap()
    }

    /// The programs that were called, in order, each with its first argument.
    fn called(&self) -> Vec<String> {
        let calls = std::fs::read_to_string(self.calls()).unwrap_or_default();
        calls.lines().map(str::to_owned).collect()
    }
}

/// What the example of a cluster mounts can be served.
#[test]
fn the_configuration_of_the_cluster_is_right() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/cluster/onceward.toml");
    let password = [("REDIS_PASSWORD".to_owned(), "secret".to_owned())];
    let config = Sources::from_file(&file, password).unwrap().check().unwrap();
    assert_only_unsigned(&config);
}

/// The same of the stores that the reference does not choose.
#[test]
fn the_examples_of_shared_stores_show_their_built_in_values() {
    for store in ["redis", "postgres"] {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("onceward.toml");
        let route = "[routes.orders]\npath = \"/\"\nupstream = \"http://a\"\n";
        std::fs::write(&file, format!("[store.{store}]\n{route}")).unwrap();
        let shown = |sources: Sources| -> Vec<String> {
            let of_store = |key: String| key.starts_with(&format!("store.{store}."));
            let settings = sources.effective().into_iter();
            let settings = settings.filter(|setting| of_store(setting.key.to_string()));
            settings.map(|setting| format!("{} = {}", setting.key, setting.value)).collect()
        };
        let variables = || [("DATABASE_URL".to_owned(), "postgres://a/b".to_owned())];
        let example = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("config/{store}.toml"));
        let example = Sources::from_file(&example, variables()).unwrap();
        let built_in = Sources::from_file(&file, variables()).unwrap();
        built_in.check().unwrap();
        example.check().unwrap();
        assert_eq!(shown(example), shown(built_in));
    }
}

#[test]
fn the_minimal_configuration_is_what_one_flag_gives() {
    let minimal = sources("minimal.toml").check().unwrap();
    let flag = Config::from_upstream("http://127.0.0.1:3000", "/webhooks/orders", []).unwrap();
    let same = format!("{flag:?}").replace("\"default\"", "\"orders\"");
    assert_eq!(same, format!("{minimal:?}"));
}

/// What a reader of the README copies is the file that is tested.
#[test]
fn the_readme_shows_the_minimal_configuration() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let readme = std::fs::read_to_string(root.join("README.md")).unwrap();
    let (_, behind) = readme.split_once("```toml\n").unwrap();
    let (block, _) = behind.split_once("```").unwrap();
    let minimal = std::fs::read_to_string(root.join("config/minimal.toml")).unwrap();
    assert_eq!(block, minimal);
}

/// The examples of the reference that are commented out can be copied.
#[test]
fn what_the_reference_shows_of_senders_is_right() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("config/onceward.toml");
    let reference = std::fs::read_to_string(path).unwrap();
    let (routes, own) = reference.split_once("# [providers.acme]").unwrap();
    let (_, route) = routes.split_once("\n[routes.orders]").unwrap();
    let uncommented = |text: &str| text.replace("\n# ", "\n");
    let of_a_preset =
        format!("[routes.orders]{}", uncommented(route)).replace("verify = false", "");
    let of_its_own = format!("[providers.acme]{}", uncommented(own));
    let file = tempfile::NamedTempFile::new().unwrap();
    for (text, provider) in [
        (of_a_preset.clone(), "stripe"),
        (format!("{}\n{of_its_own}", of_a_preset.replace("\"stripe\"", "\"acme\"")), "acme"),
    ] {
        std::fs::write(file.path(), text).unwrap();
        let secret = ("STRIPE_WEBHOOK_SECRET".to_owned(), "whsec_1".to_owned());
        let routes = Config::from_file(file.path(), [secret]).unwrap().routes;
        let mut names = routes.iter().filter_map(|route| route.provider.as_deref());
        assert_eq!(names.next().unwrap().name, provider);
    }
}

/// The examples of the page on senders of one's own can be copied, and mean what it says.
#[test]
fn what_the_page_of_senders_shows_is_right() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = std::fs::read_to_string(root.join("src/docs/senders.md")).unwrap();
    let blocks = page.split("```toml\n").skip(1).map(|rest| rest.split_once("```").unwrap().0);
    let senders: Vec<_> = blocks
        .map(|block| {
            let file = tempfile::NamedTempFile::new().unwrap();
            std::fs::write(file.path(), block).unwrap();
            let secrets = ["ACME", "SHOPIFY"]
                .map(|sender| (format!("{sender}_WEBHOOK_SECRET"), "a long secret".to_owned()));
            let config = Config::from_file(file.path(), secrets).unwrap();
            config.routes[0].provider.as_ref().unwrap().signature.clone().unwrap()
        })
        .collect();
    let accepted: Vec<Vec<&str>> = senders.iter().map(|it| it.accepts().collect()).collect();
    assert_eq!(accepted, [vec!["timed", "plain"], vec!["shopify"]]);
    assert!(senders[0].carries("id") && senders[0].covers("id"));
    assert_eq!(senders[0].tolerance(), Some(Duration::from_mins(5)));
}

/// A page for each sender says what its preset says. `UPDATE_DOCS=1 cargo test --test documents`
/// writes them.
#[test]
fn every_sender_has_a_page_that_says_what_its_preset_says() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/docs/providers");
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

/// The list of all pages.
fn contents() -> String {
    let mut page = "# Senders\n\nEach is a preset: a route that says `provider = \"NAME\"` takes from \
                    it what it does not say\nitself.\n\n| sender | name | signs |\n| --- | --- | --- |\n"
        .to_owned();
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
    let mut page = format!("# {}\n\n", provider.title);
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
