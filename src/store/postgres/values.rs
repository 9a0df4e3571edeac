//! The values of a swap, as the functions of the schema take them and return them.

use std::mem;

use tokio_postgres::Row;

use super::arguments::Argument;
use super::arguments::Value::{Bool, Bytes, Int4, Int8, Text};
use super::database::get;
use super::row::{attempt, holder, key, millis, text, timestamp};
use crate::operation::OperationId;
use crate::store::Error;
use crate::store::shared::{Found, Revision, StoredRecord, Swap, SwapResult};

/// The values of a swap.
#[derive(Debug)]
pub(super) struct SwapValues {
    pub(super) id: OperationId,
    /// Whether the swap must not queue behind others.
    pub(super) is_urgent: bool,
    /// The arguments that follow from the swap alone, with their names in `0002_swap.sql` and
    /// `0006_swap_all.sql`.
    pub(super) arguments: [Argument; 21],
    /// Whether the record that it writes must be durable; none if it writes no record.
    pub(super) is_durable: Option<bool>,
    /// The number of bytes of the record that it writes.
    pub(super) record_bytes: usize,
    /// The epoch that the tables must have, if any.
    pub(super) epoch: Option<String>,
}

impl SwapValues {
    pub(super) fn of(mut swap: Swap<'_>) -> Self {
        let record = swap.change.as_mut().and_then(|change| change.record.as_mut());
        let bytes = record.map(|record| mem::take(&mut record.bytes));
        let record_bytes = bytes.as_ref().map_or(0, Vec::len);
        let change = swap.change.as_ref();
        let expected = change.and_then(|it| it.expected.as_ref());
        let record = change.and_then(|it| it.record.as_ref());
        let new = record.map(|it| it.operation);
        let subject = new.map(|it| &it.subject);
        let word = match (change, record) {
            (None, _) => "look",
            (Some(_), None) => "remove",
            (Some(_), Some(_)) => "put",
        };
        let changes_at = new.map(|it| millis(it.state.changes_at()));
        let old_revision = expected.map(|it| signed(it.revision));
        let each = Argument::of_each;
        let arguments = [
            each("the_id", "the_ids", Text(Some(swap.id.to_string().into()))),
            each("expected_revision", "expected_revisions", Int8(old_revision)),
            each("new_revision", "new_revisions", Int8(record.map(|it| signed(it.revision)))),
            each("new_record", "new_records", Bytes(bytes)),
            each("new_route", "new_routes", Text(subject.map(|it| text(&it.route).into()))),
            each("new_method", "new_methods", Text(subject.map(|it| text(&it.method).into()))),
            each("new_path", "new_paths", Text(subject.map(|it| text(&it.path).into()))),
            each("new_key", "new_keys", Text(subject.map(|it| key(&it.key).into()))),
            each("new_state", "new_states", Text(new.map(|it| it.state.as_str().into()))),
            each("new_attempt", "new_attempts", Int4(new.map(attempt))),
            each("new_holder", "new_holders", Text(new.and_then(holder).map(Into::into))),
            each("new_created_at", "new_created_at", Int8(new.map(|it| millis(it.created_at)))),
            each("new_changes_at", "new_changes_at", Int8(changes_at)),
            each("not_before", "not_before", Int8(change.map(|it| millis(it.not_before)))),
            each("not_after", "not_after", Int8(change.map(|it| millis(it.not_after)))),
            each("ends", "ends", Bool(Some(change.is_some_and(|it| it.ends)))),
            each("waits", "waits", Bool(Some(swap.waits))),
            Argument::of_call("expected_lapsed", Bool(expected.map(|it| it.lapsed))),
            Argument::of_call("change", Text(Some(word.into()))),
            Argument::of_call("is_durable", Bool(Some(change.is_some_and(|it| it.durable)))),
            Argument::of_call("behind_all", Bool(Some(swap.behind_all))),
        ];
        Self {
            id: swap.id,
            is_urgent: swap.is_urgent,
            arguments,
            is_durable: record.and(change).map(|it| it.durable),
            record_bytes,
            epoch: swap.change.and_then(|it| it.guard).map(|marker| marker.value),
        }
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
    Ok(SwapResult::Conflict(Found { at, stored }))
}

/// Returns a revision as a `bigint`. A `bigint` has a sign, but revisions are only compared for
/// equality, so the sign does not matter.
const fn signed(Revision(revision): Revision) -> i64 {
    revision.cast_signed()
}
