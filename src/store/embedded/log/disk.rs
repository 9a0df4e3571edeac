//! The small layer between the log and the file system.
//!
//! The log calls nothing else of the file system. So a test can replace the layer by a disk that
//! loses, tears and reorders what was not synced.

use std::fmt;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::sync::Arc;

use crate::store::embedded::filesystem::sync_directory;

/// The names of files.
pub(in crate::store::embedded) trait Disk: fmt::Debug + Send + Sync {
    /// Makes a file, or empties an existing one.
    fn create(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>>;
    /// Opens a file for reading and writing.
    fn open(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>>;
    /// Returns the names in a folder.
    fn names(&self, folder: &Path) -> io::Result<Vec<String>>;
    /// Removes a file.
    fn remove(&self, path: &Path) -> io::Result<()>;
    /// Makes new names in a folder survive a loss of power.
    fn sync_names(&self, folder: &Path) -> io::Result<()>;
}

/// An open file.
pub(in crate::store::embedded) trait DiskFile: fmt::Debug + Send + Sync {
    /// Reads exactly as many bytes as the buffer has.
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<()>;
    /// Writes all bytes.
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()>;
    /// The number of bytes.
    fn length(&self) -> io::Result<u64>;
    /// Cuts the file off, or fills it up with zeros.
    fn set_length(&self, length: u64) -> io::Result<()>;
    /// Returns once all that was written would survive a loss of power.
    fn sync(&self) -> io::Result<()>;
}

/// The file system of the machine.
#[derive(Debug)]
pub(in crate::store::embedded) struct RealDisk;

impl Disk for RealDisk {
    fn create(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>> {
        let mut options = File::options();
        Ok(Arc::new(options.read(true).write(true).create(true).truncate(true).open(path)?))
    }

    fn open(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>> {
        Ok(Arc::new(File::options().read(true).write(true).open(path)?))
    }

    fn names(&self, folder: &Path) -> io::Result<Vec<String>> {
        let entries = fs::read_dir(folder)?;
        entries.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned())).collect()
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }

    fn sync_names(&self, folder: &Path) -> io::Result<()> {
        sync_directory(folder)
    }
}

impl DiskFile for File {
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<()> {
        self.read_exact_at(bytes, offset)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.write_all_at(bytes, offset)
    }

    fn length(&self) -> io::Result<u64> {
        Ok(self.metadata()?.len())
    }

    fn set_length(&self, length: u64) -> io::Result<()> {
        self.set_len(length)
    }

    fn sync(&self) -> io::Result<()> {
        self.sync_data()
    }
}
