//! What a database must contain: the file `contents` in its directory.
//!
//! The database makes anew whatever it misses, be it a journal or a table, and deletes tables whose
//! names it cannot find. Without a list of our own, a store of which a part is gone would open as an
//! empty one, and forward again what it had recorded.
//!
//! The database begins and removes journals by itself (`src/worker_pool.rs` and
//! `src/journal/manager.rs` of fjall-rs/fjall):
//!
//! * A crash may leave a new journal that is not noted yet. The newest one that is noted is there,
//!   and holds a group that was synced, unless it is noted as empty.
//! * It removes the oldest journal when the tables have all that it held. A crash right after that
//!   leaves what a person leaves who removes the file while it is needed. So a journal that is full
//!   gets a second name, `N.full`, until we have noted that the database has removed it. A start
//!   that finds the second name alone puts the journal back: to read it once more changes nothing.
//!   One that finds neither name has lost the journal.
//!
//! A new journal is noted with the first group behind its beginning. If the process is killed before
//! that, the journal before it is either there or was removed by the database, and a person who
//! removes it then is not noticed. That takes a journal that is full, no further group, a kill, and
//! a person's hand, in this order. On a file system without second names a full journal is not
//! missed either.
//!
//! A store of an older version has no list until it is opened, or one that lacks the later fields.

use std::collections::{BTreeMap, BTreeSet};
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
    /// Journals that have a second name, and the sequence number of a group that each one reaches.
    #[serde(default)]
    full_journals: BTreeMap<u64, u64>,
    /// Whether the file is there that says how far the journals were synced.
    #[serde(default)]
    notes_synced: bool,
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

    /// Whether there is a list in this directory. It is what is written last when a database is made.
    pub(super) fn exists(records: &Path) -> io::Result<bool> {
        records.join(NAME).try_exists()
    }

    /// What is there. `used` are the journals that hold a group, and the sequence number of their
    /// last one; a journal that was begun since does not.
    pub(super) fn of(records: &Path, used: &BTreeMap<u64, u64>) -> io::Result<Self> {
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

    /// Writes it down, durably.
    pub(super) fn write(&self, records: &Path) -> io::Result<()> {
        let unfinished = records.join(format!("{NAME}.new"));
        let mut file = File::create(&unfinished)?;
        file.write_all(&serde_json::to_vec(self).map_err(io::Error::other)?)?;
        file.sync_all()?;
        fs::rename(&unfinished, records.join(NAME))?;
        sync_directory(records)?;
        // not needed any more by what is written down
        second_names(records)?
            .into_iter()
            .filter(|number| !self.full_journals.contains_key(number))
            .try_for_each(|number| fs::remove_file(second_name(records, number)))
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

    pub(super) const fn notes_synced(&self) -> bool {
        self.notes_synced
    }

    /// Whether a journal is noted as empty.
    pub(super) fn is_empty(&self, journal: u64) -> bool {
        self.empty_journals.contains(&journal)
    }

    /// The sequence number of a group that a full journal reaches.
    pub(super) fn reaches(&self, journal: u64) -> Option<u64> {
        self.full_journals.get(&journal).copied()
    }

    /// The oldest journal that must be there.
    pub(super) fn oldest_full_journal(&self) -> Option<u64> {
        self.full_journals.first_key_value().map(|(number, _)| *number)
    }

    /// Puts full journals back of which only the second name is left.
    pub(super) fn put_back(&self, records: &Path) -> io::Result<()> {
        for number in self.full_journals.keys() {
            let journal = journal::path(records, *number);
            let second = second_name(records, *number);
            if !journal.try_exists()? && second.try_exists()? {
                fs::hard_link(second, &journal)?;
                tracing::info!(journal = %journal.display(), "a journal is read once more");
            }
        }
        Ok(())
    }

    /// Notes that a group has just been written, and that `synced` was the one before it. Gives back
    /// whether there is anything new.
    pub(super) fn note_group(&mut self, records: &Path, synced: u64) -> io::Result<bool> {
        let noted = self.newest_journal;
        let mut is_new = self.empty_journals.remove(&noted);
        loop {
            let next = self.newest_journal.saturating_add(1);
            let path = journal::path(records, next);
            if !path.try_exists()? {
                break;
            }
            self.note_full(records, self.newest_journal, synced);
            self.newest_journal = next;
            // the group is in this one or in the one before it
            if !journal::is_begun(&path)? {
                self.empty_journals.insert(next);
            }
            is_new = true;
        }
        let mut removed = Vec::new();
        for number in self.full_journals.keys() {
            if !journal::path(records, *number).try_exists()? {
                removed.push(*number);
            }
        }
        for number in removed {
            self.full_journals.remove(&number);
            is_new = true;
        }
        Ok(is_new)
    }

    /// Gives a full journal its second name, if the database has not removed it meanwhile.
    fn note_full(&mut self, records: &Path, number: u64, reaches: u64) {
        let journal = journal::path(records, number);
        let is_kept = match fs::hard_link(journal, second_name(records, number)) {
            Ok(()) => true,
            // it has got it before the database was opened
            Err(error) => error.kind() == io::ErrorKind::AlreadyExists,
        };
        if is_kept {
            self.full_journals.insert(number, reaches);
        }
    }
}

/// The second name of a full journal.
fn second_name(records: &Path, number: u64) -> PathBuf {
    journal::path(records, number).with_extension(SECOND)
}

/// How second names end.
const SECOND: &str = "full";

/// The journals that have a second name.
fn second_names(records: &Path) -> io::Result<Vec<u64>> {
    journal::numbers_of(records, SECOND)
}

/// Gives these full journals their second names anew: they may have been mended since.
pub(super) fn name_again(records: &Path, full: impl Iterator<Item = u64>) -> io::Result<()> {
    for number in second_names(records)? {
        fs::remove_file(second_name(records, number))?;
    }
    for number in full {
        // without it, on a file system that knows no second names, the journal is not missed
        let _second = fs::hard_link(journal::path(records, number), second_name(records, number));
    }
    sync_directory(records)
}
