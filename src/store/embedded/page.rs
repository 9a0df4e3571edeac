//! A part of a list.

use super::group::Group;
use super::tables::{Dated, failed};
use super::writer::Writer;
use super::{Error, ListPage, ListQuery};
use crate::operation::state;
use crate::store::ListPosition;
use crate::telemetry::chain;

/// Records that are looked at for one part.
pub(super) const PART: usize = 200;

impl Writer {
    /// What is listed among the next [`PART`] records.
    pub(super) fn page(&self, listing: &ListQuery) -> Result<ListPage, Error> {
        let now = self.shared.clock.now();
        let nothing_changed = Group::default();
        let mut operations = Vec::new();
        let mut next = None;
        let after = listing.after.map(|ListPosition { created_at: at, id }| Dated { at, id });
        let rows: Box<dyn Iterator<Item = _>> = match listing.key_digest() {
            Some(key) => Box::new(self.tables.keyed_before(key, after)),
            None => Box::new(self.tables.created_before(after)),
        };
        for (looked_at, row) in rows.enumerate() {
            if operations.len() == listing.limit || looked_at == PART {
                return Ok(ListPage { operations, next });
            }
            let Dated { at: created_at, id } = row.map_err(failed)?;
            next = Some(ListPosition { created_at, id });
            match self.find(id, &nothing_changed) {
                Ok(found) => {
                    let stands = state::lapse(found, now).operation;
                    operations.extend(stands.filter(|found| listing.wants(found)));
                }
                // it hides no other one
                Err(error @ Error::Unreadable(..)) => {
                    tracing::error!(operation.id = %id, error = %chain(&error), "a record is kept");
                }
                Err(error) => return Err(error),
            }
        }
        Ok(ListPage { operations, next: None })
    }
}
