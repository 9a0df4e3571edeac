//! The mark: the place in the log up to which the database has all rows.
//!
//! ```text
//! magic 8 bytes `onceMRK\n`  version u32 = 1  accounts u32
//! place: segment u64  offset u64  group u64 (0: before the first group of a new log)
//! time u64 (ms)  lowest free number of a segment u64
//! accounts: segment u64  live u64  bytes u64  end u64  clear by u64 (ms)  last end u64 (ms)
//! crc32 u32 of all that
//! ```
//!
//! All numbers are little-endian. The file is replaced as a whole. The database may be ahead of it,
//! but never behind.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::accounts::{Account, Accounts};
use crate::operation::Timestamp;
use crate::store::embedded::filesystem::replace_file;
use crate::store::embedded::log::Position;

const MAGIC: [u8; 8] = *b"onceMRK\n";
const VERSION: u32 = 1;

/// What the mark says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Mark {
    /// The database has all groups before it. None: the log is new.
    pub(super) position: Option<Position>,
    /// The latest time of the store's clock in these groups.
    pub(super) time: Timestamp,
    /// The accounts after these groups.
    pub(super) accounts: Accounts,
}

/// Returns the path of the mark of the log in a folder.
pub(super) fn path(folder: &Path) -> PathBuf {
    folder.join("mark")
}

impl Mark {
    /// The mark of a new log.
    pub(super) fn new() -> Self {
        Self { position: None, time: Timestamp(0), accounts: Accounts::default() }
    }

    /// Reads the mark. If its bytes have changed, it is an error of the kind
    /// [`io::ErrorKind::InvalidData`].
    pub(super) fn read(folder: &Path) -> io::Result<Self> {
        let path = path(folder);
        let bytes = fs::read(&path)?;
        let damaged = || {
            let says = format!("`{}` is damaged", path.display());
            io::Error::new(io::ErrorKind::InvalidData, says)
        };
        Self::from_bytes(&bytes).ok_or_else(damaged)
    }

    /// Writes the mark, durably.
    pub(super) fn write(&self, folder: &Path) -> io::Result<()> {
        replace_file(&path(folder), [self.to_bytes().as_slice()])
    }

    fn to_bytes(&self) -> Vec<u8> {
        let Self { position, time, accounts } = self;
        let count = u32::try_from(accounts.iter().count()).unwrap_or(u32::MAX);
        let start = [MAGIC.as_slice(), &VERSION.to_le_bytes(), &count.to_le_bytes()].concat();
        let Position { segment, offset, group } =
            position.unwrap_or(Position { segment: 0, offset: 0, group: 0 });
        let numbers = [segment, offset, group, time.0, accounts.numbers_from()];
        let accounts = accounts.iter().flat_map(|(segment, account)| {
            let Account { live, bytes, end, clear_by, last_end } = *account;
            [segment, live, bytes, end, clear_by.0, last_end.0]
        });
        let numbers = numbers.into_iter().chain(accounts);
        let mut bytes = start;
        bytes.extend(numbers.flat_map(u64::to_le_bytes));
        let crc = crc32fast::hash(&bytes);
        bytes.extend(crc.to_le_bytes());
        bytes
    }

    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (checked, crc) = bytes.split_last_chunk()?;
        if crc32fast::hash(checked) != u32::from_le_bytes(*crc) {
            return None;
        }
        let (magic, rest) = checked.split_first_chunk::<8>()?;
        let (version, rest) = rest.split_first_chunk()?;
        let (count, rest) = rest.split_first_chunk()?;
        if *magic != MAGIC || u32::from_le_bytes(*version) != VERSION {
            return None;
        }
        let (numbers, rest) = rest.as_chunks::<8>();
        let numbers: Vec<_> = numbers.iter().map(|bytes| u64::from_le_bytes(*bytes)).collect();
        let [segment, offset, group, time, numbers_from, accounts @ ..] = numbers.as_slice() else {
            return None;
        };
        let (accounts, none) = accounts.as_chunks::<6>();
        if !rest.is_empty() || !none.is_empty() || accounts.len() as u64 != count_of(*count) {
            return None;
        }
        let account = |[segment, live, bytes, end, clear_by, last_end]: &[u64; 6]| {
            let times = [clear_by, last_end].map(|time| Timestamp(*time));
            let [clear_by, last_end] = times;
            let [live, bytes, end] = [live, bytes, end].map(|number| *number);
            (*segment, Account { live, bytes, end, clear_by, last_end })
        };
        let accounts: BTreeMap<_, _> = accounts.iter().map(account).collect();
        let position = Position { segment: *segment, offset: *offset, group: *group };
        Some(Self {
            position: (position.group > 0).then_some(position),
            time: Timestamp(*time),
            accounts: Accounts::noted(accounts, *numbers_from),
        })
    }
}

fn count_of(count: [u8; 4]) -> u64 {
    u32::from_le_bytes(count).into()
}
