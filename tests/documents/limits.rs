//! The page on limits has every limit, with the value that it really has.

use std::collections::BTreeMap;

use onceward::clock::parse_duration;
use onceward::telemetry::Limit;
use toml::{Table, Value};

use crate::blocks::config;
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

/// Every time in this table of the reference, with its full name.
fn times(reference: &Table, table: &str) -> Vec<String> {
    let root = Value::Table(reference.clone());
    let found = table.split('.').fold(&root, |found, name| &found[name]);
    let is_time = |value: &Value| value.as_str().is_some_and(|it| parse_duration(it).is_some());
    let times = found.as_table().unwrap().iter().filter(|(_, value)| is_time(value));
    times.map(|(name, _)| format!("{table}.{name}")).collect()
}

/// The page says how long each time may be. That is taken, and a millisecond more is refused.
#[test]
fn the_page_of_limits_has_the_greatest_value_of_every_time() {
    let reference: Table = read("config/onceward.toml").parse().unwrap();
    let tables = ["server", "server.limits", "defaults", "defaults.lookup"];
    let mut times: Vec<String> = tables.iter().flat_map(|it| times(&reference, it)).collect();
    times.extend(["defaults.answer_within", "defaults.tolerance"].map(str::to_owned));
    times.extend(["store.redis.timeout", "store.postgres.timeout"].map(str::to_owned));

    let page = read("docs/limits.md");
    let (_, section) = page.split_once("\n## The longest times").unwrap();
    let rows = section.lines().filter_map(|line| line.strip_prefix("| `")?.strip_suffix("` |"));
    let mut longest = BTreeMap::new();
    for row in rows {
        let (names, most) = row.rsplit_once(" | `").unwrap();
        let names = names.split(['`', ',', ' ']).filter(|name| !name.is_empty());
        longest.extend(names.map(|name| (name, parse_duration(most).unwrap())));
    }
    for time in times {
        let (table, name) = time.rsplit_once('.').unwrap();
        let short = time.strip_prefix("defaults.").unwrap_or(name);
        let most = longest.get(short).unwrap_or_else(|| panic!("{time} is not on the page"));
        let url = match table {
            "store.redis" => "urls = [\"redis://a\"]\n",
            "store.postgres" => "url = \"postgres://a/b\"\n",
            _ => "",
        };
        let problems = |millis: u128| {
            let setting = format!("[{table}]\n{url}{name} = \"{millis}ms\"\n");
            config(&format!("{setting}{ROUTE}"), "").map(|_| ())
        };
        assert_eq!(problems(most.as_millis()), Ok(()), "{time}");
        let refused = problems(most.as_millis() + 1).unwrap_err();
        assert!(refused.contains(&format!("`{time}`: expected a duration")), "{refused}");
    }
}

const ROUTE: &str = "[routes.a]\npath = \"/a\"\nupstream = \"http://a\"\n";

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
