//! The configuration as a whole.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use figment::value::{Dict, Empty, Tag, Value};

use super::admin::admin;
use super::key::Key;
use super::own_address;
use super::problem::Problems;
use super::providers::providers;
use super::reader::{Reader, Reported};
use super::routes::{Surroundings, defaults, routes};
use super::server::{ServerTable, server};
use super::settings::Config;
use super::shown::quoted;
use super::sources::Sources;
use super::stores::store;
use super::table::{Completeness, Table, TableForm};
use crate::admin;

/// Reads all settings.
///
/// # Errors
///
/// Every problem at once.
pub(super) fn check(sources: &Sources) -> Result<Config, Problems> {
    let mut reader = Reader::new(sources);
    let config = read(&mut reader, sources.tree().clone(), Completeness::Complete);
    let mut problems = sources.problems.clone();
    for problem in reader.into_collected().problems.iter() {
        problems.push(problem.clone());
    }
    match config {
        Ok(config) if problems.is_empty() => Ok(config),
        Ok(_) | Err(_) => Err(problems),
    }
}

/// What the settings made of variables, whose values are all text.
pub(super) fn typed(sources: &Sources) -> BTreeMap<Key, Value> {
    let mut reader = Reader::new(sources);
    // Who asks has checked the sources before, and knows their problems.
    let _: Result<_, Reported> = read(&mut reader, sources.tree().clone(), Completeness::Complete);
    reader.into_collected().typed
}

/// Whether there is a setting of this name. The names of routes and providers are free, so that
/// only those count that are in the sources.
pub(super) fn is_setting(sources: &Sources, key: &Key) -> bool {
    let is_there = match key.parts() {
        [table, name, _, ..] if matches!(table.as_str(), "routes" | "providers") => {
            sources.value(&Key::of(&[table, name])).is_some()
        }
        [table, ..] => !matches!(table.as_str(), "routes" | "providers"),
        [] => false,
    };
    if !is_there {
        return false;
    }
    // A configuration that has nothing but this setting, without a value. If it can be read, every
    // part of the name is known.
    let nothing = Value::Empty(Tag::Default, Empty::None);
    let tree =
        key.parts().iter().rev().fold(nothing, |tree, part| {
            Value::Dict(Tag::Default, Dict::from([(part.clone(), tree)]))
        });
    let mut reader = Reader::new(sources);
    let _: Result<_, Reported> = read(&mut reader, tree, Completeness::Incomplete);
    reader.into_collected().problems.is_empty()
}

fn read(
    reader: &mut Reader<'_>,
    tree: Value,
    completeness: Completeness,
) -> Result<Config, Reported> {
    let form = TableForm { expected: "tables such as `[server]`", completeness };
    reader.table(&Key::default(), tree, form, config)
}

fn config(table: &mut Table<'_, '_>) -> Result<Config, Reported> {
    let server = table.section("server", server)?;
    let admin = table.section("admin", |table| Ok(admin(table)))?;
    let store = table.table("store", "a table such as `[store.embedded]`", store);
    let retention = table.section("defaults", defaults)?;
    let providers = providers(table).unwrap_or_default();
    let ServerTable { settings: server, listen, public_url, bodies_max } = server;
    let routes = routes(table, &Surroundings { bodies_max, public_url, providers });
    // Only addresses that were written are compared. A built-in one that stands in for a mistake
    // would make a second, false problem.
    if let (Ok(listen), Ok(admin)) = (listen, admin.listen) {
        check_listeners(table, listen, admin);
        // An operator who mends another mistake may change an address with it.
        if let (Ok(routes), Ok(())) = (&routes, table.reader.none_since(0)) {
            own_address::check(table.reader, &[listen, admin], routes);
        }
    }
    Ok(Config {
        server: server?,
        admin: admin::Settings { listen: admin.listen?, token: admin.token?, retention },
        store: store?.ok_or_else(|| table.missing("store", "a value", None))?,
        routes: routes?,
    })
}

/// Reports two listeners at one address. Port 0 stands for any free port, which is another one for
/// each of them.
fn check_listeners(table: &mut Table<'_, '_>, server: SocketAddr, admin: SocketAddr) {
    if server == admin && server.port() != 0 {
        let expected = "another address than `server.listen`";
        let hint = "give one of them another port";
        let key = Key::of(&["admin", "listen"]);
        table.reader.report(&key, expected, quoted(&admin.to_string()), Some(hint));
    }
}
