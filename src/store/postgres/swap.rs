//! Makes the atomic step on one row. The step is a call of the function `swap`, in one statement.
//!
//! The function has 22 arguments. They are passed by name, so that none can take the place of
//! another one of the same type. A composite argument would need a type in the schema. This program
//! would have to write its text form, and the server would have to parse it.

use std::sync::LazyLock;
use std::time::Duration;

use tokio_postgres::Row;
use tokio_postgres::types::{ToSql, Type};

use super::records::{Postgres, get, one};
use super::row::{Columns, millis, timestamp};
use super::share_millis;
use crate::operation::OperationId;
use crate::store::Error;
use crate::store::shared::{
    Expected, Found, Purpose, Revision, StoredRecord, Swap, SwapResult, Write,
};

/// A call of the function.
static SWAP: LazyLock<String> = LazyLock::new(|| {
    format!(
        "SELECT is_done, at_millis, found_revision, found_record FROM @schema@.swap({})",
        named_arguments("$1")
    )
});

/// A call of the function on condition that the tables still have the epoch that this process
/// knows. If they have another epoch, the statement returns no row and does nothing.
///
/// The first argument refers to the table, so the server cannot call the function before it has
/// checked the epoch.
static SWAP_IN_EPOCH: LazyLock<String> = LazyLock::new(|| {
    format!(
        "SELECT s.is_done, s.at_millis, s.found_revision, s.found_record \
         FROM @schema@.epoch e CROSS JOIN LATERAL @schema@.swap({}) s \
         WHERE e.epoch::text = ${} AND e.standing <> 'emptied'",
        named_arguments("CASE WHEN e.one THEN $1 END"),
        ARGUMENTS + 1
    )
});

/// The number of the function's arguments.
const ARGUMENTS: usize = 22;

/// The values of the function's arguments.
struct SwapValues<'a> {
    swap: &'a Swap<'a>,
    id: String,
    expected_revision: Option<i64>,
    expected_lapsed: Option<bool>,
    change: &'static str,
    new_revision: Option<i64>,
    new_record: Option<&'a [u8]>,
    columns: Columns<'a>,
    not_before: Option<i64>,
    not_after: Option<i64>,
    is_durable: bool,
    ends: bool,
    behind_all: bool,
    patience: i32,
}

/// An argument. It has its name in the function, its value and its type.
type Argument<'a> = (&'static str, &'a (dyn ToSql + Sync), Type);

impl<'a> SwapValues<'a> {
    fn of(swap: &'a Swap<'a>, timeout: Duration) -> Self {
        let conditions = swap.write.conditions();
        let mut values = Self {
            swap,
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
            behind_all: swap.purpose == Purpose::Withdrawal,
            patience: share_millis(timeout),
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
                values.new_record = Some(bytes);
                values.columns = Columns::of(operation);
            }
        }
        values
    }

    /// Returns the arguments in the order of the statement's parameters. The names are those in
    /// `0002_swap.sql`.
    fn arguments(&self) -> [Argument<'_>; ARGUMENTS] {
        let columns = &self.columns;
        [
            ("the_id", &self.id, Type::TEXT),
            ("expected_revision", &self.expected_revision, Type::INT8),
            ("expected_lapsed", &self.expected_lapsed, Type::BOOL),
            ("change", &self.change, Type::TEXT),
            ("new_revision", &self.new_revision, Type::INT8),
            ("new_record", &self.new_record, Type::BYTEA),
            ("new_route", &columns.route, Type::TEXT),
            ("new_method", &columns.method, Type::TEXT),
            ("new_path", &columns.path, Type::TEXT),
            ("new_key", &columns.key, Type::TEXT),
            ("new_state", &columns.state, Type::TEXT),
            ("new_attempt", &columns.attempt, Type::INT4),
            ("new_holder", &columns.holder, Type::TEXT),
            ("new_created_at", &columns.created_at, Type::INT8),
            ("new_changes_at", &columns.changes_at, Type::INT8),
            ("not_before", &self.not_before, Type::INT8),
            ("not_after", &self.not_after, Type::INT8),
            ("is_durable", &self.is_durable, Type::BOOL),
            ("ends", &self.ends, Type::BOOL),
            ("waits", &self.swap.waits, Type::BOOL),
            ("behind_all", &self.behind_all, Type::BOOL),
            ("patience", &self.patience, Type::INT4),
        ]
    }
}

/// `the_id => FIRST, expected_revision => $2, …`
fn named_arguments(first: &str) -> String {
    // Any swap will do, because only the names count.
    let any = Swap::read(OperationId::from_bytes([0; 16]));
    let values = SwapValues::of(&any, Duration::ZERO);
    let arguments = (1..).zip(values.arguments()).map(|(number, (name, ..))| match number {
        1 => format!("{name} => {first}"),
        _ => format!("{name} => ${number}"),
    });
    arguments.collect::<Vec<_>>().join(", ")
}

impl Postgres {
    /// Makes a swap, in one round trip.
    pub(super) async fn swap_row(&self, swap: &Swap<'_>) -> Result<SwapResult, Error> {
        let values = SwapValues::of(swap, self.timeout);
        let arguments = values.arguments();
        let mut parameters: Vec<_> =
            arguments.into_iter().map(|(_, value, kind)| (value, kind)).collect();
        let is_urgent = swap.purpose == Purpose::Renewal;
        let grants = swap.purpose == Purpose::Grant;
        let epoch = if grants { self.guard().await? } else { None };
        let Some(epoch) = &epoch else {
            return result_of(one(&self.query(is_urgent, &SWAP, &parameters).await?)?);
        };
        parameters.push((epoch, Type::TEXT));
        match &*self.query(is_urgent, &SWAP_IN_EPOCH, &parameters).await? {
            [] => Err(self.epoch.why_guard_failed(self.epoch_changed()).await),
            rows => result_of(one(rows)?),
        }
    }
}

fn result_of(row: &Row) -> Result<SwapResult, Error> {
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
