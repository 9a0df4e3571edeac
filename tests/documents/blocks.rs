//! Every block that a page shows can be copied.

use std::collections::BTreeSet;

use onceward::config::Config;
use toml::{Table, Value};

use crate::links::included;
use crate::page::{Page, is_generated, pages, read};

/// A hexadecimal text, a PKIX key in base64, a topic and a public key in PEM: what senders give
/// out.
const SECRETS: [&str; 5] = [
    "00112233445566778899aabbccddeeff",
    "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a",
    "arn:aws:sns:us-east-1:123456789012:topic",
    "MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE83T4O/n84iotIvIW4mdBgQ/7dAfSmpqIM8kF9mN1flpVKS3GRqe62gw+2fNNRaINXvVpiglSI8eNEc6wEA3F+g==",
    include_str!("../fixtures/rsa_public.pem"),
];

/// The variables that a text takes secrets from.
fn variables(text: &str) -> BTreeSet<String> {
    let names = text.split("env = \"").skip(1).map(|rest| rest.split_once('"').unwrap().0);
    names.map(str::to_owned).collect()
}

/// The configuration in a file with this text, whose secrets are all this one.
pub(crate) fn config(text: &str, secret: &str) -> Result<Config, String> {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), text).unwrap();
    let secrets = variables(text).into_iter().map(|name| (name.into(), secret.into()));
    Config::from_file(file.path(), secrets).map_err(|problems| problems.to_string())
}

/// The blocks of a page in one language.
fn blocks(page: &Page, language: &str) -> Vec<String> {
    let blocks = page.blocks().into_iter().filter(|block| block.language == language);
    blocks.map(|block| block.text).collect()
}

/// What is not looked at by any test may be wrong.
#[test]
fn every_block_is_of_a_kind_that_a_test_looks_at() {
    let in_the_library = included();
    for page in pages() {
        for block in page.blocks() {
            let is_tested = match block.language.as_str() {
                "toml" | "sh" | "json" | "yaml" => true,
                // `cargo test` compiles what the documentation of the library includes.
                "rust,no_run" => in_the_library.contains(&page.file),
                "sql" => page.file == "docs/postgres.md",
                "ini" => page.file == "docs/deployment.md",
                "text" => ["docs/redis.md", "docs/deployment.md"].contains(&page.file.as_str()),
                _ => false,
            };
            assert!(is_tested, "{}: a block of `{}`", page.file, block.language);
        }
    }
}

#[test]
fn every_configuration_that_a_page_shows_can_be_served() {
    let mut checked = 0;
    for page in pages().iter().filter(|page| !is_generated(page)) {
        for mut text in blocks(page, "toml") {
            if !text.contains("[routes.") {
                text += "[routes.orders]\npath = \"/orders\"\nupstream = \"http://a\"\n";
            }
            let read = SECRETS.map(|secret| config(&text, secret));
            let problem = read[0].as_ref().err();
            assert!(read.iter().any(Result::is_ok), "{}:\n{text}\n{problem:?}", page.file);
            checked += 1;
        }
    }
    assert!(checked >= 10, "{checked}");
}

/// The first block is a configuration, the second one what stands in the preset.
#[test]
fn what_the_page_of_a_sender_shows_can_be_served() {
    for page in pages().iter().filter(|page| is_generated(page)) {
        let blocks = blocks(page, "toml");
        if page.file == "docs/providers/README.md" {
            assert!(blocks.is_empty());
            continue;
        }
        let [config_of_it, preset] = blocks.try_into().unwrap();
        let is_right = SECRETS.iter().any(|secret| config(&config_of_it, secret).is_ok());
        assert!(is_right, "{}: {:?}", page.file, config(&config_of_it, SECRETS[0]).err());
        let preset: Table = preset.parse().unwrap();
        assert!(preset.contains_key("key"), "{}", page.file);
    }
}

/// Whoever copies it has nothing to be warned of.
#[test]
fn the_readme_shows_a_configuration_without_risks() {
    let page = Page { file: "README.md".to_owned(), text: read("README.md") };
    let [text] = blocks(&page, "toml").try_into().unwrap();
    let config = config(&text, "whsec_0123456789abcdef0123456789abcdef").unwrap();
    assert_eq!(config.risks().iter().map(|risk| risk.code).collect::<Vec<_>>(), [""; 0]);
    assert_eq!(config.routes[0].provider.as_ref().unwrap().name, "stripe");
}

