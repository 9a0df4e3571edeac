//! A store on the records of a server.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::future::try_join_all;
use parking_lot::Mutex;

use super::assumption::{Assumption, decode, encode};
use super::clock::ServerClocks;
use super::epoch::{EpochTracker, WhenEmptied};
use super::looks::Looks;
use super::server::{ExpiryPass, Found, RecordChange, RecordServer, Swap, SwapResult};
use super::snapshots::{Snapshot, Snapshots};
use super::window::{earliest, latest};
use crate::clock::{Clock, Moment};
use crate::operation::state::{self, Change, Expiry, RuleName, Transition};
use crate::operation::{Operation, OperationId, State};
use crate::store::call::TypedCall;
use crate::store::sweep::HoldsEnded;
use crate::store::watch::Watchers;
use crate::store::{
    Concern, Error, IfUnwritten, ListPage, ListQuery, RuleCall, Store, SweepReport, Watch, probe,
};
use crate::telemetry::chain;

/// A store on the records of a server.
#[derive(Debug)]
pub(in crate::store) struct SharedStore<R> {
    pub(super) server: R,
    pub(super) epoch: EpochTracker,
    pub(super) looks: Looks,
    clocks: ServerClocks,
    snapshots: Snapshots,
    watchers: Watchers,
    holds_ended: HoldsEnded,
    /// The operations whose unreadable record was logged.
    unreadable: Mutex<HashSet<OperationId>>,
    pub(super) timeout: Duration,
}

/// The most operations whose unreadable record is remembered as logged. When there are more, all
/// are forgotten, and their records are logged again.
const UNREADABLE_MAX: usize = 10_000;

impl<R: RecordServer> SharedStore<R> {
    /// Makes a store whose calls take `timeout` at most. The server's subscription uses the same
    /// `watchers` to announce the attempts that other processes end.
    pub(in crate::store) fn new(
        server: R,
        when_emptied: WhenEmptied,
        watchers: Watchers,
        timeout: Duration,
        clock: Clock,
    ) -> Self {
        Self {
            server,
            epoch: EpochTracker::new(when_emptied),
            looks: Looks::new(),
            clocks: ServerClocks::new(clock),
            snapshots: Snapshots::new(),
            watchers,
            holds_ended: HoldsEnded::default(),
            unreadable: Mutex::default(),
            timeout,
        }
    }

    /// Logs once that an unreadable record is kept. Such a record is never removed, because nobody
    /// can say whether its operation was done.
    fn log_unreadable(&self, id: OperationId, error: &Error) {
        let mut logged = self.unreadable.lock();
        if logged.len() == UNREADABLE_MAX {
            logged.clear();
        }
        if logged.insert(id) {
            tracing::error!(operation.id = %id, error = %chain(error), "a record is kept");
        }
    }

