//! Every name that a page uses is a name of the program.

use std::collections::BTreeSet;

use onceward::operation::Reason;
use onceward::telemetry::{ExpectedCounters, Metrics};

use crate::page::{Page, is_generated, pages, read, root};

/// The names of all metrics, as the page `/metrics` has them once each has counted something.
fn metrics() -> BTreeSet<String> {
    let metrics = Metrics::new();
    let expected = ExpectedCounters { refusals: &["overloaded"], observed: true, lookups: true };
    let _route = metrics.route("orders").start_at_zero(expected);
    metrics.store_concern("replica", true);
    metrics.clock_skew("orders").set(0);
    let page = metrics.prometheus().unwrap();
    let types = page.lines().filter_map(|line| line.strip_prefix("# TYPE "));
    types.map(|line| line.split_once(' ').unwrap().0.to_owned()).collect()
}

/// The words of a text that begin so, as far as a name goes.
fn words<'t>(text: &'t str, begin: &str) -> BTreeSet<&'t str> {
    let is_of_name = |c: char| c.is_ascii_lowercase() || c == '_';
    let words = text.split(|c: char| !is_of_name(c));
    words.filter(|word| word.starts_with(begin)).collect()
}

#[test]
fn every_metric_on_a_page_exists() {
    let known = metrics();
    for page in pages() {
        for word in words(&page.text, "onceward_") {
            assert!(known.contains(word), "{}: {word}", page.file);
        }
    }
}

#[test]
fn the_page_on_operating_explains_every_metric() {
    let page = read("docs/operating.md");
    let explained = words(&page, "onceward_");
    let known = metrics();
    let missing: Vec<&String> =
        known.iter().filter(|name| !explained.contains(name.as_str())).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

#[test]
fn the_page_on_uncertain_operations_explains_every_reason() {
    let page = read("docs/when-nobody-knows.md");
    let (_, after) = page.split_once("## What a reason means\n").unwrap();
    let (section, _) = after.split_once("\n## ").unwrap();
    for reason in Reason::ALL {
        assert!(section.contains(&format!("`{reason}`")), "{reason}");
    }
}

#[test]
fn the_page_on_operating_explains_what_makes_a_store_unsafe() {
    let page = read("docs/operating.md");
    for store in ["redis", "postgres"] {
        let file = root().join(format!("config/{store}.toml"));
        let url = ("DATABASE_URL".into(), "postgres://a/b".into());
        let config = onceward::config::Config::from_file(&file, [url]).unwrap();
        for code in config.store.concern_codes() {
            assert!(page.contains(&format!("`{code}`")), "{code}");
        }
    }
}

/// The codes that a page explains in its table of statuses.
fn codes(page: &str) -> BTreeSet<String> {
    let is_status = |cell: &str| cell.split(", ").all(|status| status.parse::<u16>().is_ok());
    let rows = page.lines().filter_map(|line| line.strip_prefix("| ")?.split_once(" | "));
    let rows = rows.filter(|(cell, _)| is_status(cell));
    let cells = rows.map(|(_, rest)| rest.split_once(" | ").unwrap().0);
    cells.flat_map(|cell| cell.split('`').skip(1).step_by(2)).map(str::to_owned).collect()
}

/// What refusals are counted under is what the page explains.
#[test]
fn the_page_on_http_explains_every_code() {
    let explained = codes(&read("docs/http.md"));
    assert!(explained.len() > 20, "{explained:?}");
    let source = texts("src/proxy") + &texts("src/listener");
    for code in &explained {
        assert!(source.contains(&format!("\"{code}\"")), "{code}");
    }
    let problems = read("src/proxy/problem.rs");
    for list in problems.split("CODES_").skip(1) {
        let Some((list, _)) = list.split_once("];") else { continue };
        let Some((_, list)) = list.split_once("= &[") else { continue };
        for code in list.split('"').skip(1).step_by(2) {
            assert!(explained.contains(code), "{code}");
        }
    }
}

#[test]
fn the_page_on_limits_names_codes_that_the_page_on_http_explains() {
    let explained = codes(&read("docs/http.md"));
    let page = Page { file: String::new(), text: read("docs/limits.md") };
    let spans = page.inline_code();
    let has_hyphen = |span: &&String| span.contains('-') && !span.contains(['.', '"', ' ', '*']);
    let headers = ["Onceward-Body: omitted"];
    let named: Vec<&String> = spans
        .iter()
        .filter(has_hyphen)
        .filter(|span| span.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-'))
        .filter(|span| !headers.contains(&span.as_str()))
        .collect();
    assert!(named.len() >= 10, "{named:?}");
    for code in named {
        assert!(explained.contains(code), "{code}");
    }
}

/// The texts of all files below a folder.
fn texts(folder: &str) -> String {
    let mut texts = String::new();
    let mut folders = vec![root().join(folder)];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                texts += &std::fs::read_to_string(path).unwrap();
            }
        }
    }
    texts
}

