//! Functions of the file system that the files of a store need.

use std::io;
use std::path::{Path, PathBuf};

/// Returns a free name under which a damaged file or folder can be kept. So nothing is overwritten.
pub(super) fn keep_aside(path: &Path) -> io::Result<PathBuf> {
    let mut name = path.as_os_str().to_owned();
    name.push(".damaged");
    let mut free = PathBuf::from(&name);
    let mut number = 2_u32;
    while free.try_exists()? {
        let mut numbered = name.clone();
        numbered.push(format!(".{number}"));
        free = numbered.into();
        number = number.saturating_add(1);
    }
    Ok(free)
}

/// Makes new names in a directory survive a loss of power. Syncing a file does not sync its name
/// (`fsync(2)` in the Linux manual).
#[cfg(unix)]
pub(super) fn sync_directory(path: &Path) -> io::Result<()> {
    // The parent of a bare name is an empty path, which stands for the current directory.
    let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
    std::fs::File::open(path)?.sync_all()
}

/// Other systems cannot sync a directory.
#[cfg(not(unix))]
pub(super) fn sync_directory(_path: &Path) -> io::Result<()> {
    Ok(())
}