    /// Gives up the work of a call when its time is over.
    async fn within_timeout<T>(
        &self,
        work: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, Error> {
        let done = tokio::time::timeout(self.timeout, work).await;
        let done = done.unwrap_or(Err(Error::NoReply(self.timeout)));
        // Under `when_store_emptied = "continue"`, a store without its tables is a store that fails,
        // like any other.
        if let Err(Error::TablesGone(text)) = &done
            && !self.epoch.is_guarded()
        {
            return Err(Error::Unavailable(text));
        }
        done
    }

    /// Applies a rule. If a claim fails after it saw an attempt, the error says so. Then the request
    /// must not be forwarded without a claim, whatever `when_store_fails` says.
    async fn apply_rule(&self, call: &dyn RuleCall) -> Result<(), Error> {
        let mut attempt_seen = false;
        let done = self.within_timeout(self.step(call, &mut attempt_seen)).await;
        done.map_err(|error| error.of_claim(attempt_seen && call.name() == RuleName::Claim))
    }

    /// Applies a rule to a record, in one atomic step on the server. Sets `attempt_seen` if the
    /// operation was in flight or uncertain in any round.
    async fn step(&self, call: &dyn RuleCall, attempt_seen: &mut bool) -> Result<(), Error> {
        let id = call.operation();
        let begun = self.clocks.moment();
        let record = self.snapshots.get(id);
        let at = self.clocks.now(self.server.part_of(id));
        let mut assumed = Assumption { record, at, is_confirmed: false };
        // A further round follows if the server has something else than was assumed, or if it has
        // just confirmed the assumption for a reply. The call's timeout ends the loop.
        loop {
            let found = assumed.record.as_ref().map(|known| Operation::clone(&known.operation));
            *attempt_seen |= found.as_ref().is_some_and(is_in_flight_or_uncertain);
            let done = call.apply(found, assumed.at);
            if done.change == Change::None && assumed.is_confirmed {
                return Ok(());
            }
            let stands = done.reply == IfUnwritten::Stands;
            let found = match self.write(call, &assumed, done, begun).await {
                Ok(None) => return Ok(()),
                Ok(Some(found)) => found,
                // This reply only turns a copy away, and it rests on a record that the server has
                // confirmed. A store whose server is full or read-only still gives such replies.
                Err(_) if assumed.is_confirmed && stands => return Ok(()),
                // The write failed, but a read may still work. Even a replica that takes no writes
                // may know that the operation was done.
                Err(error) if stands => self.read(id).await.map_err(|_| error)?,
                Err(error) => return Err(error),
            };
            let confirmed = Assumption::confirmed(id, found, &self.snapshots)?;
            if assumed.may_be_lost(&confirmed)
                && let Err(error) = self.look_for_loss().await
            {
                tracing::debug!(error = %chain(&error), "whether the server lost its records could not be read");
            }
            assumed = confirmed;
        }
    }

    /// Asks the server to make the change that a rule derived from the assumption. If the server
    /// has something else, returns that. The call has `begun` at that moment, and its caller gives
    /// up when its time is over, in whatever round it is then.
    async fn write(
        &self,
        call: &dyn RuleCall,
        assumed: &Assumption,
        done: Transition<IfUnwritten>,
        begun: Moment,
    ) -> Result<Option<Found>, Error> {
        let id = call.operation();
        let read = Swap {
            id,
            change: None,
            waits: call.waits(),
            is_urgent: call.name() == RuleName::Renew,
            behind_all: call.name() == RuleName::Withdraw,
        };
        let is_read = done.change == Change::None;
        let durable = done.change == Change::Durable;
        let ends = done.change.ends_attempt(done.operation.as_ref());
        // A claim that is not granted may also write, for example that a copy was refused. It sends
        // nothing upstream, so the server may make this write even if it has lost its records.
        let may_grant = is_read || (durable && !ends);
        let is_guarded = call.name() == RuleName::Claim && may_grant;
        let guard = if is_guarded { self.guard(id).await? } else { None };
        if is_read {
            // The server must confirm the assumption before anybody gets a reply that rests on it.
            return self.swap(read).await;
        }
        let time_left = self.timeout.saturating_sub(begun.until(self.clocks.moment()));
        if time_left.is_zero() {
            // The server would refuse the write, again and again.
            return Err(Error::NoReply(self.timeout));
        }
        let not_before = earliest(assumed, &done);
        let record = done.operation.as_ref().map(|operation| encode(id, operation)).transpose()?;
        let revision = record.as_ref().map(|record| record.revision);
        let change = RecordChange {
            expected: assumed.expected(),
            durable,
            record,
            not_before,
            not_after: latest(assumed, time_left),
            ends,
            guard,
        };
        if let Some(found) = self.swap(Swap { change: Some(change), ..read }).await? {
            return Ok(Some(found));
        }
        let written = revision
            .zip(done.operation)
            .map(|(revision, operation)| Snapshot { revision, operation: Arc::new(operation) });
        self.snapshots.replace(id, written);
        if done.hold_ended {
            self.holds_ended.count(id);
        }
        if ends {
            // The waiters of this process do not have to wait for the server's notification.
            self.watchers.announce(id);
        }
        Ok(None)
    }

    /// Reads what the server has.
    async fn read(&self, id: OperationId) -> Result<Found, Error> {
        let found = self.swap(Swap::read(id)).await?;
        found.ok_or_else(|| Error::Failed("the server took a read for a change".into()))
    }

    /// Makes a swap on the server. If nothing was changed, returns what the server has.
    async fn swap(&self, swap: Swap<'_>) -> Result<Option<Found>, Error> {
        let sent = self.clocks.moment();
        let part = self.server.part_of(swap.id);
        let (at, found) = match self.server.swap(swap).await? {
            SwapResult::Done(at) => (at, None),
            SwapResult::Conflict(found) => (found.at, Some(found)),
            SwapResult::Emptied => return Err(self.why_guard_failed().await),
        };
        self.clocks.learn(part, at, sent);
        Ok(found)
    }
}

fn is_in_flight_or_uncertain(operation: &Operation) -> bool {
    matches!(operation.state, State::InFlight(_) | State::Uncertain(_))
}

#[async_trait]
impl<R: RecordServer> Store for SharedStore<R> {
    async fn call(&self, call: Arc<dyn RuleCall>) -> Result<(), Error> {
        self.apply_rule(&*call).await
    }