/// A setting, a fact or a state that was renamed is renamed on every page.
#[test]
fn every_name_with_an_underscore_stands_in_the_program_too() {
    let mut program = texts("src");
    for file in ["config/onceward.toml", "config/redis.toml", "config/postgres.toml"] {
        program += &read(file);
    }
    // Names of nginx, Docker Compose, Prometheus, HAProxy and PostgreSQL.
    let of_others = ["max_fails", "stop_grace_period", "full_page_writes", "synchronous_commit"];
    let mut wrong = Vec::new();
    for page in pages().iter().filter(|page| !is_generated(page)) {
        if page.file == "CHANGELOG.md" {
            continue;
        }
        for span in page.inline_code().iter().filter(|span| !span.contains('/')) {
            let names = span.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
            for name in names.filter(|name| is_name(name)) {
                if !program.contains(name) && !of_others.contains(&name) {
                    wrong.push(format!("{}: {name}", page.file));
                }
            }
        }
    }
    let wrong = wrong.join("\n");
    assert!(wrong.is_empty(), "names that neither `src` nor `config` has:\n{wrong}");
}

/// `src/proxy/route.rs`, but neither a place with a name to be filled in nor one of a machine.
#[test]
fn every_file_that_a_page_names_exists() {
    let folders = ["src/", "tests/", "docs/", "config/", "examples/", ".github/"];
    let mut checked = 0;
    for page in pages() {
        for span in page.inline_code() {
            let is_file = folders.iter().any(|folder| span.starts_with(folder));
            if is_file && !span.contains([' ', '*']) && !span.contains("NAME") {
                assert!(root().join(&span).exists(), "{}: {span}", page.file);
                checked += 1;
            }
        }
    }
    assert!(checked > 20, "{checked}");
}

/// "`Policy` in `src/idempotency/policy.rs`": what a recipe sends people to is there.
#[test]
fn what_a_page_says_to_be_in_a_file_is_in_it() {
    let mut checked = 0;
    for page in pages() {
        let text = page.text.split_whitespace().collect::<Vec<_>>().join(" ");
        for (at, between) in text.match_indices("` in `src/") {
            let name = text[..at].rsplit('`').next().unwrap();
            let file = &text[at + between.len() - "src/".len()..];
            let file = file.split('`').next().unwrap();
            assert!(read(file).contains(name), "{}: {name} in {file}", page.file);
            checked += 1;
        }
    }
    assert!(checked > 5, "{checked}");
}

/// `answer_within`, but neither `op_92b0` nor a metric, which has a test of its own.
fn is_name(word: &str) -> bool {
    let is_plain = word.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_');
    is_plain && word.trim_matches('_').contains('_') && !word.starts_with("onceward_")
}

/// The state and the words of the program change together.
#[test]
fn nobody_says_exactly_once_but_to_explain_why_not() {
    let phrase = ["exactly", "once"].join(" ");
    for file in ["Cargo.toml", "Dockerfile", "src/lib.rs"] {
        assert!(!read(file).to_lowercase().contains(&phrase), "{file}");
    }
    for page in pages() {
        for (before, _) in page.text.match_indices(&phrase) {
            let sentence = page.text[..before].rsplit(". ").next().unwrap();
            assert!(sentence.ends_with("We do not say \""), "{}: {sentence}", page.file);
        }
    }
    let mut program = std::process::Command::new(env!("CARGO_BIN_EXE_onceward"));
    let help = program.arg("--help").output().unwrap();
    assert!(!String::from_utf8(help.stdout).unwrap().contains(&phrase));
}
