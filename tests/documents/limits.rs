//! The page on limits has every limit, with the value that it really has.

use std::collections::BTreeMap;

use onceward::telemetry::Limit;
use toml::{Table, Value};

use crate::page::read;

/// The second cell of each row of the table below this heading, by the name in the first one.
fn defaults(page: &str, heading: &str) -> BTreeMap<String, String> {
    let (_, section) = page.split_once(heading).unwrap();
    let section = section.split_once("\n## ").map_or(section, |(section, _)| section);
    let lines = section.lines().filter_map(|line| line.strip_prefix("| `")?.strip_suffix(" |"));
    lines
        .map(|line| {
            let (name, cells) = line.split_once("` | ").unwrap();
            let (default, _) = cells.split_once(" | ").unwrap();
            (name.to_owned(), default.to_owned())
        })
        .collect()
}

/// As the page writes them: `name` and `` `value` ``.
fn settings(table: &Table) -> BTreeMap<String, String> {
    let plain = table.iter().filter(|(_, value)| value.as_table().is_none());
    plain.map(|(name, value)| (name.clone(), format!("`{value}`"))).collect()
}

#[test]
fn the_page_of_limits_has_every_setting_of_the_server_with_its_built_in_value() {
    let reference: Table = read("config/onceward.toml").parse().unwrap();
    let page = read("docs/limits.md");
    let server = reference["server"].as_table().unwrap();
    let limits = server["limits"].as_table().unwrap();
    assert_eq!(defaults(&page, "\n## `[server.limits]`"), settings(limits));
    assert_eq!(defaults(&page, "\n## `[server]`"), settings(server));
}

#[test]
fn the_page_of_limits_shows_a_route_s_limits_with_their_built_in_values() {
    let reference: Table = read("config/onceward.toml").parse().unwrap();
    let page = read("docs/limits.md");
    let shown = defaults(&page, "\n## `[defaults]`");
    for (name, default) in &shown {
        let names = name.split('.');
        let value = names.fold(&reference["defaults"], |value: &Value, name| &value[name]);
        assert_eq!(*default, format!("`{value}`"), "{name}");
    }
    // whatever is called a greatest number is a limit
    let shared = reference["defaults"].as_table().unwrap();
    for name in shared.keys().filter(|name| name.ends_with("_max") && *name != "keepalive_max") {
        assert!(shown.contains_key(name), "{name}");
    }
}

/// What is counted can be looked up, and what the page says is counted is.
#[test]
fn the_page_of_limits_names_every_limit_that_is_counted() {
    let page = read("docs/limits.md");
    let mut counted: Vec<&str> = Limit::ALL.map(Limit::as_str).to_vec();
    let named = page.split("`limit=\"").skip(1).map(|rest| rest.split_once('"').unwrap().0);
    let mut named: Vec<&str> = named.filter(|name| *name != "…").collect();
    counted.sort_unstable();
    named.sort_unstable();
    assert_eq!(named, counted);
}
