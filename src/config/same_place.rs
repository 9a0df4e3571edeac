//! Routes that would take each other's requests.

use std::collections::hash_map::{self, HashMap};
use std::collections::{BTreeMap, BTreeSet};

use super::check::Check;
use super::leaf::Text;
use super::problem::Key;
use super::raw::RawRoute;
use crate::proxy::{PathPattern, RouteSettings, misread};

/// On what is written, so that another mistake in one of the two does not hide it. Gives the names
/// of those that are at one place.
pub(super) fn same_place(
    check: &mut Check<'_>,
    at: &Key,
    routes: &BTreeMap<String, Option<RawRoute>>,
) -> BTreeSet<String> {
    let mut told = BTreeSet::new();
    let mut seen: HashMap<_, (&String, &PathPattern)> = HashMap::new();
    for (name, route) in routes {
        let Some(RawRoute { host, path: Some(Text(path)), .. }) = route else {
            continue;
        };
        let host = host.as_ref().and_then(|Text(host)| host.as_ref());
        match seen.entry((host, path.folded())) {
            hash_map::Entry::Vacant(first) => {
                first.insert((name, path));
            }
            hash_map::Entry::Occupied(first) => {
                let (twin, other) = *first.get();
                told.extend([twin.clone(), name.clone()]);
                let read = if other == path { "" } else { ", as some receivers read it" };
                let found = format!("that of route `{twin}`{read}");
                let key = at.join(name.as_str()).join("path");
                let hint = "give one of them another `path` or `host`, or make them one route";
                check.report(
                    &key,
                    "a path that no other route of this host has",
                    found,
                    Some(hint),
                );
            }
        }
    }
    told
}

/// Reports each route whose path is read as that of another one. Of those that are at one place
/// that has been said already.
pub(super) fn misread_paths(
    check: &mut Check<'_>,
    at: &Key,
    routes: &[RouteSettings],
    told: &BTreeSet<String>,
) {
    for route in misread(routes).into_iter().filter(|route| !told.contains(&*route.name)) {
        let expected = "a path that nobody can read as that of a route with another receiver, \
                        provider, secret or mode";
        let key = at.join(&*route.name).join("path");
        let hint = "give one of them another `path` or `host`, or both the same `upstream`, \
                    `provider`, `secrets` and `mode`";
        check.report(&key, expected, format!("`{}`", route.path), Some(hint));
    }
}
