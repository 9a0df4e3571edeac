//! One pass of expiry.

use super::group::Group;
use super::queue::Reply;
use super::tables::{Dated, Standing, failed};
use super::writer::{BROKEN, Writer};
use super::{Error, SweepReport};
use crate::operation::state::{Change, Expiry, Rule as _};
use crate::operation::{OperationId, Timestamp};
use crate::telemetry::chain;

/// What has become of a record.
struct Expired {
    /// It was there, and is not any more.
    is_gone: bool,
    after: Standing,
}

impl Writer {
    /// Expires at most `limit` records that are due, in a group of their own.
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
                group.answer_last(Box::new(move |written| {
                    if reply.is_closed() {
                        // the next pass tells of the holds
                        return;
                    }
                    let swept = |()| SweepReport { removed, holds_ended: holds_ended.take(), more };
                    let _unsent = reply.send(written.map(swept));
                }));
                self.commit(group);
            }
            Err(error) => {
                let _unsent = reply.send(Err(error));
            }
        }
    }

    /// How many records are gone, and whether more are due.
    fn expire_due(&self, limit: usize, group: &mut Group) -> Result<(usize, bool), Error> {
        let now = self.shared.clock.now();
        let mut removed = 0;
        let ran_out = self.in_flight.iter().filter(|(_, found)| found.state.changes_at() <= now);
        let ran_out: Vec<_> = ran_out.map(|(id, _)| *id).collect();
        for id in ran_out.iter().take(limit) {
            removed += usize::from(self.expire(*id, now, group)?.is_gone);
        }
        let mut rows = self.tables.due(self.due_from, now);
        for row in rows.by_ref().take(limit.saturating_sub(ran_out.len())) {
            let row = row.map_err(failed)?;
            removed += usize::from(self.expire_row(row, now, group)?);
        }
        Ok((removed, ran_out.len() > limit || rows.next().is_some()))
    }

    /// Expires the record that a row leads to. Says whether it is gone by that.
    fn expire_row(&self, row: Dated, now: Timestamp, group: &mut Group) -> Result<bool, Error> {
        group.swept.push(row);
        let expired = match self.expire(row.id, now, group) {
            Ok(expired) => expired,
            Err(error @ Error::Unreadable(..)) => {
                // it stays, for as long as nobody can say what it is
                tracing::error!(operation.id = %row.id, error = %chain(&error), "a record is kept");
                return Ok(false);
            }
            Err(error) => return Err(error),
        };
        if let Some(at) = expired.after.due() {
            group.moved.push(Dated { at, id: row.id });
        }
        Ok(expired.is_gone)
    }

    /// What time alone does to a record.
    fn expire(&self, id: OperationId, now: Timestamp, group: &mut Group) -> Result<Expired, Error> {
        let found = self.find(id, group)?;
        let before = Self::standing(id, found.as_ref(), group);
        let seen = Expiry { operation: id }.apply(found, now);
        if seen.hold_ended {
            group.note_hold_ended(id);
        }
        let after = Standing::of(seen.operation.as_ref());
        match seen.change {
            Change::None => {}
            // a record that is past its end is seen by nobody, whether or not it is on disk
            Change::Lazy | Change::Durable if after == Standing::Absent => {
                group.put(id, before, None, Change::Lazy);
            }
            change @ (Change::Lazy | Change::Durable) => {
                group.put(id, before, seen.operation, change);
            }
        }
        Ok(Expired { is_gone: seen.result, after })
    }
}
