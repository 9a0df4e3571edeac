//! What is written down for people is true.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

mod blocks;
mod commands;
mod limits;
mod links;
mod names;
mod page;
mod runner;
mod senders;

use std::path::Path;
use std::time::Duration;

use onceward::config::{Config, Finding, Origin, Sources};

use page::read;

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
        setting.origin == Origin::BuiltIn && !setting.key.to_string().ends_with(".key.event.source")
    });
    assert_eq!(written.count(), 0);
}

/// What the documentation has an operator write is what the tests have proved to suffice.
#[test]
fn the_page_of_redis_has_the_line_of_its_permissions() {
    let page = page::Page { file: String::new(), text: read("docs/redis.md") };
    let blocks = page.blocks().into_iter().filter(|block| block.language == "text");
    let lines: Vec<String> = blocks.map(|block| block.text.trim_end().to_owned()).collect();
    assert_eq!(lines, [onceward::store::redis::ACL_LINE]);
}

/// Whoever is killed sooner leaves what is in flight uncertain.
#[test]
fn what_is_shown_to_start_it_with_gives_it_the_time_to_end() {
    let server = sources("minimal.toml").check().unwrap().server;
    let needed = (server.drain_delay + server.shutdown_timeout).as_secs() + 7;
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
        ("docs/deployment.md", "of the pod (built-in: 30) | `"),
        ("docs/deployment.md", "of the unit (built-in: 90 s) | `"),
        ("docs/deployment.md", "of the service (built-in: 10 s) | `"),
        ("docs/deployment.md", "`docker run --stop-timeout` (built-in: 10 s) | `"),
        ("docs/deployment.md", "docker run --name onceward --read-only --stop-timeout "),
        ("docs/deployment.md", "\nTimeoutStopSec="),
    ] {
        assert!(seconds(file, before) >= needed, "{file}: {before}");
    }
    // the pod of the example serves for another 10 s
    assert!(read("docs/deployment.md").contains("drain_delay = \"10s\"\n"));
    assert!(seconds("docs/deployment.md", "\n  terminationGracePeriodSeconds: ") >= needed + 10);
    let shutdown = server.shutdown_timeout.as_secs();
    let shown = format!("(0 s and {shutdown} s) that is {needed} s");
    assert!(read("docs/deployment.md").contains(&shown), "{shown}");
    assert!(server.shutdown_timeout >= Duration::from_mins(1), "the built-in `attempt_timeout`");
}

/// What the example of a cluster mounts can be served.
#[test]
fn the_configuration_of_the_cluster_is_right() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/cluster/onceward.toml");
    let password = [("REDIS_PASSWORD".into(), "secret".into())];
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
        let variables = || [("DATABASE_URL".into(), "postgres://a/b".into())];
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
        let secret = ("STRIPE_WEBHOOK_SECRET".into(), "whsec_1".into());
        let config = Config::from_file(file.path(), [secret]).unwrap();
        let of_it = |risk: &&Finding| risk.key.to_string().starts_with("routes.orders.");
        let (risks, notes) = (config.risks(), config.notes());
        assert_eq!(risks.iter().filter(of_it).collect::<Vec<_>>(), Vec::<&Finding>::new());
        assert!(!notes.iter().any(|note| note.text.contains("nothing signs")), "{notes:?}");
        let routes = config.routes;
        let mut names = routes.iter().filter_map(|route| route.provider.as_deref());
        assert_eq!(names.next().unwrap().name, provider);
    }
}
