//! Restores the index rows of records, after a part of a journal was lost.
//!
//! Not every change of a record writes all rows about it: those in `created` and `keys` come with
//! the first claim alone. If the group of that claim is lost and a later one is whole, the store
//! has the record, but no list shows it. So all rows are written anew when a loss was accepted. Rows
//! of `created` and `keys` that are there already stay as they are. An end that `due` has already
//! gets a second row. The sweep that reaches it finds nothing left to do.

use super::batch::Batch;
use super::tables::{IndexEntries, Tables, failed, unless_unreadable};
use crate::operation::Timestamp;
use crate::store::Error;

/// The most records whose rows are written in one group.
const BATCH_MAX: usize = 1024;

/// Writes the index rows of all records. Returns once they are durable, since the note of the loss
/// is removed next.
pub(super) fn reindex(tables: &mut Tables, now: Timestamp) -> Result<(), Error> {
    let mut count = 0;
    let mut last = None;
    loop {
        let mut batch = Batch::new(tables);
        let mut read = 0;
        for record in tables.records_after(last).take(BATCH_MAX) {
            read += 1;
            if let Err(Error::Unreadable(id, _)) = record {
                last = Some(id);
            }
            let Some(operation) = unless_unreadable(record)? else { continue };
            let id = operation.subject.id;
            batch.index(id, None, Some(IndexEntries::of(&operation)));
            last = Some(id);
            count += 1;
        }
        batch.commit(tables, now).map_err(failed)?;
        if read < BATCH_MAX {
            break;
        }
    }
    tables.sync().map_err(failed)?;
    tracing::info!(records = count, "the rows by which records are listed are written anew");
    Ok(())
}
