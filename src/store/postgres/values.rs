//! The values of a swap, as the functions of the schema take them and return them.

use tokio_postgres::Row;

use super::database::get;
use super::row::{Columns, millis, timestamp};
use crate::store::Error;
use crate::store::shared::{Expected, Found, Revision, StoredRecord, Swap, SwapResult, Write};

/// The values of a swap.
#[derive(Debug)]
pub(super) struct SwapValues {
    pub(super) id: String,
    pub(super) expected_revision: Option<i64>,
    pub(super) expected_lapsed: Option<bool>,
    pub(super) change: &'static str,
    pub(super) new_revision: Option<i64>,
    pub(super) new_record: Option<Vec<u8>>,
    pub(super) columns: Columns,
    pub(super) not_before: Option<i64>,
    pub(super) not_after: Option<i64>,
    pub(super) is_durable: bool,
    pub(super) ends: bool,
    pub(super) waits: bool,
    /// The epoch that the tables must have, if any.
    pub(super) epoch: Option<String>,
}

impl SwapValues {
    pub(super) fn of(swap: &Swap<'_>, epoch: Option<String>) -> Self {
        let conditions = swap.write.conditions();
        let mut values = Self {
            id: swap.id.to_string(),
            expected_revision: None,
            expected_lapsed: None,
            change: "look",
            new_revision: None,
            new_record: None,
            columns: Columns::default(),
            not_before: conditions.map(|conditions| millis(conditions.not_before)),
            not_after: conditions.map(|conditions| millis(conditions.not_after)),
            is_durable: conditions.is_some_and(|conditions| conditions.durable),
            ends: conditions.is_some_and(|conditions| conditions.ends),
            waits: swap.waits,
            epoch,
        };
        if let Expected::Revision { revision, lapsed, .. } = swap.expected {
            values.expected_revision = Some(signed(revision));
            values.expected_lapsed = Some(lapsed);
        }
        match swap.write {
            Write::Nothing => {}
            Write::Removal(_) => values.change = "remove",
            Write::Record { revision, bytes, operation, .. } => {
                values.change = "put";
                values.new_revision = Some(signed(revision));
                values.new_record = Some(bytes.to_vec());
                values.columns = Columns::of(operation);
            }
        }
        values
    }
}

/// The columns that both functions return first, in the order in which [`result_of`] reads them.
pub(super) const RESULT: &str = "is_done, at_millis, found_revision, found_record";

/// Reads the result of a swap from a row that begins with the columns of [`RESULT`].
pub(super) fn result_of(row: &Row) -> Result<SwapResult, Error> {
    let is_done = get(row, 0)?;
    let at = timestamp(get(row, 1)?);
    if is_done {
        return Ok(SwapResult::Done(at));
    }
    let stored = match (get::<Option<i64>>(row, 2)?, get(row, 3)?) {
        (Some(revision), Some(bytes)) => {
            Some(StoredRecord { revision: Revision(revision.cast_unsigned()), bytes })
        }
        (None, _) | (_, None) => None,
    };
    Ok(SwapResult::Refused(Found { at, stored }))
}

/// Returns a revision as a `bigint`. A `bigint` has a sign, but revisions are only compared for
/// equality, so the sign does not matter.
const fn signed(Revision(revision): Revision) -> i64 {
    revision.cast_signed()
}
