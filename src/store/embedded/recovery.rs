//! What an earlier process had in flight becomes uncertain.

use super::Error;
use super::tables::{Mark, Standing, Tables, failed};
use crate::operation::{Operation, OperationId, State, Timestamp, state};
use crate::store::probe;
use crate::telemetry::chain;

/// Records that are written at a time.
const BATCH_MAX: usize = 1024;

/// Abandons everything that is in flight, durably. Gives back how many operations are uncertain.
pub(super) fn abandon_all(tables: &Tables, now: Timestamp) -> Result<u64, Error> {
    let mut uncertain = 0;
    let mut in_flight = Vec::new();
    for row in tables.unsettled() {
        match row.map_err(failed)? {
            (_, Mark::Uncertain) => uncertain += 1,
            (id, Mark::InFlight) => in_flight.push(id),
        }
    }
    let mut abandoned = 0;
    for ids in in_flight.chunks(BATCH_MAX) {
        abandoned += abandon(tables, ids, now)?;
    }
    if abandoned > 0 {
        let next = "onceward operations list --state uncertain";
        tracing::warn!(abandoned, next, "operations of an earlier process are uncertain now");
    }
    Ok(uncertain + abandoned)
}

/// Abandons these, and gives back how many of them are uncertain now.
fn abandon(tables: &Tables, ids: &[OperationId], now: Timestamp) -> Result<u64, Error> {
    let mut uncertain = 0;
    let mut batch = tables.batch();
    for &id in ids {
        let found = match tables.read(id) {
            Ok(found) => found,
            // it is told to whoever asks for it, and is no reason to refuse all others
            Err(error @ Error::Unreadable(..)) => {
                tracing::error!(operation.id = %id, error = %chain(&error), "a record is kept");
                continue;
            }
            Err(error) => return Err(error),
        };
        if let Some(operation @ Operation { state: State::InFlight(_), .. }) = found {
            let before = Standing::of(Some(&operation));
            // nobody waits for what became of a probe
            let kept = !probe::is_throw_away(&operation);
            let abandoned = kept.then(|| state::abandon(operation, now));
            let written = batch.write(id, before, abandoned.as_ref());
            written.map_err(|corrupt| Error::Unreadable(id, corrupt))?;
            uncertain += u64::from(kept);
        } else {
            // not reached while records and marks are written together
            batch.mark(id, Standing::of(found.as_ref()).mark());
        }
    }
    batch.commit(now).map_err(failed)?;
    Ok(uncertain)
}
