//! Tests of stores of format 1, and of their files.

mod carrying;
mod opening;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

/// What is in a folder. A folder has no bytes.
fn files(folder: &Path) -> BTreeMap<PathBuf, Option<Vec<u8>>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path));
            found.insert(path, None);
        } else {
            let bytes = fs::read(&path).unwrap();
            found.insert(path, Some(bytes));
        }
    }
    found
}

fn copy_of(folder: &Path) -> TempDir {
    let copy = tempfile::tempdir().unwrap();
    for (path, bytes) in files(folder) {
        let to = copy.path().join(path.strip_prefix(folder).unwrap());
        match bytes {
            Some(bytes) => fs::write(to, bytes),
            None => fs::create_dir_all(to),
        }
        .unwrap();
    }
    copy
}

fn remove(path: &Path) {
    if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) }.unwrap();
}
