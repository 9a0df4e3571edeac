//! Functions of the file system that the files of a store need.

use std::fs::{self, File};
use std::io::{self, Write as _};
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

/// Makes or replaces a file, durably. The old file keeps its name until the new one is complete, so
/// a crash leaves one of them whole.
pub(super) fn replace_file<'a>(
    path: &Path,
    parts: impl IntoIterator<Item = &'a [u8]>,
) -> io::Result<()> {
    let unfinished = path.with_added_extension("new");
    let mut file = File::create(&unfinished)?;
    parts.into_iter().try_for_each(|part| file.write_all(part))?;
    file.sync_all()?;
    fs::rename(&unfinished, path)?;
    path.parent().map_or(Ok(()), sync_directory)
}

/// Makes new names in a directory survive a loss of power. Syncing a file does not sync its name
/// (`fsync(2)` in the Linux manual).
#[cfg(unix)]
pub(super) fn sync_directory(path: &Path) -> io::Result<()> {
    // The parent of a bare name is an empty path, which stands for the current directory.
    let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
    File::open(path)?.sync_all()
}

/// Other systems cannot sync a directory.
#[cfg(not(unix))]
pub(super) fn sync_directory(_path: &Path) -> io::Result<()> {
    Ok(())
}
