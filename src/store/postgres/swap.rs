//! Makes the atomic step on one row. The step is a call of the function `swap`, or one of several
//! steps in a call of the function `swap_all`.

use std::sync::LazyLock;

use tokio::time::Instant;
use tokio_postgres::types::{ToSql, Type};

use super::database::one;
use super::function::{CallConditions, FunctionCall};
use super::groups::Turn;
use super::records::Postgres;
use super::share_millis;
use super::values::{RESULT, SwapValues, result_of};
use crate::operation::OperationId;
use crate::store::Error;
use crate::store::shared::{Purpose, Swap, SwapResult, Write};

static SWAP: LazyLock<FunctionCall> = LazyLock::new(|| {
    // Any swap will do, because only the names count.
    let any = SwapValues::of(&Swap::read(OperationId::from_bytes([0; 16])), None);
    let names = arguments(&any, &Waits { behind_all: false, patience: 0 }).map(|(name, ..)| name);
    FunctionCall::new("swap", &names, RESULT)
});

impl Postgres {
    /// Makes a swap. It usually takes one round trip, alone or together with others.
    pub(super) async fn swap_row(&self, swap: &Swap<'_>) -> Result<SwapResult, Error> {
        // One deadline for the wait in a group and for the one that may follow it.
        let until = Instant::now() + self.timeout;
        let grants = swap.purpose == Purpose::Grant;
        let epoch = if grants { self.guard().await? } else { None };
        let values = Box::new(SwapValues::of(swap, epoch));
        let groups = match (swap.purpose, swap.write) {
            // These must not wait for others, or must wait for others that no group waits for.
            (Purpose::Renewal | Purpose::Withdrawal, _) | (_, Write::Removal(_)) => {
                return self.swap_alone(&values, swap.purpose, until).await;
            }
            (Purpose::Any | Purpose::Grant, Write::Nothing) => &self.reads,
            (Purpose::Any | Purpose::Grant, Write::Record { .. }) => &self.writes,
        };
        match groups.turn(values).await? {
            Turn::Made(result) => Ok(result),
            Turn::Alone { values, place: None } => {
                self.swap_alone(&values, swap.purpose, until).await
            }
            Turn::Alone { values, place: Some(place) } => {
                place.held_during(self.swap_alone(&values, swap.purpose, until)).await
            }
        }
    }

    /// Makes a swap with a statement of its own.
    async fn swap_alone(
        &self,
        values: &SwapValues,
        purpose: Purpose,
        until: Instant,
    ) -> Result<SwapResult, Error> {
        let waits = Waits {
            behind_all: purpose == Purpose::Withdrawal,
            patience: share_millis(until.saturating_duration_since(Instant::now())),
        };
        let conditions = CallConditions {
            is_urgent: purpose == Purpose::Renewal,
            epoch: values.epoch.as_deref(),
        };
        let parameters = arguments(values, &waits).map(|(_, value, kind)| (value, kind));
        let rows = SWAP.run(&self.database, parameters.to_vec(), conditions).await?;
        if rows.is_empty() && values.epoch.is_some() {
            return Err(self.epoch.why_guard_failed(self.epoch_changed()).await);
        }
        result_of(one(&rows)?)
    }
}

/// How a swap that is made alone waits for other transactions.
struct Waits {
    /// Whether it waits for a change that has begun but cannot be seen yet.
    behind_all: bool,
    /// The longest time that it waits, in milliseconds.
    patience: i32,
}

/// An argument. It has its name in the function, its value and its type.
type Argument<'a> = (&'static str, &'a (dyn ToSql + Sync), Type);

/// Returns the arguments of `swap`, with their names in `0002_swap.sql`.
fn arguments<'a>(values: &'a SwapValues, waits: &'a Waits) -> [Argument<'a>; 22] {
    let columns = &values.columns;
    [
        ("the_id", &values.id, Type::TEXT),
        ("expected_revision", &values.expected_revision, Type::INT8),
        ("expected_lapsed", &values.expected_lapsed, Type::BOOL),
        ("change", &values.change, Type::TEXT),
        ("new_revision", &values.new_revision, Type::INT8),
        ("new_record", &values.new_record, Type::BYTEA),
        ("new_route", &columns.route, Type::TEXT),
        ("new_method", &columns.method, Type::TEXT),
        ("new_path", &columns.path, Type::TEXT),
        ("new_key", &columns.key, Type::TEXT),
        ("new_state", &columns.state, Type::TEXT),
        ("new_attempt", &columns.attempt, Type::INT4),
        ("new_holder", &columns.holder, Type::TEXT),
        ("new_created_at", &columns.created_at, Type::INT8),
        ("new_changes_at", &columns.changes_at, Type::INT8),
        ("not_before", &values.not_before, Type::INT8),
        ("not_after", &values.not_after, Type::INT8),
        ("is_durable", &values.is_durable, Type::BOOL),
        ("ends", &values.ends, Type::BOOL),
        ("waits", &values.waits, Type::BOOL),
        ("behind_all", &waits.behind_all, Type::BOOL),
        ("patience", &waits.patience, Type::INT4),
    ]
}
