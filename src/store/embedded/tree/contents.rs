//! Lists what a database must contain. The list is the file `contents` in the database's directory.
//!
//! If a journal or a table is missing, the database makes an empty one in its place. It also
//! deletes tables whose names it cannot find. Without this list, a store that lost a part would be
//! carried over as an empty one, and would forward again what it had recorded.
//!
//! The database began and removed journals by itself. This has two consequences:
//!
//! * A crash may have left a new journal that is not listed yet. The newest listed journal must
//!   exist. It must hold a synced group, unless it is listed as empty.
//! * The database removed the oldest journal when the tables had everything that it held. After a
//!   crash at that moment, the journal looks like one that a person removed while it was needed. So
//!   a full journal has a second name, `N.full`. If only the second name is left, the journal is
//!   put back, because to read a journal once more changes nothing. If neither name is left, the
//!   journal is lost.
//!
//! A store of the oldest versions has no list, or a list without the later fields.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::journal::files;
use crate::store::embedded::filesystem::replace_file;

const NAME: &str = "contents";

/// The number of a database's first journal.
const FIRST_JOURNAL: u64 = 0;

/// The folder of the tables.
const TABLES: &str = "keyspaces";
/// The name of a file that every table has in its own folder.
const CURRENT: &str = "current";

/// The file by which the database recognises an existing database.
const VERSION: &str = "version";

/// The numbers of the tables that the oldest version made, and of the table in which the database
/// keeps their names.
const OLDEST_TABLES: std::ops::RangeInclusive<u64> = 0..=4;

/// The contents of a database.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct Contents {
    tables: BTreeSet<u64>,
    newest_journal: u64,
    /// The journals that held no group when the list was written.
    empty_journals: BTreeSet<u64>,
    /// The journals that have a second name. Each has the sequence number of a group that the
    /// journal must reach.
    #[serde(default)]
    full_journals: BTreeMap<u64, u64>,
    /// Whether the file `synced` exists. That file says how far the journals were synced.
    #[serde(default)]
    notes_synced: bool,
}

impl Contents {
    /// Reads the list. Returns none if there is no list.
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

    /// Whether a folder has a list. The list is the last file that was written when a database was
    /// made.
    pub(super) fn exists(records: &Path) -> io::Result<bool> {
        records.join(NAME).try_exists()
    }

    /// Removes the list.
    pub(super) fn remove(records: &Path) -> io::Result<()> {
        fs::remove_file(records.join(NAME))
    }

    /// Returns a missing file or folder without which the database would begin anew or lose a
    /// table.
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

    pub(super) const fn notes_synced(&self) -> bool {
        self.notes_synced
    }

    /// Returns the sequence number that a full journal must reach.
    pub(super) fn reaches(&self, journal: u64) -> Option<u64> {
        self.full_journals.get(&journal).copied()
    }

    /// Restores each full journal that has only its second name left.
    pub(super) fn put_back(&self, records: &Path) -> io::Result<()> {
        for number in self.full_journals.keys() {
            let journal = files::path(records, *number);
            let second = journal.with_extension("full");
            if !journal.try_exists()? && second.try_exists()? {
                fs::hard_link(second, &journal)?;
                tracing::info!(journal = %journal.display(), "a journal is read once more");
            }
        }
        Ok(())
    }

    /// Returns the number of a missing journal. The database began journals one after the other and
    /// removed the oldest ones. So their numbers have no gaps, and there is always a journal.
    pub(super) fn missing_journal(contents: Option<&Self>, journals: &[u64]) -> Option<u64> {
        let oldest = journals.first().copied();
        let oldest_full = contents.and_then(|list| list.full_journals.keys().next().copied());
        let mut expected = oldest.min(oldest_full.or(oldest));
        for number in journals {
            if expected != Some(*number) {
                return expected;
            }
            expected = number.checked_add(1);
        }
        let newest = contents.map_or(FIRST_JOURNAL, |list| list.newest_journal);
        match journals.last() {
            None => Some(newest),
            Some(last) => expected.filter(|_| contents.is_some() && *last < newest),
        }
    }

    /// Whether a journal may have no whole group. When a journal was full, the database began the
    /// next one before it had anything to write.
    pub(super) fn may_be_empty(contents: Option<&Self>, number: u64, is_newest: bool) -> bool {
        match contents {
            Some(list) if number <= list.newest_journal => list.empty_journals.contains(&number),
            Some(_) | None => is_newest,
        }
    }

    /// Makes the list agree with what is left of the journals, durably. `empty` are those that have
    /// no group. So the next start does not ask again whether the loss is accepted.
    pub(super) fn agree(
        mut self,
        records: &Path,
        newest: u64,
        empty: BTreeSet<u64>,
    ) -> io::Result<()> {
        self.newest_journal = newest;
        self.empty_journals = empty;
        self.full_journals.clear();
        let list = serde_json::to_vec(&self).map_err(io::Error::other)?;
        replace_file(&records.join(NAME), [list.as_slice()])
    }
}
