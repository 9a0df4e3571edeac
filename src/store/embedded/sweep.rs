//! Expires the records that are due.

use super::group::Group;
use super::reply::Reply;
use super::tables::{IndexEntries, TimeKey, failed, unless_unreadable};
use super::writer::{BROKEN, Writer};
use crate::operation::state::{Change, Expiry, Rule as _};
use crate::operation::{OperationId, Timestamp};
use crate::store::{Error, IfUnwritten, SweepReport};

/// The result of one pass over the records that are due.
struct Expired {
    /// How many records were removed.
    removed: usize,
    /// Whether more records are due.
    more: bool,
}

impl Writer {
    /// Expires at most `limit` records that are due, in a group of its own.
    pub(super) fn sweep(&mut self, limit: usize, reply: Reply<SweepReport>) {
        let mut group = Group::default();
        let done = match self.keep_tables() {
            Ok(()) => self.expire_due(limit, &mut group),
            Err(error) => Err(error),
        };
        match done {
            Ok(Expired { removed, more }) => {
                let holds_ended = self.shared.holds_ended.clone();
                // If nobody reads this report, the ended holds stay counted for the next report.
                let report = move || SweepReport { removed, holds_ended: holds_ended.take(), more };
                group.replies.push(reply.deferred(IfUnwritten::Fails, report));
                self.commit(group);
            }
            Err(error) => reply.send(Err(error)),
        }
    }

    /// Goes on after a failed write, and does what is due in the tables.
    fn keep_tables(&mut self) -> Result<(), Error> {
        if self.tables.is_suspended() {
            self.tables.restore().map_err(|error| {
                tracing::debug!(%error, "the disk still fails");
                Error::Unavailable(BROKEN)
            })?;
            tracing::info!("the store writes again");
        }
        self.broken = false;
        let kept = self.tables.tick(self.shared.clock.now());
        kept.map_err(|error| {
            self.note_failure(&error);
            failed(error)
        })
    }

    /// Adds the changes of the records that are due to a group.
    fn expire_due(&self, limit: usize, group: &mut Group) -> Result<Expired, Error> {
        let now = self.shared.clock.now();
        let mut removed = 0;
        // A lease has no row in `due`, because all operations in flight are in memory.
        let ran_out = self.in_flight.iter().filter(|(_, found)| found.state.changes_at() <= now);
        let ran_out: Vec<_> = ran_out.map(|(id, _)| *id).collect();
        for id in ran_out.iter().take(limit) {
            removed += usize::from(self.expire(*id, now, group)?);
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
                    removed += usize::from(self.expire(id, now, group)?);
                }
            }
            // The row is removed even if a record stays. Such a record gets a new row.
            group.swept.push(row);
        }
        Ok(Expired { removed, more })
    }

    /// Applies to a record the changes that time alone makes. Returns whether they removed it.
    fn expire(&self, id: OperationId, now: Timestamp, group: &mut Group) -> Result<bool, Error> {
        let Some(found) = unless_unreadable(self.find(id, group))? else { return Ok(false) };
        let before = Self::entries_on_disk(id, found.as_ref(), group);
        let seen = Expiry { operation: id }.apply(found, now);
        if seen.hold_ended {
            group.holds_ended.push(id);
        }
        let due = seen.operation.as_ref().and_then(|operation| IndexEntries::of(operation).due);
        // The row of `due` that led here is removed with this group, so an end that is to come
        // needs a new one. If a lease ran out, no row led here, and `Batch::index` adds this same
        // row; the set keeps it once.
        if let Some(at) = due {
            group.moved.push(TimeKey { at, id });
        }
        if seen.change != Change::None {
            group.put(id, before, seen.operation, seen.change);
        }
        Ok(seen.reply)
    }
}
