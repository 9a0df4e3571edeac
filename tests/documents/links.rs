//! Every page can be found, and every link leads somewhere.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::page::{Page, pages, read, root};

fn is_elsewhere(link: &str) -> bool {
    link.starts_with("https://") || link.starts_with("http://")
}

#[test]
fn every_link_leads_to_a_file_and_a_heading() {
    let mut wrong = Vec::new();
    for page in pages() {
        for link in page.links().iter().filter(|link| !is_elsewhere(link)) {
            let (file, heading) = page.target(link);
            if !root().join(&file).is_file() {
                wrong.push(format!("{}: `{link}` leads to no file", page.file));
            } else if let Some(heading) = heading {
                let text = read(file.to_str().unwrap());
                let target = Page { file: file.display().to_string(), text };
                if !target.anchors().contains(&heading) {
                    wrong.push(format!("{}: `{link}` leads to no heading", page.file));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

#[test]
fn every_page_can_be_reached_from_the_readme() {
    let pages = pages();
    let page_of = |file: &Path| pages.iter().find(|page| Path::new(&page.file) == file);
    let mut reached = BTreeSet::new();
    let mut next = vec![PathBuf::from("README.md")];
    while let Some(file) = next.pop() {
        if let Some(page) = page_of(&file).filter(|_| reached.insert(file)) {
            let links = page.links();
            let here = links.iter().filter(|link| !is_elsewhere(link));
            next.extend(here.map(|link| page.target(link).0));
        }
    }
    // GitHub shows these two by themselves.
    let shown = ["CHANGELOG.md", ".github/SECURITY.md"].map(PathBuf::from);
    let missing: Vec<&str> = pages
        .iter()
        .map(|page| page.file.as_str())
        .filter(|file| !reached.contains(Path::new(file)) && !shown.contains(&PathBuf::from(file)))
        .collect();
    assert!(missing.is_empty(), "{missing:?}");
}

/// In the documentation of the library a relative link would lead nowhere.
#[test]
fn pages_that_the_library_includes_have_no_relative_links() {
    let included = included();
    assert!(included.len() > 2, "{included:?}");
    for page in pages().iter().filter(|page| included.contains(&page.file)) {
        let links = page.links();
        let relative: Vec<&String> = links.iter().filter(|link| !is_elsewhere(link)).collect();
        assert!(relative.is_empty(), "{}: {relative:?}", page.file);
    }
}

/// Whoever opens a page learns in its first sentence what it is for.
#[test]
fn every_page_opens_with_a_heading_and_a_sentence() {
    for page in pages() {
        let mut lines = page.text.lines();
        assert!(lines.next().unwrap().starts_with("# "), "{}", page.file);
        assert_eq!(lines.next(), Some(""), "{}", page.file);
        let first = lines.next().unwrap();
        assert!(first.starts_with(char::is_alphanumeric), "{}: {first}", page.file);
    }
}

/// The pages that the documentation of the library is made of.
pub(crate) fn included() -> BTreeSet<String> {
    let mut included = BTreeSet::new();
    let mut folders = vec![root().join("src")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let text = std::fs::read_to_string(&path).unwrap();
            let names = text.split("include_str!(\"").skip(1);
            let names = names.map(|rest| rest.split_once('"').unwrap().0);
            let pages =
                names.filter_map(|name| name.trim_start_matches("../").strip_prefix("docs/"));
            included.extend(pages.map(|name| format!("docs/{name}")));
        }
    }
    included
}
