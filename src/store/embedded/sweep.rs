//! Expires the records that are due.

use super::group::Group;
use super::reply::Reply;
use super::tables::{IndexEntries, TimeKey, failed};
use super::writer::{BROKEN, Writer};
use crate::operation::state::{Change, Expiry, Rule as _};
use crate::operation::{OperationId, Timestamp};
use crate::store::{Error, SweepReport};
use crate::telemetry::chain;

/// The effect of expiry on a record.
struct ExpiryResult {
    /// Whether the record existed and is now removed.
    is_removed: bool,
    /// The rows that the record has now.
    after: IndexEntries,
}

impl Writer {
    /// Expires at most `limit` records that are due, in a group of its own.
    pub(super) fn sweep(&mut self, limit: usize, reply: Reply<SweepReport>) {
        let mut group = Group::default();
        let done = if self.broken {
            Err(Error::Unavailable(BROKEN))
        } else {
            self.expire_due(limit, &mut group)
        };
        match done {
            Ok((removed, more)) => {
                let holds_ended = self.shared.holds_ended.clone();
                // If nobody reads this report, the ended holds stay counted for the next report.
                let report = move || SweepReport { removed, holds_ended: holds_ended.take(), more };
                group.reply_last(reply.deferred(report));
                self.commit(group);
            }
            Err(error) => reply.send(Err(error)),
        }
    }

    /// Returns how many records were removed, and whether more are due.
    fn expire_due(&self, limit: usize, group: &mut Group) -> Result<(usize, bool), Error> {
        let now = self.shared.clock.now();
        let mut removed = 0;
        // A lease has no row in `due`, because all operations in flight are in memory.
        let ran_out = self.in_flight.iter().filter(|(_, found)| found.state.changes_at() <= now);
        let ran_out: Vec<_> = ran_out.map(|(id, _)| *id).collect();
        for id in ran_out.iter().take(limit) {
            removed += usize::from(self.expire(*id, now, group)?.is_removed);
        }
        let mut left = limit.saturating_sub(ran_out.len());
        let mut more = ran_out.len() > limit;
        for row in self.tables.due(self.due_from, now) {
            if left == 0 {
                more = true;
                break;
            }
            let row = row.map_err(failed)?;
            for &id in &row.ids {
                if left == 0 {
                    more = true;
                    group.moved.push(TimeKey { at: row.at, id });
                } else {
                    left -= 1;
                    removed += usize::from(self.expire_named(id, now, group)?);
                }
            }
            // The row is removed even if a record stays. Such a record gets a new row.
            group.swept.push(row);
        }
        Ok((removed, more))
    }

    /// Expires a record that a row of `due` names. Returns whether that removed the record.
    fn expire_named(
        &self,
        id: OperationId,
        now: Timestamp,
        group: &mut Group,
    ) -> Result<bool, Error> {
        let expired = match self.expire(id, now, group) {
            Ok(expired) => expired,
            Err(error @ Error::Unreadable(..)) => {
                // The record is never removed, because nobody can say whether its operation was
                // done.
                tracing::error!(operation.id = %id, error = %chain(&error), "a record is kept");
                return Ok(false);
            }
            Err(error) => return Err(error),
        };
        if let Some(at) = expired.after.due() {
            group.moved.push(TimeKey { at, id });
        }
        Ok(expired.is_removed)
    }

    /// Applies to a record the changes that time alone makes.
    fn expire(
        &self,
        id: OperationId,
        now: Timestamp,
        group: &mut Group,
    ) -> Result<ExpiryResult, Error> {
        let found = self.find(id, group)?;
        let before = Self::entries_on_disk(id, found.as_ref(), group);
        let seen = Expiry { operation: id }.apply(found, now);
        if seen.hold_ended {
            group.note_hold_ended(id);
        }
        let after = IndexEntries::of(seen.operation.as_ref());
        match seen.change {
            Change::None => {}
            // Nobody sees a record past its end, so its removal need not survive a crash.
            Change::Lazy | Change::Durable if after == IndexEntries::Absent => {
                group.put(id, before, None, Change::Lazy);
            }
            change @ (Change::Lazy | Change::Durable) => {
                group.put(id, before, seen.operation, change);
            }
        }
        Ok(ExpiryResult { is_removed: seen.result, after })
    }
}
