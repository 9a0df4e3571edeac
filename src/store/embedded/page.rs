//! Reads a part of a list.

use super::group::Group;
use super::tables::{TimeKey, failed};
use super::writer::Writer;
use crate::operation::state;
use crate::store::{Error, ListPage, ListPosition, ListQuery};
use crate::telemetry::chain;

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
            match self.find(id, &nothing_changed) {
                Ok(found) => {
                    let current = state::lapse(found, now).operation;
                    operations.extend(current.filter(|found| query.matches(found)));
                }
                // One damaged record must not hide all the others from an operator.
                Err(error @ Error::Unreadable(..)) => {
                    tracing::error!(operation.id = %id, error = %chain(&error), "a record is kept");
                }
                Err(error) => return Err(error),
            }
        }
        Ok(ListPage { operations, next: None })
    }
}