    async fn get(&self, id: OperationId) -> Result<Option<Operation>, Error> {
        let found = self.within_timeout(self.read(id)).await?;
        let at = found.at;
        let confirmed = Assumption::confirmed(id, found, &self.snapshots)?;
        let operation = confirmed.record.map(|known| Arc::unwrap_or_clone(known.operation));
        Ok(state::lapse(operation, at).operation)
    }

    async fn watch(&self, id: OperationId) -> Result<Watch, Error> {
        Ok(self.watchers.watch(id))
    }

    async fn uncertain(&self) -> Result<u64, Error> {
        self.within_timeout(self.server.uncertain()).await
    }

    async fn list(&self, query: &ListQuery) -> Result<ListPage, Error> {
        let page = self.within_timeout(self.server.page(query)).await?;
        let mut operations = Vec::with_capacity(page.records.len());
        for (id, bytes) in page.records {
            match decode(id, &bytes) {
                Ok(found) => {
                    let current = state::lapse(Some(found), page.at).operation;
                    operations.extend(current.filter(|found| query.matches(found)));
                }
                // One damaged record must not hide all the others from an operator.
                Err(corrupt) => self.log_unreadable(id, &Error::Unreadable(id, corrupt)),
            }
        }
        Ok(ListPage { operations, next: page.next })
    }

    async fn sweep(&self, limit: usize) -> Result<SweepReport, Error> {
        let ExpiryPass { mut removed, lapsed, more } =
            self.within_timeout(self.server.expire(limit)).await?;
        // The server knows no rules, so this process decides what each lapsed operation becomes.
        let mut progress = removed > 0;
        for operation in lapsed {
            let expiry = TypedCall::new(Expiry { operation });
            match self.apply_rule(&expiry).await {
                Ok(()) => {
                    removed += usize::from(expiry.reply()?);
                    progress = true;
                }
                Err(error @ Error::Unreadable(..)) => self.log_unreadable(operation, &error),
                Err(error) => return Err(error),
            }
        }
        // Unreadable records stay due for ever. A pass that found only such records must not be
        // repeated at once, or the sweeper would never rest.
        let more = more && progress;
        Ok(SweepReport { removed, holds_ended: self.holds_ended.take(), more })
    }

    async fn concerns(&self) -> Result<Vec<Concern>, Error> {
        self.within_timeout(async {
            let mut concerns = self.server.concerns().await?;
            match self.look_for_loss().await {
                // Other calls report with a better message that the server takes no calls, or that
                // its tables are gone. Neither hides the other concerns.
                Ok(()) | Err(Error::Unavailable(_) | Error::TablesGone(_)) => {
                    concerns.extend(self.epoch.concern());
                }
                Err(error) => return Err(error),
            }
            Ok(concerns)
        })
        .await
    }

    async fn acknowledge(&self) -> Result<bool, Error> {
        self.within_timeout(self.acknowledge_loss()).await
    }

    async fn probe(&self) -> Result<(), Error> {
        let ids = self.within_timeout(self.server.probe_ids()).await?;
        try_join_all(ids.into_iter().map(|id| probe::probe_as(self, id))).await.map(drop)
    }

    async fn close(&self) {
        self.server.close().await;
    }
}
