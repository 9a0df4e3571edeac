//! The rows that are not in the database yet.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::ops::Bound;

use lsm_tree::Slice;

use super::rows::{TABLES, Table};

/// The rows of one table, as they are now. A row without a value was removed.
pub(super) type Rows = BTreeMap<Slice, Option<Slice>>;

/// The changed rows of all tables.
#[derive(Debug, Default)]
pub(super) struct Memory {
    tables: [Rows; TABLES],
    changes: usize,
}

impl Memory {
    /// Returns what is known of a row: none if nothing, and the value or none if it was removed.
    pub(super) fn get(&self, table: Table, key: &[u8]) -> Option<Option<&Slice>> {
        self.rows(table).get(key).map(Option::as_ref)
    }

    /// Changes a row.
    pub(super) fn set(&mut self, table: Table, key: Slice, value: Option<Slice>) {
        self.changes += 1;
        let rows = &mut self.tables[table as usize];
        match rows.entry(key) {
            // No other row ever has this key, so the database never had it.
            Entry::Occupied(row) if value.is_none() && table.is_used_once(row.key()) => {
                row.remove();
            }
            Entry::Occupied(mut row) => {
                row.insert(value);
            }
            Entry::Vacant(row) => {
                row.insert(value);
            }
        }
    }

    /// The number of changes, which bounds the number of rows.
    pub(super) const fn changes(&self) -> usize {
        self.changes
    }

    pub(super) fn rows(&self, table: Table) -> &Rows {
        &self.tables[table as usize]
    }

    /// Returns a part of a table.
    pub(super) fn range(
        &self,
        table: Table,
        from: Bound<Slice>,
        until: Bound<Slice>,
    ) -> impl DoubleEndedIterator<Item = (Slice, Option<Slice>)> + '_ {
        let part = self.rows(table).range((from, until));
        part.map(|(key, value)| (key.clone(), value.clone()))
    }
}
