//! The mark says up to which position of the log the database has all rows. A start reads the log
//! from there.
//!
//! ```text
//! 8  magic `onceMRK\x01`
//! 8  xxh3 of the rest, little-endian
//! rest: a `Mark` in postcard
//! ```

use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

use super::accounts::Accounts;
use crate::operation::Timestamp;
use crate::store::embedded::filesystem::replace_file;
use crate::store::embedded::log::Position;

const MAGIC: [u8; 8] = *b"onceMRK\x01";

/// What the database has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::store::embedded) struct Mark {
    /// The position behind the last group of which the database has the rows.
    pub(in crate::store::embedded) position: Position,
    /// The time of the store's clock.
    pub(in crate::store::embedded) time: Timestamp,
    /// The records of these segments.
    pub(in crate::store::embedded) accounts: Accounts,
}

impl Mark {
    /// Returns the path of the file.
    pub(in crate::store::embedded) fn path(folder: &Path) -> PathBuf {
        folder.join("mark")
    }

    /// Reads the file.
    pub(in crate::store::embedded) fn read(folder: &Path) -> io::Result<Self> {
        let path = Self::path(folder);
        let bytes = std::fs::read(&path)?;
        Self::from_bytes(&bytes).ok_or_else(|| {
            let says = format!("`{}` is damaged", path.display());
            io::Error::new(io::ErrorKind::InvalidData, says)
        })
    }

    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (sum, content) = bytes.strip_prefix(&MAGIC)?.split_first_chunk()?;
        let is_whole = u64::from_le_bytes(*sum) == xxh3_64(content);
        is_whole.then(|| postcard::from_bytes(content).ok()).flatten()
    }

    /// Replaces the file durably.
    pub(in crate::store::embedded) fn write(&self, folder: &Path) -> io::Result<()> {
        let content = postcard::to_allocvec(self).map_err(io::Error::other)?;
        let sum = xxh3_64(&content).to_le_bytes();
        replace_file(&Self::path(folder), [MAGIC.as_slice(), &sum, &content])
    }
}
