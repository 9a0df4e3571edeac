//! Circles of files: files of one module that import from each other, directly or around.
//!
//! A reader of one of them has to read all of them at once. A `mod.rs` is in no circle: a child may
//! use what its parent defines, and the parent its children, as a page has parts.

use std::collections::{BTreeMap, BTreeSet};

/// The circles, each as the sorted paths of its files. `sources`: paths below `src`, and the code
/// without comments and tests.
pub(crate) fn circles(sources: &BTreeMap<String, String>) -> Vec<Vec<String>> {
    let modules: BTreeMap<String, &str> =
        sources.keys().map(|path| (module_path(path), path.as_str())).collect();
    let imports: BTreeMap<&str, BTreeSet<&str>> = sources
        .iter()
        .filter(|(path, _)| !is_parent(path))
        .map(|(path, code)| (path.as_str(), imported(path, code, &modules, sources)))
        .collect();
    let mut circles = BTreeSet::new();
    for path in imports.keys() {
        let from_here = reached(path, &imports);
        if from_here.contains(path) {
            let is_in_it = |other: &&&str| reached(other, &imports).contains(path);
            let circle: Vec<_> =
                from_here.iter().filter(is_in_it).map(ToString::to_string).collect();
            circles.insert(circle);
        }
    }
    circles.into_iter().collect()
}

/// The files to which imports lead from a file.
fn reached<'s>(from: &str, imports: &BTreeMap<&'s str, BTreeSet<&'s str>>) -> BTreeSet<&'s str> {
    let mut found = BTreeSet::new();
    let mut next = vec![from];
    while let Some(path) = next.pop() {
        for imported in &imports[path] {
            if found.insert(*imported) {
                next.push(imported);
            }
        }
    }
    found
}

/// The other files of the same module from which a file imports something.
fn imported<'s>(
    path: &str,
    code: &str,
    modules: &BTreeMap<String, &'s str>,
    sources: &BTreeMap<String, String>,
) -> BTreeSet<&'s str> {
    let own = module_path(path);
    let first = |module: &str| module.split("::").next().map(str::to_owned);
    references(code)
        .iter()
        .filter_map(|reference| absolute(&own, reference, modules))
        .filter_map(|reference| file_of(&reference, modules, sources))
        .filter(|found| *found != path && !is_parent(found))
        .filter(|found| first(&module_path(found)) == first(&own))
        .collect()
}

/// The file in which something stands. What a parent gives on from a child stands in the child.
fn file_of<'s>(
    reference: &str,
    modules: &BTreeMap<String, &'s str>,
    sources: &BTreeMap<String, String>,
) -> Option<&'s str> {
    let mut module = reference;
    let path = loop {
        match modules.get(module) {
            Some(path) => break *path,
            None => module = module.rsplit_once("::")?.0,
        }
    };
    let item = reference[module.len()..].trim_start_matches("::").split("::").next()?;
    if item.is_empty() || !is_parent(path) {
        return Some(path);
    }
    let given_on = references(&sources[path])
        .into_iter()
        .filter(|given| given.rsplit("::").next() == Some(item))
        .find_map(|given| absolute(module, &given, modules));
    match given_on {
        Some(given_on) if given_on != reference => file_of(&given_on, modules, sources),
        _ => Some(path),
    }
}

/// `super::reply::Reply` in `idempotency::claim` is `idempotency::reply::Reply`. None: it is of
/// another crate.
fn absolute(own: &str, reference: &str, modules: &BTreeMap<String, &str>) -> Option<String> {
    if let Some(rest) = reference.strip_prefix("crate::") {
        return Some(rest.to_owned());
    }
    if let Some(rest) = reference.strip_prefix("self::") {
        return Some(format!("{own}::{rest}"));
    }
    let (mut own, mut rest, mut climbed) = (own, reference, false);
    while let Some(above) = rest.strip_prefix("super::") {
        own = own.rsplit_once("::").map_or("", |(parent, _)| parent);
        rest = above;
        climbed = true;
    }
    let child = format!("{own}::{rest}");
    let child = child.trim_start_matches("::");
    let is_here = modules.contains_key(&format!("{own}::{}", rest.split("::").next()?));
    (climbed || is_here).then(|| child.to_owned())
}

