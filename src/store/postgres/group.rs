//! Makes several swaps in one transaction, with one call of the function `swap_all`.

use std::sync::LazyLock;

use tokio_postgres::types::Type;

use super::arguments::{Argument, Value};
use super::database::{Database, QueryError, get};
use super::function::FunctionCall;
use super::values::{RESULT, SwapValues, result_of};
use crate::operation::OperationId;
use crate::store::shared::{Swap, SwapResult};

/// The longest time in milliseconds that a group waits for another transaction that changes the
/// same row. One swap that has to wait must not hold up the others for long.
const PATIENCE: i32 = 100;

/// The most bytes of the records that a group returns, but for the last one. A replay may have a
/// long answer.
const BYTES_MAX: i64 = 1024 * 1024;

static SWAP_ALL: LazyLock<FunctionCall> = LazyLock::new(|| {
    // Any swap will do, because only the names count.
    let any = SwapValues::of(Swap::read(OperationId::from_bytes([0; 16])));
    let arrays = any.arguments.iter().filter_map(|argument| argument.name_of_array);
    let names: Vec<_> = arrays.chain(common(&[]).map(|argument| argument.name)).collect();
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
    // A swap that asks for no epoch may be made under the epoch that another one asks for. If the
    // tables have another epoch, the statement makes no swap, and each swap is made alone.
    let mut epochs = swaps.iter().filter_map(|swap| swap.epoch.as_deref());
    let epoch = epochs.next();
    let mut results: Vec<_> = swaps.iter().map(|_| None).collect();
    if epochs.any(|other| Some(other) != epoch) {
        // The epoch has just changed, so each swap is made alone.
        return Ok(results);
    }
    let arrays = arrays(swaps);
    let arrays = arrays.iter().map(|Array { values, kind }| (values as _, kind.clone()));
    let common = common(swaps);
    let parameters =
        arrays.chain(common.iter().map(|argument| argument.value.parameter())).collect();
    let rows = SWAP_ALL.run(database, false, parameters, epoch).await?;
    for row in &rows {
        let number: i64 = get(row, 4)?;
        let place = usize::try_from(number - 1).ok().and_then(|index| results.get_mut(index));
        if let Some(place) = place {
            *place = Some(result_of(row)?);
        }
    }
    Ok(results)
}

/// An argument with a value of each swap, and the type of the array.
struct Array<'a> {
    values: Vec<&'a Value>,
    kind: Type,
}

/// Returns the arguments with a value of each swap.
fn arrays<'a>(swaps: &[&'a SwapValues]) -> Vec<Array<'a>> {
    let rows = swaps.first().map(|first| first.arguments.iter().enumerate());
    let of_each = rows.into_iter().flatten().filter(|(_, row)| row.name_of_array.is_some());
    let array = |(number, row): (usize, &Argument)| {
        let values = swaps.iter().filter_map(|swap| Some(&swap.arguments.get(number)?.value));
        let [_, kind] = row.value.kinds();
        Array { values: values.collect(), kind }
    };
    of_each.map(array).collect()
}

/// Returns the arguments that serve all swaps, with their names in `0006_swap_all.sql`.
fn common(swaps: &[&SwapValues]) -> [Argument; 3] {
    // None if all of them only look.
    let is_durable = swaps.iter().filter_map(|swap| swap.is_durable).max();
    [
        Argument::of_call("is_durable", Value::Bool(is_durable)),
        Argument::of_call("patience", Value::Int4(Some(PATIENCE))),
        Argument::of_call("bytes_max", Value::Int8(Some(BYTES_MAX))),
    ]
}
