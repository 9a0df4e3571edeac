//! Turns operations that an earlier process had in flight into uncertain ones.
//!
//! Only one process may have the store open, so the earlier process has ended. It may have sent
//! requests upstream, and it can no longer record their answers. So nobody knows how those attempts
//! ended.

use std::collections::BTreeSet;

use super::batch::Batch;
use super::tables::{IndexEntries, Tables, failed, unless_unreadable};
use super::unsettled::{Unsettled, UnsettledRow};
use crate::operation::{Operation, OperationId, State, Timestamp, state};
use crate::store::{Error, probe};

/// The most records that are written in one group.
const BATCH_MAX: usize = 1024;

/// Abandons all operations in flight, durably. Returns how many operations are uncertain
/// afterwards.
pub(super) fn abandon_all(tables: &mut Tables, now: Timestamp) -> Result<u64, Error> {
    let mut uncertain = 0;
    let mut in_flight = BTreeSet::new();
    let mut shared = Vec::new();
    for row in tables.unsettled() {
        match row.map_err(failed)? {
            UnsettledRow::One(_, Unsettled::Uncertain) => uncertain += 1,
            UnsettledRow::One(id, Unsettled::InFlight) => drop(in_flight.insert(id)),
            UnsettledRow::Claims { number, ids } => {
                in_flight.extend(ids);
                shared.push(number);
            }
        }
    }
    let in_flight: Vec<_> = in_flight.into_iter().collect();
    let mut abandoned = 0;
    for ids in in_flight.chunks(BATCH_MAX) {
        abandoned += abandon(tables, ids, now)?;
    }
    // The shared rows are removed last, so the start after an interrupted one does all of this
    // again.
    if !shared.is_empty() {
        let mut batch = Batch::new(tables);
        for number in shared {
            batch.remove_claims(number);
        }
        batch.commit(tables, now).map_err(failed)?;
    }
    if abandoned > 0 {
        let next = "onceward operations list --state uncertain";
        tracing::warn!(abandoned, next, "operations of an earlier process are uncertain now");
    }
    Ok(uncertain + abandoned)
}

/// Abandons these operations. Returns how many of them are uncertain afterwards.
fn abandon(tables: &mut Tables, ids: &[OperationId], now: Timestamp) -> Result<u64, Error> {
    let mut uncertain = 0;
    let mut batch = Batch::new(tables);
    for &id in ids {
        let Some(found) = unless_unreadable(tables.read(id))? else {
            // Any claim of this operation will fail. That is no reason to refuse all other
            // operations. Its row stays, or takes the place of a shared one.
            batch.set_unsettled(id, Some(Unsettled::InFlight));
            continue;
        };
        if let Some(operation @ Operation { state: State::InFlight(_), .. }) = found {
            let before = Some(IndexEntries::of(&operation));
            // A probe sent nothing, so its operation is removed.
            let kept = !probe::is_throw_away(&operation);
            let abandoned = kept.then(|| state::abandon(operation, now));
            let written = batch.write(id, before, abandoned.as_ref());
            written.map_err(|corrupt| Error::Unreadable(id, corrupt))?;
            uncertain += u64::from(kept);
            if !kept {
                batch.set_unsettled(id, None);
            }
        } else {
            // A row that claims share may name operations that have ended. The record decides.
            batch.set_unsettled(id, found.as_ref().and_then(Unsettled::of));
        }
    }
    batch.commit(tables, now).map_err(failed)?;
    Ok(uncertain)
}
