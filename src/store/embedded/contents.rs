//! What a database must contain: the file `contents` in its directory.
//!
//! The database makes anew whatever it misses, be it a journal or a table, and deletes tables whose
//! names it cannot find. Without a list of our own, a store of which a part is gone would open as an
//! empty one, and forward again what it had recorded.
//!
//! The database begins and removes journals by itself (`src/worker_pool.rs` and
//! `src/journal/manager.rs` of fjall-rs/fjall), so a crash may leave one that is not noted yet. The
//! other way round, the newest one that is noted is there, and holds a group that was synced, unless
//! it is noted as empty.
//!
//! A store of an older version has no list until it is opened.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::directory::sync_directory;
use super::journal;

const NAME: &str = "contents";

/// The journal that the database begins with.
pub(super) const FIRST_JOURNAL: u64 = 0;

/// The folder of the tables, and what every table has in its own.
const TABLES: &str = "keyspaces";
const CURRENT: &str = "current";

/// What tells the database that there is one.
const VERSION: &str = "version";

/// Tables that the oldest version made, and the one in which the database keeps their names.
const OLDEST_TABLES: std::ops::RangeInclusive<u64> = 0..=4;

/// What a database contains.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Contents {
    tables: BTreeSet<u64>,
    newest_journal: u64,
    /// Journals that held no group when they were last looked at.
    empty_journals: BTreeSet<u64>,
}

impl Contents {
    /// What is written down.
    pub(super) fn read(records: &Path) -> io::Result<Option<Self>> {
        let path = records.join(NAME);
        match fs::read(&path) {
            Ok(bytes) => match serde_json::from_slice(&bytes) {
                Ok(contents) => Ok(Some(contents)),
                Err(error) => {
                    let says = format!("`{}` is damaged: {error}", path.display());
                    Err(io::Error::new(io::ErrorKind::InvalidData, says))
                }
            },
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// What is there. `used` are journals that hold a group; one that was begun since does not.
    pub(super) fn of(records: &Path, used: &BTreeSet<u64>) -> io::Result<Self> {
        let folder = records.join(TABLES);
        let mut tables = BTreeSet::new();
        for entry in fs::read_dir(&folder)? {
            let name = entry?.file_name();
            tables.extend(name.to_str().and_then(|name| name.parse::<u64>().ok()));
        }
        // the database does not sync it when it makes a table
        sync_directory(&folder)?;
        let journals = journal::numbers(records)?;
        let newest_journal = journals.last().copied().unwrap_or(FIRST_JOURNAL);
        let empty_journals = journals.into_iter().filter(|number| !used.contains(number)).collect();
        Ok(Self { tables, newest_journal, empty_journals })
    }

    /// Writes it down, durably.
    pub(super) fn write(&self, records: &Path) -> io::Result<()> {
        let unfinished = records.join(format!("{NAME}.new"));
        let mut file = File::create(&unfinished)?;
        file.write_all(&serde_json::to_vec(self).map_err(io::Error::other)?)?;
        file.sync_all()?;
        fs::rename(&unfinished, records.join(NAME))?;
        sync_directory(records)
    }

    /// A file or folder without which the database would begin anew, wholly or with a table.
    pub(super) fn missing(contents: Option<&Self>, records: &Path) -> io::Result<Option<PathBuf>> {
        let folder = records.join(TABLES);
        let mut needed = vec![records.join(VERSION), folder.clone()];
        let tables = contents.map_or_else(|| OLDEST_TABLES.collect(), |list| list.tables.clone());
        for table in tables {
            let table = folder.join(table.to_string());
            let current = table.join(CURRENT);
            needed.extend([table, current]);
        }
        for path in needed {
            if !path.try_exists()? {
                return Ok(Some(path));
            }
        }
        Ok(None)
    }

    pub(super) const fn newest_journal(&self) -> u64 {
        self.newest_journal
    }

    /// Whether a journal is noted as empty.
    pub(super) fn is_empty(&self, journal: u64) -> bool {
        self.empty_journals.contains(&journal)
    }

    /// Notes that a group has just been written. Gives back whether there is anything new.
    pub(super) fn note_group(&mut self, records: &Path) -> io::Result<bool> {
        let noted = self.newest_journal;
        while journal::path(records, self.newest_journal.saturating_add(1)).try_exists()? {
            self.newest_journal = self.newest_journal.saturating_add(1);
        }
        if self.newest_journal == noted {
            return Ok(self.empty_journals.remove(&noted));
        }
        // the group is in this one or in the one before it: the next group tells
        self.empty_journals.insert(self.newest_journal);
        Ok(true)
    }
}
