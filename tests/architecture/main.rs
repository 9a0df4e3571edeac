//! Holds the source to its shape: which module may import which, and what every file looks like.

#![expect(clippy::unwrap_used, reason = "a test that cannot read the source has to fail")]

mod circles;
mod citations;
mod parameters;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Lowest row first. A module imports from rows before its own, never from its neighbours.
const ROWS: &[&[&str]] = &[
    &["words"],
    &["operation"],
    &["clock", "json", "problem", "secret"],
    &["telemetry"],
    &["budget"],
    &["provider", "listener", "store", "upstream"],
    &["idempotency"],
    &["admin", "proxy"],
    &["layer"],
    &["config"],
    &["app"],
    &["cli"],
];
const CODE_LINES_MAX: usize = 400;
/// Names that say nothing attract everything.
const NAMES_REFUSED: &[&str] = &["common", "helpers", "misc", "util", "utils"];
/// In two pieces, so that this file does not find itself.
const MARKERS_REFUSED: &[&str] = &[concat!("TO", "DO"), concat!("FIX", "ME")];

#[test]
fn the_source_keeps_its_shape() {
    let folders = ["src", "tests", "examples"].map(Path::new);
    let files = folders.into_iter().filter(|folder| folder.is_dir()).flat_map(rust_files);
    let problems: Vec<String> = files
        .flat_map(|path| {
            let text = fs::read_to_string(&path).unwrap();
            problems_of(&path.display().to_string(), &text)
        })
        .collect();
    assert!(problems.is_empty(), "\n{}\n", problems.join("\n"));
}

/// Circles that stay, each with its reason.
const CIRCLES_LEFT: &[(&[&str], &str)] = &[];

#[test]
fn no_files_of_a_module_import_from_each_other_in_a_circle() {
    let own = |path: PathBuf| {
        let text = fs::read_to_string(&path).unwrap();
        let code: Vec<&str> = code_lines(&text).into_iter().map(without_comment).collect();
        (path.strip_prefix("src").unwrap().display().to_string(), code.join("\n"))
    };
    let files = rust_files(Path::new("src")).into_iter();
    let sources: BTreeMap<String, String> =
        files.filter(|path| !is_test(&path.display().to_string())).map(own).collect();
    let left: Vec<&[&str]> = CIRCLES_LEFT.iter().map(|(circle, _)| *circle).collect();
    assert_eq!(circles::circles(&sources), left, "found on the left, explained on the right");
}

#[test]
fn no_text_cites_a_catalogue_that_its_reader_does_not_have() {
    let texts = ["docs", "README.md"]
        .map(Path::new)
        .into_iter()
        .flat_map(|path| if path.is_dir() { files_in(path, "md") } else { vec![path.to_owned()] });
    let problems: Vec<String> = texts
        .flat_map(|path| {
            let text = fs::read_to_string(&path).unwrap();
            citations_in(&path.display().to_string(), text.lines(), citations::catalogue_number)
        })
        .collect();
    assert!(problems.is_empty(), "\n{}\n", problems.join("\n"));
}

#[test]
fn the_map_of_promises_names_every_file_of_its_tests() {
    let map = fs::read_to_string("tests/it/main.rs").unwrap();
    let named = |name: &str| {
        [format!("`{name}.rs`"), format!("`{name}/`"), format!("`{name}/")]
            .iter()
            .any(|form| map.contains(form))
    };
    let modules = map.lines().filter_map(declared_module);
    let missing: Vec<_> = modules.filter(|name| *name != "support" && !named(name)).collect();
    assert!(missing.is_empty(), "say in `tests/it/main.rs` what is promised in {missing:?}");
    let is_file = |part: &&str| !part.contains(' ') && part.contains(".rs");
    for path in map.split('`').filter(is_file) {
        assert!(Path::new("tests/it").join(path).exists(), "`tests/it/main.rs` names `{path}`");
    }
}

#[test]
fn the_library_declares_its_modules_in_the_order_of_the_rows() {
    let library = fs::read_to_string("src/lib.rs").unwrap();
    let declared: Vec<&str> = library.lines().filter_map(declared_module).collect();
    assert_eq!(declared, ROWS.concat());
}

