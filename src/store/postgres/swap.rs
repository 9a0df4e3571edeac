//! Makes the atomic step on one row. The step is a call of the function `swap`, or one of several
//! steps in a call of the function `swap_all`.

use std::sync::LazyLock;

use tokio::time::Instant;

use super::arguments::{Argument, Value};
use super::database::one;
use super::function::FunctionCall;
use super::groups::Grouped;
use super::records::Postgres;
use super::share_millis;
use super::values::{RESULT, SwapValues, result_of};
use crate::operation::OperationId;
use crate::store::Error;
use crate::store::shared::{RecordChange, Swap, SwapResult};

static SWAP: LazyLock<FunctionCall> = LazyLock::new(|| {
    // Any swap will do, because only the names count.
    let any = SwapValues::of(Swap::read(OperationId::from_bytes([0; 16])));
    let patience = patience(0);
    let arguments = any.arguments.iter().chain([&patience]);
    let names: Vec<_> = arguments.map(|argument| argument.name).collect();
    FunctionCall::new("swap", &names, RESULT)
});

impl Postgres {
    /// Makes a swap. It usually takes one round trip, alone or together with others.
    pub(super) async fn swap_row(&self, swap: Swap<'_>) -> Result<SwapResult, Error> {
        // One deadline for the wait in a group and for the statement that may follow it.
        let until = Instant::now() + self.timeout;
        let groups = match &swap.change {
            // An urgent swap must not wait for others. A withdrawal must wait for writes for which no
            // group waits.
            _ if swap.is_urgent || swap.behind_all => None,
            Some(RecordChange { record: None, .. }) => None,
            Some(RecordChange { record: Some(_), .. }) => Some(&self.writes),
            None => Some(&self.reads),
        };
        let values = Box::new(SwapValues::of(swap));
        let Some(groups) = groups else { return self.swap_alone(&values, until).await };
        match groups.join(values).await? {
            Grouped::Made(result) => Ok(result),
            Grouped::Alone { values, place: None } => self.swap_alone(&values, until).await,
            Grouped::Alone { values, place: Some(place) } => {
                place.held_during(self.swap_alone(&values, until)).await
            }
        }
    }

    /// Makes a swap with a statement of its own.
    async fn swap_alone(&self, values: &SwapValues, until: Instant) -> Result<SwapResult, Error> {
        let patience = patience(share_millis(until.saturating_duration_since(Instant::now())));
        let arguments = values.arguments.iter().chain([&patience]);
        let parameters = arguments.map(|argument| argument.value.parameter()).collect();
        let epoch = values.epoch.as_deref();
        let rows = SWAP.run(&self.database, values.is_urgent, parameters, epoch).await?;
        if rows.is_empty() && epoch.is_some() {
            return Ok(SwapResult::Emptied);
        }
        result_of(one(&rows)?)
    }
}

/// Returns the argument for the milliseconds that a call waits for other transactions at most.
const fn patience(millis: i32) -> Argument {
    Argument::of_call("patience", Value::Int4(Some(millis)))
}
