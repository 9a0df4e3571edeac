//! The part of the file system that the log uses. Tests replace it by a disk that fails and forgets.

use std::fmt::Debug;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use crate::store::embedded::filesystem;
use crate::store::random::random;

/// Files in folders.
pub(in crate::store::embedded) trait Disk:
    Debug + Clone + Send + Sync + 'static
{
    type File: DiskFile;

    /// Whether work may be done by a thread beside the caller's.
    const HAS_THREADS: bool;

    /// Makes an empty file. An existing one is emptied.
    fn create(&self, path: &Path) -> io::Result<Self::File>;
    fn open(&self, path: &Path) -> io::Result<Self::File>;
    /// Returns the names of the files in a folder, in any order.
    fn names(&self, folder: &Path) -> io::Result<Vec<String>>;
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
    fn remove(&self, path: &Path) -> io::Result<()>;
    /// Makes the names in a folder survive a loss of power.
    fn sync_folder(&self, folder: &Path) -> io::Result<()>;
    /// Returns a random number.
    fn random(&self) -> io::Result<u64>;
}

/// A file that is open for reading and writing.
pub(in crate::store::embedded) trait DiskFile:
    Debug + Send + Sync + 'static
{
    fn bytes(&self) -> io::Result<u64>;
    fn set_bytes(&self, bytes: u64) -> io::Result<()>;
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()>;
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()>;
    /// Makes the bytes and their number survive a loss of power.
    fn sync(&self) -> io::Result<()>;
}

/// The disk of the machine.
#[derive(Debug, Clone, Copy)]
pub(in crate::store::embedded) struct RealDisk;

impl Disk for RealDisk {
    type File = File;

    const HAS_THREADS: bool = true;

    fn create(&self, path: &Path) -> io::Result<File> {
        File::options().read(true).write(true).create(true).truncate(true).open(path)
    }

    fn open(&self, path: &Path) -> io::Result<File> {
        File::options().read(true).write(true).open(path)
    }

    fn names(&self, folder: &Path) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in fs::read_dir(folder)? {
            // The log gives no file a name that is not Unicode.
            names.extend(entry?.file_name().into_string().ok());
        }
        Ok(names)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }

    fn sync_folder(&self, folder: &Path) -> io::Result<()> {
        filesystem::sync_directory(folder)
    }

    fn random(&self) -> io::Result<u64> {
        random().map(u64::from_le_bytes).map_err(io::Error::other)
    }
}

impl DiskFile for File {
    fn bytes(&self) -> io::Result<u64> {
        Ok(self.metadata()?.len())
    }

    fn set_bytes(&self, bytes: u64) -> io::Result<()> {
        self.set_len(bytes)
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        self.read_exact_at(buffer, offset)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.write_all_at(bytes, offset)
    }

    fn sync(&self) -> io::Result<()> {
        self.sync_data()
    }
}