/// Everything that is wrong with one file, each as `path:line: what`.
fn problems_of(path: &str, text: &str) -> Vec<String> {
    let mut problems = Vec::new();
    if !text.starts_with("//!") {
        problems.push(format!("{path}:1: say in a `//!` line what this file is for"));
    }
    if let Some(name) = path.split(['/', '.']).find(|part| NAMES_REFUSED.contains(part)) {
        problems.push(format!("{path}: `{name}` says nothing, name it after what it does"));
    }
    for (number, line) in (1..).zip(text.lines()) {
        if let Some(marker) = MARKERS_REFUSED.iter().find(|marker| line.contains(**marker)) {
            problems.push(format!("{path}:{number}: `{marker}` belongs into an issue"));
        }
    }
    problems.extend(citations_in(path, text.lines(), |line| {
        let comment = line.split_once("//").map_or("", |(_, comment)| comment);
        citations::catalogue_number(comment).or_else(|| citations::number_in_name(line))
    }));
    if path.starts_with("src/") && !is_test(path) {
        problems.extend(problems_of_code(path, text));
    }
    problems
}

fn citations_in<'t>(
    path: &str,
    lines: impl Iterator<Item = &'t str>,
    find: impl Fn(&'t str) -> Option<&'t str>,
) -> Vec<String> {
    let found = (1..).zip(lines).filter_map(|(number, line)| Some((number, find(line)?)));
    found
        .map(|(number, cited)| {
            format!("{path}:{number}: say what `{cited}` stands for: nobody has its catalogue")
        })
        .collect()
}

fn problems_of_code(path: &str, text: &str) -> Vec<String> {
    let mut problems = Vec::new();
    let code = code_lines(text);
    if code.len() > CODE_LINES_MAX {
        let found = code.len();
        problems.push(format!("{path}: {found} lines of code, more than {CODE_LINES_MAX}"));
    }
    let bare: Vec<&str> = code.iter().map(|line| without_comment(line)).collect();
    for (number, name) in parameters::with_tuples(&bare.join("\n")) {
        problems.push(format!("{path}:{number}: `{name}` takes a tuple: give its parts names"));
    }
    for (number, line) in (1..).zip(code) {
        let mut report = |what: String| problems.push(format!("{path}:{number}: {what}"));
        if line.contains("use super::*") {
            report("name what is imported from `super`".to_owned());
        }
        let Some(module) = module_of(path) else {
            continue;
        };
        if longest_climb(line) >= depth_of(path) {
            report("this `super` leaves the module, write `crate::`".to_owned());
        }
        for imported in line.split("crate::").skip(1).map(leading_identifier) {
            if imported.is_empty() {
                report("one `use crate::module::{..}` line for each module".to_owned());
            } else if imported != module && row_of(&imported) >= row_of(&module) {
                report(format!("`{module}` may not import `{imported}`"));
            }
        }
    }
    problems
}

/// The lines before the module of tests at the end of a file.
fn code_lines(text: &str) -> Vec<&str> {
    let lines: Vec<&str> = text.lines().collect();
    let tests = lines.windows(2).position(|pair| match pair {
        [attribute, module] => *attribute == "#[cfg(test)]" && module.ends_with('{'),
        _ => false,
    });
    lines.into_iter().take(tests.unwrap_or(usize::MAX)).collect()
}

/// A string that holds `//` is cut off too, which harms nobody here.
fn without_comment(line: &str) -> &str {
    line.split_once("//").map_or(line, |(code, _)| code)
}

/// `tests.rs` and everything below `tests/`.
fn is_test(path: &str) -> bool {
    path.split('/').any(|part| part == "tests" || part == "tests.rs")
}

/// `src/store/memory.rs` belongs to `store`; `src/main.rs` and `src/lib.rs` to no module.
fn module_of(path: &str) -> Option<String> {
    let module = leading_identifier(path.strip_prefix("src/")?);
    (module != "lib" && module != "main").then_some(module)
}

/// How many `super::` lead from a file to the root: 1 from `src/store/mod.rs` and `src/app.rs`.
fn depth_of(path: &str) -> usize {
    path.trim_end_matches("/mod.rs").matches('/').count()
}

/// The longest chain of `super::` in a line.
fn longest_climb(line: &str) -> usize {
    (1..line.len())
        .take_while(|length| line.contains(&"super::".repeat(*length)))
        .last()
        .unwrap_or(0)
}

/// A name in no row sorts above all of them: nobody may import it.
fn row_of(module: &str) -> usize {
    ROWS.iter().position(|row| row.contains(&module)).unwrap_or(ROWS.len())
}

fn declared_module(line: &str) -> Option<&str> {
    line.trim_start_matches("pub ").strip_prefix("mod ")?.strip_suffix(';')
}

