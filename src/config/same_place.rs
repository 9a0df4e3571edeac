//! Routes that would take each other's requests.

use std::collections::BTreeSet;
use std::collections::hash_map::{self, HashMap};

use super::key::Key;
use super::shown::quoted;
use super::table::Table;
use crate::proxy::{PathPattern, RouteSettings, misread};

/// Where the requests of a route come in.
#[derive(Debug, Clone)]
pub(super) struct Address {
    /// The name of the route.
    pub(super) name: String,
    /// Any host, if there is none.
    pub(super) host: Option<String>,
    pub(super) path: PathPattern,
}

/// Reports each route that has the address of another one. Gives the names of both.
pub(super) fn check_addresses<'a>(
    table: &mut Table<'_, '_>,
    addresses: impl Iterator<Item = &'a Address>,
) -> BTreeSet<String> {
    let mut twins = BTreeSet::new();
    let mut seen: HashMap<_, &Address> = HashMap::new();
    for address in addresses {
        // Some servers ignore case and a slash at the end, and read both paths as one.
        match seen.entry((&address.host, address.path.folded())) {
            hash_map::Entry::Vacant(first) => {
                first.insert(address);
            }
            hash_map::Entry::Occupied(first) => {
                let twin = *first.get();
                twins.extend([twin.name.clone(), address.name.clone()]);
                let reading =
                    if twin.path == address.path { "" } else { ", as some receivers read it" };
                let route = Key::of(&[&twin.name]);
                let found = format!("that of route `{route}`{reading}");
                let expected = "a path that no other route of this host has";
                let hint = "give one of them another `path` or `host`, or make them one route";
                let key = table.key("routes").join(&*address.name).join("path");
                table.reader.report(&key, expected, found, Some(hint));
            }
        }
    }
    twins
}

/// Reports each route whose path some upstream may read as that of another route. The `twins` have
/// been reported already.
pub(super) fn check_readings(
    table: &mut Table<'_, '_>,
    routes: &[RouteSettings],
    twins: &BTreeSet<String>,
) {
    for route in misread(routes).into_iter().filter(|route| !twins.contains(&*route.name)) {
        let expected = "a path that nobody can read as that of a route with another receiver, \
                        provider, secret or mode";
        let hint = "give one of them another `path` or `host`, or both the same `upstream`, \
                    `provider`, `secrets` and `mode`";
        let key = table.key("routes").join(&*route.name).join("path");
        let found = quoted(&route.path.to_string());
        table.reader.report(&key, expected, found, Some(hint));
    }
}