/// All paths that the code names: those of `use`, each on its own, and those in between.
fn references(code: &str) -> Vec<String> {
    let trees = code.split("use ").skip(1).filter_map(|rest| rest.split_once(';'));
    let used = trees.flat_map(|(tree, _)| expanded(tree));
    let is_path = |c: char| c.is_alphanumeric() || c == '_' || c == ':';
    let named = code.split(|c| !is_path(c)).map(|path| path.trim_end_matches(':'));
    let named = named.filter(|path| path.starts_with("super::") || path.starts_with("crate::"));
    used.chain(named.map(str::to_owned)).collect()
}

/// `a::{b, c::{d, e}}` as `a::b`, `a::c::d` and `a::c::e`.
fn expanded(tree: &str) -> Vec<String> {
    let tree = tree.trim();
    let Some((start, branches)) = tree.split_once('{') else {
        let path = tree.split(" as ").next().unwrap_or_default();
        return vec![path.chars().filter(|c| !c.is_whitespace()).collect()];
    };
    let branches = branches.rsplit_once('}').map_or(branches, |(inside, _)| inside);
    let mut all = Vec::new();
    let mut branch = String::new();
    let mut depth = 0_i32;
    for c in branches.chars().chain([',']) {
        depth += i32::from(c == '{') - i32::from(c == '}');
        if c == ',' && depth == 0 {
            let paths = expanded(&branch).into_iter().filter(|path| !path.is_empty());
            all.extend(paths.map(|path| format!("{}{path}", start.trim())));
            branch.clear();
        } else {
            branch.push(c);
        }
    }
    all
}

/// `store/redis/mod.rs` is `store::redis`, `store/redis/node.rs` is `store::redis::node`.
fn module_path(path: &str) -> String {
    path.trim_end_matches(".rs").trim_end_matches("/mod").replace('/', "::")
}

fn is_parent(path: &str) -> bool {
    path.ends_with("mod.rs") || path == "lib.rs" || path == "main.rs"
}

#[cfg(test)]
mod tests {
    use super::*;

    fn circles_of(files: &[(&str, &str)]) -> Vec<Vec<String>> {
        let own = |(path, code): &(&str, &str)| ((*path).to_owned(), (*code).to_owned());
        circles(&files.iter().map(own).collect())
    }

    #[test]
    fn two_files_that_import_from_each_other_are_a_circle() {
        let circle = circles_of(&[
            ("store/mod.rs", "mod one;\nmod other;\n"),
            ("store/one.rs", "use super::other::{Other, Another as B};\n"),
            ("store/other.rs", "fn other() -> super::one::One { crate::store::one::One }\n"),
        ]);
        assert_eq!(circle, [["store/one.rs", "store/other.rs"]]);
    }

    #[test]
    fn a_way_around_over_what_a_parent_gives_on_is_a_circle() {
        let circle = circles_of(&[
            ("store/mod.rs", "mod one;\nmod two;\nmod three;\npub use one::{One};\n"),
            ("store/one.rs", "use std::fs;\nuse super::two::{self};\n"),
            ("store/two.rs", "use crate::store::{three::Three};\n"),
            ("store/three.rs", "use super::One;\n"),
            ("store/four.rs", "use super::{One, two::Two};\n"),
        ]);
        assert_eq!(circle, [["store/one.rs", "store/three.rs", "store/two.rs"]]);
    }

    #[test]
    fn a_parent_with_its_children_and_other_modules_are_none() {
        let circle = circles_of(&[
            ("store/mod.rs", "mod one;\nuse one::One;\npub struct Store(One);\n"),
            ("store/one.rs", "use super::Store;\nuse crate::clock::now;\n"),
            ("clock.rs", "use crate::store::one::One;\n"),
        ]);
        assert_eq!(circle, Vec::<Vec<String>>::new());
    }
}