/// What a newcomer copies is the file that `onceward init` writes.
#[test]
fn getting_started_shows_the_minimal_configuration() {
    let page = "docs/getting-started.md".to_owned();
    let page = Page { text: read(&page), file: page };
    assert_eq!(blocks(&page, "toml"), [read("config/minimal.toml")]);
}

#[test]
fn every_json_text_that_a_page_shows_is_one() {
    for page in pages() {
        for text in blocks(&page, "json") {
            let json: Result<serde_json::Value, _> = serde_json::from_str(&text);
            assert!(json.is_ok(), "{}: {json:?}\n{text}", page.file);
        }
    }
}

/// Probes and scrapes ask the admin listener for what it has.
#[test]
fn every_manifest_asks_the_admin_listener_for_what_it_has() {
    let reference: Table = read("config/onceward.toml").parse().unwrap();
    let listen = reference["admin"]["listen"].as_str().unwrap().to_owned();
    let (_, port) = listen.rsplit_once(':').unwrap();
    let mut checked = 0;
    for page in pages() {
        for text in blocks(&page, "yaml") {
            for probe in text.split("path: ").skip(1) {
                let (path, rest) = probe.split_once(", port: ").unwrap();
                assert!(["/readyz", "/livez"].contains(&path), "{path}");
                assert_eq!(rest.split_once(' ').unwrap().0, port);
                checked += 1;
            }
            for target in text.split("targets: [\"").skip(1) {
                let target = target.split_once('"').unwrap().0;
                assert_eq!(target.rsplit_once(':').unwrap().1, port);
                checked += 1;
            }
        }
    }
    assert_eq!(checked, 3);
}

/// The file of the unit's `EnvironmentFile` holds what the examples take their secrets from.
#[test]
fn the_file_of_secrets_has_variables_that_a_configuration_reads() {
    let page = Page { file: String::new(), text: read("docs/deployment.md") };
    let readme = variables(&read("README.md"));
    for text in blocks(&page, "text") {
        let names = text.lines().map(|line| line.split_once('=').unwrap().0);
        assert!(names.into_iter().all(|name| readme.contains(name)), "{text}");
    }
}

/// The settings that the examples of load balancers ask for, and the times that they wait.
#[test]
fn the_examples_of_load_balancers_fit_the_built_in_values() {
    let reference: Table = read("config/onceward.toml").parse().unwrap();
    let attempt = seconds(reference["defaults"]["attempt_timeout"].as_str().unwrap());
    for (file, waits, checks) in [
        ("examples/cluster/entry.conf", "proxy_read_timeout ", None),
        ("examples/cluster/haproxy.cfg", "timeout server ", Some("inter ")),
        ("examples/cluster/Caddyfile", "response_header_timeout ", Some("health_interval ")),
    ] {
        let text = read(file);
        let value = |name: &str| {
            let (_, rest) = text.split_once(name).unwrap_or_else(|| panic!("{file}: {name}"));
            seconds(rest.split([' ', ';', '\n']).next().unwrap())
        };
        assert!(value(waits) > attempt, "{file}");
        let Some(checks) = checks else { continue };
        let lines = text.lines().filter_map(|line| line.strip_prefix("#   "));
        let asked = lines.collect::<Vec<_>>().join("\n");
        let route = "\n[routes.a]\npath = \"/\"\nupstream = \"http://a\"\n";
        let config = config(&format!("{asked}{route}"), SECRETS[0]).unwrap();
        let slowest = 2 * value(checks);
        assert!(config.server.drain_delay.as_secs() > slowest, "{file}");
        assert!(config.admin.token.is_some() && !config.admin.listen.ip().is_loopback());
        assert!(text.contains("onceward-1:8080") && text.contains("onceward-2:8080"), "{file}");
    }
}

fn seconds(duration: &str) -> u64 {
    duration.trim_end_matches('s').parse().unwrap()
}

/// A table's value, wherever it stands.
#[test]
fn a_block_that_is_no_configuration_is_found() {
    let route = "[routes.a]\npath = \"/\"\nupstream = \"http://a\"\n";
    assert!(config(route, "").is_ok());
    let wrong = config(&format!("{route}retentoin = \"1h\"\n"), "").unwrap_err();
    assert!(wrong.contains("retentoin"), "{wrong}");
    let table: Table = route.parse().unwrap();
    assert_eq!(table["routes"]["a"]["path"], Value::from("/"));
}
