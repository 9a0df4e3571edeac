//! Makes several swaps in one transaction, with one call of the function `swap_all`.

use std::sync::LazyLock;

use tokio_postgres::types::{ToSql, Type};

use super::database::{Database, QueryError, get};
use super::function::{CallConditions, FunctionCall};
use super::values::{RESULT, SwapValues, result_of};
use crate::store::shared::SwapResult;

/// The longest time in milliseconds that a group waits for another transaction that changes the
/// same row. One swap that has to wait must not hold up the others for long.
const PATIENCE: i32 = 100;

/// The most bytes of the records that a group returns, but for the last one. A replay may have a
/// long answer.
const BYTES_MAX: i64 = 1024 * 1024;

static SWAP_ALL: LazyLock<FunctionCall> = LazyLock::new(|| {
    let names = arguments(&[]).map(|(name, ..)| name);
    FunctionCall::new("swap_all", &names, &format!("{RESULT}, number"))
});

/// Makes swaps. Returns a result for each, or none for a swap that has to be made alone.
///
/// The swaps must be in the order of their ids. Then of two groups that change the same rows, one
/// waits for the other, and they do not wait for each other.
pub(super) async fn swap_all(
    database: &Database,
    swaps: &[&SwapValues],
) -> Result<Vec<Option<SwapResult>>, QueryError> {
    let arguments = arguments(swaps);
    let parameters: Vec<(&(dyn ToSql + Sync), Type)> =
        arguments.iter().map(|(_, value, kind)| (&**value as _, kind.clone())).collect();
    // Swaps without a condition may be made under the condition of another one. If it does not
    // hold, no swap is made, and each is made alone.
    let mut epochs = swaps.iter().filter_map(|swap| swap.epoch.as_deref());
    let epoch = epochs.next();
    let mut results: Vec<_> = swaps.iter().map(|_| None).collect();
    if epochs.any(|other| Some(other) != epoch) {
        // The epoch has just changed.
        return Ok(results);
    }
    let conditions = CallConditions { is_urgent: false, epoch };
    let rows = SWAP_ALL.run(database, parameters, conditions).await?;
    for row in &rows {
        let number: i64 = get(row, 4)?;
        let place = usize::try_from(number - 1).ok().and_then(|index| results.get_mut(index));
        if let Some(place) = place {
            *place = Some(result_of(row)?);
        }
    }
    Ok(results)
}

/// An argument of a group. It has its name in the function, its value and its type.
type Argument<'a> = (&'static str, Box<dyn ToSql + Sync + Send + 'a>, Type);

/// Returns the arguments of `swap_all`, with their names in `0005_swap_all.sql`.
fn arguments<'a>(swaps: &'a [&SwapValues]) -> [Argument<'a>; 20] {
    let puts = || swaps.iter().filter(|swap| swap.new_revision.is_some());
    let is_durable = puts().next().is_some().then(|| puts().any(|swap| swap.is_durable));
    [
        ("the_ids", array(swaps, |swap| &*swap.id), Type::TEXT_ARRAY),
        ("expected_revisions", array(swaps, |swap| swap.expected_revision), Type::INT8_ARRAY),
        ("new_revisions", array(swaps, |swap| swap.new_revision), Type::INT8_ARRAY),
        ("new_records", array(swaps, |swap| swap.new_record.as_deref()), Type::BYTEA_ARRAY),
        ("new_routes", array(swaps, |swap| swap.columns.route.as_deref()), Type::TEXT_ARRAY),
        ("new_methods", array(swaps, |swap| swap.columns.method.as_deref()), Type::TEXT_ARRAY),
        ("new_paths", array(swaps, |swap| swap.columns.path.as_deref()), Type::TEXT_ARRAY),
        ("new_keys", array(swaps, |swap| swap.columns.key.as_deref()), Type::TEXT_ARRAY),
        ("new_states", array(swaps, |swap| swap.columns.state), Type::TEXT_ARRAY),
        ("new_attempts", array(swaps, |swap| swap.columns.attempt), Type::INT4_ARRAY),
        ("new_holders", array(swaps, |swap| swap.columns.holder.as_deref()), Type::TEXT_ARRAY),
        ("new_created_at", array(swaps, |swap| swap.columns.created_at), Type::INT8_ARRAY),
        ("new_changes_at", array(swaps, |swap| swap.columns.changes_at), Type::INT8_ARRAY),
        ("not_before", array(swaps, |swap| swap.not_before), Type::INT8_ARRAY),
        ("not_after", array(swaps, |swap| swap.not_after), Type::INT8_ARRAY),
        ("ends", array(swaps, |swap| swap.ends), Type::BOOL_ARRAY),
        ("waits", array(swaps, |swap| swap.waits), Type::BOOL_ARRAY),
        ("is_durable", Box::new(is_durable), Type::BOOL),
        ("patience", Box::new(PATIENCE), Type::INT4),
        ("bytes_max", Box::new(BYTES_MAX), Type::INT8),
    ]
}

/// Returns one value of each swap.
fn array<'a, T: ToSql + Sync + Send + 'a>(
    swaps: &'a [&SwapValues],
    value: impl Fn(&'a SwapValues) -> T,
) -> Box<dyn ToSql + Sync + Send + 'a> {
    Box::new(swaps.iter().map(|swap| value(swap)).collect::<Vec<_>>())
}
