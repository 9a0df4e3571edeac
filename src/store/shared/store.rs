//! A store on the records of a server.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::future::try_join_all;
use parking_lot::Mutex;

use super::assumption::{Assumption, EncodedRecord, decode};
use super::clock::ServerClocks;
use super::observed::ObservedClaim;
use super::server::{
    Conditions, ExpiryPass, Found, Purpose, RecordServer, Swap, SwapResult, Write,
};
use super::snapshots::Snapshots;
use super::window::{earliest, latest};
use crate::clock::{Clock, Moment};
use crate::operation::state::{self, Call, Change, Expiry, Transition};
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
    server: R,
    clocks: ServerClocks,
    snapshots: Snapshots,
    watchers: Watchers,
    holds_ended: HoldsEnded,
    /// The operations whose unreadable record was logged.
    unreadable: Mutex<HashSet<OperationId>>,
    timeout: Duration,
}

/// The most operations whose unreadable record is remembered as logged. When there are more, all
/// are forgotten, and their records are logged again.
const UNREADABLE_MAX: usize = 10_000;

impl<R: RecordServer> SharedStore<R> {
    /// Makes a store whose calls take `timeout` at most. The server's subscription uses the same
    /// `watchers` to announce the attempts that other processes end.
    pub(in crate::store) fn new(
        server: R,
        watchers: Watchers,
        timeout: Duration,
        clock: Clock,
    ) -> Self {
        Self {
            server,
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

    async fn within_timeout<T>(
        &self,
        work: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, Error> {
        let done = tokio::time::timeout(self.timeout, work).await;
        done.unwrap_or(Err(Error::NoReply(self.timeout)))
    }

    /// Applies a rule to a record, in one atomic step on the server.
    async fn step(&self, call: &dyn RuleCall) -> Result<(), Error> {
        let id = call.operation();
        let asked = self.clocks.moment();
        let record = self.snapshots.get(id);
        let at = self.clocks.now(self.server.clock_of(id));
        let mut assumed = Assumption { record, at, is_confirmed: false };
        // A further round follows if the server has something else than was assumed, or if it has
        // just confirmed the assumption for an answer. The call's timeout ends the loop.
        loop {
            let found = assumed.record.as_ref().map(|known| Operation::clone(&known.operation));
            let done = call.apply(found, assumed.at);
            if done.change == Change::None && assumed.is_confirmed {
                return Ok(());
            }
            let stands = done.result == IfUnwritten::Stands;
            match self.write(call, &assumed, &done, asked).await {
                Ok(None) => return Ok(()),
                Ok(Some(found)) => {
                    assumed = Assumption::confirmed(id, found, &self.snapshots)?;
                }
                // This answer only turns a copy away, and it rests on a record that the server has
                // confirmed. A store whose server is full or read-only still gives such answers.
                Err(_) if assumed.is_confirmed && stands => return Ok(()),
                // The write failed, but a read may still work. Even a replica that takes no writes
                // may know that the operation was done.
                Err(error) if stands => {
                    let found = self.read(Swap::read(id)).await.map_err(|_| error)?;
                    assumed = Assumption::confirmed(id, found, &self.snapshots)?;
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Applies a claim. If the claim fails after it saw an attempt, the error says so. Then the
    /// request must not be forwarded without a claim, whatever `when_store_fails` says.
    async fn claim(&self, call: &dyn RuleCall) -> Result<(), Error> {
        let claim = ObservedClaim::new(call);
        let claimed = self.within_timeout(self.step(&claim)).await;
        claimed.map_err(|error| {
            if claim.attempt_seen() && error.leaves_state_unknown() {
                Error::AttemptExists(Box::new(error))
            } else {
                error
            }
        })
    }

    /// Asks the server to make the change that a rule derived from the assumption. If the server
    /// has something else, returns that. The call was `asked` for at that moment, and its caller
    /// gives up when its time is over, in whatever round it is then.
    async fn write(
        &self,
        call: &dyn RuleCall,
        assumed: &Assumption,
        done: &Transition<IfUnwritten>,
        asked: Moment,
    ) -> Result<Option<Found>, Error> {
        let id = call.operation();
        let waits = call.waits();
        let purpose = purpose(call.kind());
        if done.change == Change::None {
            // The server must confirm the assumption before anybody gets an answer that rests on
            // it.
            let read = Swap { waits, purpose, ..Swap::read(id) };
            return self.read(read).await.map(Some);
        }
        let durable = done.change == Change::Durable;
        let goes_on = matches!(&done.operation, Some(found) if is_in_flight(found));
        let time_left = self.timeout.saturating_sub(asked.until(self.clocks.moment()));
        if time_left.is_zero() {
            // The server would refuse the write, again and again.
            return Err(Error::NoReply(self.timeout));
        }
        let conditions = Conditions {
            not_before: earliest(assumed, done),
            not_after: latest(assumed, time_left),
            durable,
            ends: durable && !goes_on,
        };
        let record = done
            .operation
            .as_ref()
            .map(|operation| EncodedRecord::of(id, operation))
            .transpose()?;
        let write = match &record {
            // Nobody sees a record past its end, so its removal need not survive a crash.
            None => Write::Removal(Conditions { durable: false, ..conditions }),
            Some(EncodedRecord { revision, bytes, operation }) => {
                Write::Record { revision: *revision, bytes, operation, conditions }
            }
        };
        // A claim that is not granted may also write, for example that a copy was refused. It sends
        // nothing upstream, so the server may make this write even if it has lost its records.
        let grants = goes_on && durable;
        let purpose = if purpose == Purpose::Grant && !grants { Purpose::Any } else { purpose };
        let swap = Swap { id, expected: assumed.expected(), write, waits, purpose };
        let sent = self.clocks.moment();
        match self.server.swap(swap).await? {
            SwapResult::Refused(found) => {
                self.clocks.learn(self.server.clock_of(id), found.at, sent);
                Ok(Some(found))
            }
            SwapResult::Done(at) => {
                self.clocks.learn(self.server.clock_of(id), at, sent);
                self.snapshots.replace(id, record.map(EncodedRecord::into_snapshot));
                if done.hold_ended {
                    self.holds_ended.note(id);
                }
                if conditions.ends {
                    // The waiters of this process do not have to wait for the server's
                    // notification.
                    self.watchers.announce(id);
                }
                Ok(None)
            }
        }
    }

    /// Reads what the server has.
    async fn read(&self, read: Swap<'_>) -> Result<Found, Error> {
        let sent = self.clocks.moment();
        let which = self.server.clock_of(read.id);
        let found = match self.server.swap(read).await? {
            SwapResult::Done(at) => Found { at, stored: None },
            SwapResult::Refused(found) => found,
        };
        self.clocks.learn(which, found.at, sent);
        Ok(found)
    }
}

/// Returns the purpose of a call, which tells the server how to treat it.
const fn purpose(call: Call) -> Purpose {
    match call {
        Call::Claim => Purpose::Grant,
        Call::Renew => Purpose::Renewal,
        Call::Withdraw => Purpose::Withdrawal,
        Call::Settle
        | Call::Advance
        | Call::Conclude
        | Call::Resolve
        | Call::Forget
        | Call::Expire => Purpose::Any,
    }
}

fn is_in_flight(operation: &Operation) -> bool {
    matches!(operation.state, State::InFlight(_))
}

#[async_trait]
impl<R: RecordServer> Store for SharedStore<R> {
    async fn call(&self, call: Arc<dyn RuleCall>) -> Result<(), Error> {
        match call.kind() {
            Call::Claim => self.claim(&*call).await,
            Call::Renew
            | Call::Settle
            | Call::Advance
            | Call::Conclude
            | Call::Withdraw
            | Call::Resolve
            | Call::Forget
            | Call::Expire => self.within_timeout(self.step(&*call)).await,
        }
    }

    async fn get(&self, id: OperationId) -> Result<Option<Operation>, Error> {
        let found = self.within_timeout(self.read(Swap::read(id))).await?;
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
            match self.within_timeout(self.step(&expiry)).await {
                Ok(()) => {
                    removed += usize::from(expiry.answer()?);
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
        self.within_timeout(self.server.concerns()).await
    }

    async fn acknowledge(&self) -> Result<bool, Error> {
        self.within_timeout(self.server.acknowledge()).await
    }

    async fn probe(&self) -> Result<(), Error> {
        let ids = self.within_timeout(self.server.probe_ids()).await?;
        try_join_all(ids.into_iter().map(|id| probe::probe_as(self, id))).await.map(drop)
    }

    async fn close(&self) {
        self.server.close().await;
    }
}
