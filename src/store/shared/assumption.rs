//! The server's record, as a step assumes it before it asks the server.

use std::sync::Arc;

use super::server::{EncodedRecord, ExpectedRecord, Found, Revision};
use super::snapshots::{Snapshot, Snapshots};
use crate::operation::{Operation, OperationId, Timestamp};
use crate::store::{Corrupt, Error, codec, random};

/// The record to which a step applies its rule.
pub(super) struct Assumption {
    /// The server's record; none if the server has no record.
    pub(super) record: Option<Snapshot>,
    /// The time on the server's clock.
    pub(super) at: Timestamp,
    /// Whether the server reported the record during this call.
    pub(super) is_confirmed: bool,
}

impl Assumption {
    /// Makes an assumption of the server's report, and puts the report into the snapshots.
    pub(super) fn confirmed(
        id: OperationId,
        found: Found,
        snapshots: &Snapshots,
    ) -> Result<Self, Error> {
        let record = found.stored.map(|stored| {
            // A known revision is not decoded again, so that all copies share one answer.
            if let Some(known) = snapshots.get(id).filter(|known| known.revision == stored.revision)
            {
                return Ok(known);
            }
            let operation =
                decode(id, &stored.bytes).map_err(|corrupt| Error::Unreadable(id, corrupt))?;
            Ok::<_, Error>(Snapshot { revision: stored.revision, operation: Arc::new(operation) })
        });
        let record = record.transpose()?;
        // This also removes a snapshot, because another process may have removed the record.
        snapshots.replace(id, record.clone());
        Ok(Self { record, at: found.at, is_confirmed: true })
    }

    /// Whether the server may have lost the assumed record: it has no record, and the assumed one
    /// was not due for removal yet. Without a loss this happens too, if another process has brought
    /// the removal forward.
    pub(super) fn may_be_lost(&self, confirmed: &Self) -> bool {
        confirmed.record.is_none() && self.changes_at().is_some_and(|at| at > confirmed.at)
    }

    /// Returns when time alone changes the record, if there is one.
    pub(super) fn changes_at(&self) -> Option<Timestamp> {
        self.record.as_ref().map(|known| known.operation.state.changes_at())
    }

    /// Returns the record that the server must have before it makes a change that rests on this
    /// assumption.
    ///
    /// The server's clock must agree with the assumed state: `changes_at` must have passed if the
    /// rule saw the record as lapsed, and must not have passed otherwise. Without this check, a
    /// claim could take a lease that has run out only on this machine's estimate, and a holder
    /// could renew a lease that has run out only on the server.
    pub(super) fn expected(&self) -> Option<ExpectedRecord<'_>> {
        self.record.as_ref().map(|Snapshot { revision, operation }| {
            let lapsed = operation.state.changes_at() <= self.at;
            ExpectedRecord { revision: *revision, operation, lapsed }
        })
    }
}

/// Decodes the record of an operation. The record of another operation is refused, however it came
/// there, because its answer would go to the wrong sender.
pub(super) fn decode(id: OperationId, bytes: &[u8]) -> Result<Operation, Corrupt> {
    let operation = codec::decode(bytes)?;
    if operation.subject.id == id { Ok(operation) } else { Err(Corrupt::Foreign) }
}

/// Encodes the record of an operation, under a new revision.
pub(super) fn encode(id: OperationId, operation: &Operation) -> Result<EncodedRecord<'_>, Error> {
    let bytes = codec::encode(operation).map_err(|corrupt| Error::Unreadable(id, corrupt))?;
    let revision = Revision(u64::from_ne_bytes(random()?));
    Ok(EncodedRecord { revision, bytes, operation })
}
