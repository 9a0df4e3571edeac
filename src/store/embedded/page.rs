//! Reads a part of a list.

use super::group::Group;
use super::tables::{TimeKey, failed, unless_unreadable};
use super::writer::Writer;
use crate::operation::state;
use crate::store::{Error, ListPage, ListPosition, ListQuery};

/// The most records that are read for one part. The writer makes no change while it reads them.
pub(super) const PART: usize = 200;

impl Writer {
    /// Returns the operations that the query asks for, among the next [`PART`] records.
    pub(super) fn page(&self, query: &ListQuery) -> Result<ListPage, Error> {
        let now = self.shared.clock.now();
        let nothing_changed = Group::default();
        let mut operations = Vec::new();
        let mut next = None;
        let after = query.after.map(|ListPosition { created_at: at, id }| TimeKey { at, id });
        let rows: Box<dyn Iterator<Item = _>> = match query.key_digest() {
            Some(key) => Box::new(self.tables.keyed_before(key, after)),
            None => Box::new(self.tables.created_before(after)),
        };
        for (scanned, row) in rows.enumerate() {
            if operations.len() == query.limit || scanned == PART {
                return Ok(ListPage { operations, next });
            }
            let TimeKey { at: created_at, id } = row.map_err(failed)?;
            next = Some(ListPosition { created_at, id });
            // One damaged record must not hide all the others from an operator.
            if let Some(found) = unless_unreadable(self.find(id, &nothing_changed))? {
                let current = state::lapse(found, now).operation;
                operations.extend(current.filter(|found| query.matches(found)));
            }
        }
        Ok(ListPage { operations, next: None })
    }
}
