//! What is written down for people is true.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::Path;

use onceward::config::{Config, Place, Sources};

fn sources(file: &str) -> Sources {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("config").join(file);
    Sources::from_file(&path, []).unwrap()
}

/// Whatever the reference says beside its example routes is built in, and nothing else is.
#[test]
fn the_reference_shows_every_built_in_value() {
    let reference = sources("onceward.toml");
    let minimal = sources("minimal.toml");
    for config in [reference.check(), minimal.check()] {
        assert_eq!(config.unwrap().risks(), []);
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