fn leading_identifier(text: &str) -> String {
    text.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect()
}

fn rust_files(folder: &Path) -> Vec<PathBuf> {
    files_in(folder, "rs")
}

fn files_in(folder: &Path, wanted: &str) -> Vec<PathBuf> {
    let mut paths: Vec<_> = fs::read_dir(folder).unwrap().map(|e| e.unwrap().path()).collect();
    paths.sort();
    let (folders, mut files): (Vec<_>, Vec<_>) = paths.into_iter().partition(|p| p.is_dir());
    files.retain(|path| path.extension().is_some_and(|extension| extension == wanted));
    files.extend(folders.iter().flat_map(|folder| files_in(folder, wanted)));
    files
}

#[test]
fn an_import_from_below_is_fine() {
    let text =
        "//! Finds routes.\nuse super::route::Route;\nuse crate::upstream::{Target, Scheme};\n";
    assert_eq!(problems_of("src/proxy/select.rs", text), Vec::<String>::new());
}

#[test]
fn an_import_from_above_or_beside_is_reported() {
    let text =
        "//! Keeps records.\nuse crate::idempotency::Executor;\nuse crate::upstream::Target;\n";
    let expected = [
        "src/store/mod.rs:2: `store` may not import `idempotency`",
        "src/store/mod.rs:3: `store` may not import `upstream`",
    ];
    assert_eq!(problems_of("src/store/mod.rs", text), expected);
}

#[test]
fn an_import_in_disguise_is_reported() {
    let text = "//! Keeps records.\nuse crate::{app, cli};\nuse super::super::cli::run;\n";
    let expected = [
        "src/store/memory.rs:2: one `use crate::module::{..}` line for each module",
        "src/store/memory.rs:3: this `super` leaves the module, write `crate::`",
    ];
    assert_eq!(problems_of("src/store/memory.rs", text), expected);
}

#[test]
fn a_module_in_no_row_can_be_imported_by_nobody() {
    let text = "//! The program.\nuse crate::novelty::New;\n";
    let expected = ["src/cli/mod.rs:2: `cli` may not import `novelty`"];
    assert_eq!(problems_of("src/cli/mod.rs", text), expected);
}

#[test]
fn a_file_that_says_nothing_of_itself_is_reported() {
    let text = format!("use std::fs;\n// {}: later\nuse super::*;\n", concat!("TO", "DO"));
    let expected = [
        "src/store/util.rs:1: say in a `//!` line what this file is for".to_owned(),
        "src/store/util.rs: `util` says nothing, name it after what it does".to_owned(),
        format!("src/store/util.rs:2: `{}` belongs into an issue", concat!("TO", "DO")),
        "src/store/util.rs:3: name what is imported from `super`".to_owned(),
    ];
    assert_eq!(problems_of("src/store/util.rs", &text), expected);
}

#[test]
fn a_tuple_without_names_is_reported() {
    let text = "//! Keeps records.\n// Both of them.\nfn keep(pair: (Id, Record)) {}\n";
    let expected = ["src/store/memory.rs:3: `keep` takes a tuple: give its parts names"];
    assert_eq!(problems_of("src/store/memory.rs", text), expected);
}

#[test]
fn a_number_of_somebody_elses_catalogue_is_reported() {
    // In pieces, so that this file is not found itself.
    let case = concat!("C", "59");
    let text = format!("//! Keeps records.\n/// {case}\nlet code = {case};\n");
    let expected =
        [format!("tests/it/a.rs:2: say what `{case}` stands for: nobody has its catalogue")];
    assert_eq!(problems_of("tests/it/a.rs", &text), expected);
}

#[test]
fn only_code_before_the_tests_is_counted() {
    let tests = "#[cfg(test)]\nmod tests {\n    use super::*;\n}\n";
    let short = format!("//! Long tests.\n{tests}{}", "\n".repeat(CODE_LINES_MAX));
    assert_eq!(problems_of("src/store/memory.rs", &short), Vec::<String>::new());
    let long = format!("//! Long code.\n{}{tests}", "\n".repeat(CODE_LINES_MAX));
    let expected = [format!("src/store/memory.rs: 401 lines of code, more than {CODE_LINES_MAX}")];
    assert_eq!(problems_of("src/store/memory.rs", &long), expected);
    let elsewhere = long.replace("long", "short");
    assert_eq!(problems_of("src/store/tests.rs", &elsewhere), Vec::<String>::new());
}
