//! Lists what a database must contain. The list is the file `contents` in the database's directory.
//!
//! If a journal or a table is missing, the database makes an empty one in its place. It also
//! deletes tables whose names it cannot find. Without a list of our own, a store that lost a part
//! would open as an empty one, and would forward again what it had recorded.
//!
//! The database begins and removes journals by itself (`src/worker_pool.rs` and
//! `src/journal/manager.rs` of fjall-rs/fjall). This has two consequences:
//!
//! * A crash may leave a new journal that is not listed yet. The newest listed journal must exist.
//!   It must hold a synced group, unless it is listed as empty.
//! * The database removes the oldest journal when the tables have everything that it held. After a
//!   crash at that moment, the journal looks like one that a person removed while it was needed. So
//!   a full journal has a second name, `N.full`, until the list says that the database has removed
//!   the journal. If a start finds only the second name, it puts the journal back, because to read
//!   a journal once more changes nothing. If a start finds neither name, the journal is lost.
//!
//! A missing journal stays unnoticed in two cases. The first is rare: a journal becomes full, the
//! process is killed before it writes another group, and then a person removes the full journal.
//! The new journal is listed only with the first group after its beginning, so the full one has no
//! second name yet. The second case is a full journal on a file system without hard links.
//!
//! A store of an older version has no list, or a list without the later fields, until this version
//! opens it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::filesystem::{replace_file, sync_directory};
use super::journal::files;

const NAME: &str = "contents";

/// The number of a database's first journal.
pub(super) const FIRST_JOURNAL: u64 = 0;

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
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
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

    /// Whether a folder has a list. The list is the last file that is written when a database is
    /// made.
    pub(super) fn exists(records: &Path) -> io::Result<bool> {
        records.join(NAME).try_exists()
    }

    /// Lists the present contents. `used` are the journals that hold a group, each with the
    /// sequence number of its last group. A journal that was begun since then holds no group.
    pub(super) fn of(records: &Path, used: &BTreeMap<u64, u64>) -> io::Result<Self> {
        let folder = records.join(TABLES);
        let mut tables = BTreeSet::new();
        for entry in fs::read_dir(&folder)? {
            let name = entry?.file_name();
            tables.extend(name.to_str().and_then(|name| name.parse::<u64>().ok()));
        }
        // The database does not sync this folder when it makes a table.
        sync_directory(&folder)?;
        let journals = files::numbers(records)?;
        let newest_journal = journals.last().copied().unwrap_or(FIRST_JOURNAL);
        let empty_journals = journals.into_iter().filter(|number| !used.contains_key(number));
        let mut contents = Self {
            tables,
            newest_journal,
            empty_journals: empty_journals.collect(),
            full_journals: BTreeMap::new(),
            notes_synced: true,
        };
        for (number, reaches) in used.range(..newest_journal) {
            contents.note_full(records, *number, *reaches);
        }
        Ok(contents)
    }

    /// Writes the list durably.
    pub(super) fn write(&self, records: &Path) -> io::Result<()> {
        let list = serde_json::to_vec(self).map_err(io::Error::other)?;
        replace_file(&records.join(NAME), [list.as_slice()])?;
        // Second names that the list no longer needs are removed.
        second_names(records)?
            .into_iter()
            .filter(|number| !self.full_journals.contains_key(number))
            .try_for_each(|number| fs::remove_file(second_name(records, number)))
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

    pub(super) const fn newest_journal(&self) -> u64 {
        self.newest_journal
    }

    pub(super) const fn notes_synced(&self) -> bool {
        self.notes_synced
    }

    /// Whether a journal is listed as empty.
    pub(super) fn is_empty(&self, journal: u64) -> bool {
        self.empty_journals.contains(&journal)
    }

    /// Returns the sequence number that a full journal must reach.
    pub(super) fn reaches(&self, journal: u64) -> Option<u64> {
        self.full_journals.get(&journal).copied()
    }

    /// Returns the number of the oldest journal that must exist.
    pub(super) fn oldest_full_journal(&self) -> Option<u64> {
        self.full_journals.first_key_value().map(|(number, _)| *number)
    }

    /// Restores each full journal that has only its second name left.
    pub(super) fn put_back(&self, records: &Path) -> io::Result<()> {
        for number in self.full_journals.keys() {
            let journal = files::path(records, *number);
            let second = second_name(records, *number);
            if !journal.try_exists()? && second.try_exists()? {
                fs::hard_link(second, &journal)?;
                tracing::info!(journal = %journal.display(), "a journal is read once more");
            }
        }
        Ok(())
    }

    /// Updates the list after a group was written; `synced` is the number of the group before it.
    /// Returns whether the list has changed.
    pub(super) fn note_group(&mut self, records: &Path, synced: u64) -> io::Result<bool> {
        let noted = self.newest_journal;
        let mut is_new = self.empty_journals.remove(&noted);
        loop {
            let next = self.newest_journal.saturating_add(1);
            let path = files::path(records, next);
            if !path.try_exists()? {
                break;
            }
            self.note_full(records, self.newest_journal, synced);
            self.newest_journal = next;
            // The group may be in this journal or in the one before it.
            if !files::is_begun(&path)? {
                self.empty_journals.insert(next);
            }
            is_new = true;
        }
        let mut removed = Vec::new();
        for number in self.full_journals.keys() {
            if !files::path(records, *number).try_exists()? {
                removed.push(*number);
            }
        }
        for number in removed {
            self.full_journals.remove(&number);
            is_new = true;
        }
        Ok(is_new)
    }

    /// Gives a full journal its second name, unless the database has removed the journal meanwhile.
    fn note_full(&mut self, records: &Path, number: u64, reaches: u64) {
        let journal = files::path(records, number);
        let is_kept = match fs::hard_link(journal, second_name(records, number)) {
            Ok(()) => true,
            // The journal got its second name when the store was opened.
            Err(error) => error.kind() == io::ErrorKind::AlreadyExists,
        };
        if is_kept {
            self.full_journals.insert(number, reaches);
        }
    }
}

/// Returns the second name of a full journal.
fn second_name(records: &Path, number: u64) -> PathBuf {
    files::path(records, number).with_extension(SECOND)
}

/// The extension of second names.
const SECOND: &str = "full";

/// Returns the numbers of the journals that have a second name.
fn second_names(records: &Path) -> io::Result<Vec<u64>> {
    files::numbers_of(records, SECOND)
}

/// Gives these full journals their second names anew, because the mending of a journal replaces its
/// file.
pub(super) fn name_again(records: &Path, full: impl Iterator<Item = u64>) -> io::Result<()> {
    for number in second_names(records)? {
        fs::remove_file(second_name(records, number))?;
    }
    for number in full {
        // On a file system without hard links this fails, and a missing full journal stays
        // unnoticed.
        let _second = fs::hard_link(files::path(records, number), second_name(records, number));
    }
    sync_directory(records)
}
