//! Claims an operation in the store.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::OwnedSemaphorePermit;
use tokio::time::timeout;

use super::claim::Claim;
use super::disposition::Disposition;
use super::executor::Context;
use super::lookup::LookupResult;
use super::policy::Policy;
use super::request::KeyedRequest;
use crate::clock::Moment;
use crate::operation::state::{
    ClaimReply, ClaimRequest, IfInFlight, LookupGrant, LookupReport, ReportedState,
};
use crate::operation::{ClaimId, Subject};
use crate::store::{self, StoreExt as _};
use crate::telemetry::chain;

/// How long a store that could not write has to tell the state that it reads.
const READ_WITHIN: Duration = Duration::from_millis(250);

/// How a request claims its operation.
#[derive(Debug)]
pub(super) struct ClaimOptions {
    /// The route's place for an attempt. A request without a place is granted nothing.
    pub(super) place: Option<OwnedSemaphorePermit>,
    /// What the request does if another attempt is in flight.
    pub(super) if_in_flight: IfInFlight,
    /// The number of the attempt that the request has waited for.
    pub(super) waited_for: Option<u32>,
    /// Whether the request may ask the receiver about an uncertain operation.
    pub(super) may_look_up: bool,
}

impl ClaimOptions {
    /// The options of a request that has not waited.
    pub(super) const fn new(place: Option<OwnedSemaphorePermit>, if_in_flight: IfInFlight) -> Self {
        Self { place, if_in_flight, waited_for: None, may_look_up: true }
    }
}

/// The result of a claim.
#[derive(Debug)]
pub(super) enum ClaimResult {
    /// This request makes the next attempt.
    Granted(Claim),
    /// This request makes no attempt. The operation is in this state.
    NotGranted(ReportedState),
    /// This request would make the next attempt, but its route has no place for one.
    NoPlace,
}

impl Context<'_> {
    /// Claims the operation of a request. If the store grants a look-up, this asks the receiver and
    /// reports the finding to the store. The store's reply to that report is then the result.
    ///
    /// # Errors
    /// The store could not reply. If the store may have granted the claim, the claim is withdrawn
    /// in the background.
    pub(super) async fn claim(
        self,
        keyed: &KeyedRequest,
        options: ClaimOptions,
    ) -> Result<ClaimResult, store::Error> {
        let has_place = options.place.is_some();
        let mut call = ClaimCall::new(self, &keyed.subject, options)?;
        let mut claimed = call.send().await?;
        loop {
            match claimed {
                // Steps are looked up one after the other, so one look-up may follow another.
                ClaimReply::Lookup(granted) => {
                    claimed = Box::pin(call.look_up(keyed, granted)).await;
                }
                ClaimReply::Granted(grant) => {
                    let ClaimCall { request, sent_at, place, .. } = call;
                    let Some(place) = place else { return Ok(ClaimResult::NoPlace) };
                    let claim = Claim::new(self.executor, request, grant, sent_at, place);
                    return Ok(claim.map_or_else(ClaimResult::NotGranted, ClaimResult::Granted));
                }
                ClaimReply::NotGranted(ReportedState::Free) if !has_place => {
                    return Ok(ClaimResult::NoPlace);
                }
                ClaimReply::NotGranted(state) => return Ok(ClaimResult::NotGranted(state)),
            }
        }
    }

    /// The disposition of a request whose attempt was superseded: that of a copy, if a copy would
    /// not make the next attempt. This claims nothing. The request's own claim must be dropped
    /// before, because a copy is refused beside an own attempt.
    pub(super) async fn look(self, subject: &Arc<Subject>) -> Disposition {
        let operation = subject.id;
        if let Some(state) = self.executor.recalled(subject, self.handler) {
            return Disposition::NotGranted { operation, state };
        }
        let options = ClaimOptions::new(None, IfInFlight::Refuse);
        let Ok(call) = ClaimCall::new(self, subject, options) else {
            return Disposition::StoreUnavailable;
        };
        match call.send().await {
            // The store grants nothing to a call without a place.
            Ok(
                ClaimReply::Granted(_)
                | ClaimReply::Lookup(_)
                | ClaimReply::NotGranted(ReportedState::Free),
            ) => Disposition::Superseded(operation),
            Ok(ClaimReply::NotGranted(state)) => Disposition::NotGranted { operation, state },
            Err(_) => Disposition::StoreUnavailable,
        }
    }
}

/// A claim on its way to the store.
struct ClaimCall<'a> {
    context: Context<'a>,
    request: ClaimRequest,
    /// When the latest call was sent. The lease that it grants is counted from here.
    sent_at: Moment,
    place: Option<OwnedSemaphorePermit>,
}

impl<'a> ClaimCall<'a> {
    fn new(
        context: Context<'a>,
        subject: &Arc<Subject>,
        options: ClaimOptions,
    ) -> Result<Self, store::Error> {
        let Context { executor, handler, .. } = context;
        executor.withdrawals.check_room()?;
        let ClaimOptions { place, if_in_flight, waited_for, may_look_up } = options;
        let &Policy { durations, remember, ref receiver, .. } = &handler.policy;
        let request = ClaimRequest {
            subject: Arc::clone(subject),
            claim_id: ClaimId::from_random(store::random()?),
            holder: Arc::clone(&executor.holder),
            durations,
            may_grant: place.is_some(),
            if_in_flight,
            if_uncertain: receiver.if_uncertain,
            may_look_up,
            remember,
            waited_for,
            forward_key: receiver.forward_key.as_ref().map(|name| name.as_str().into()),
            plan: handler.receivers.plan().cloned(),
            own_attempt: executor.own_attempts.of(subject.id),
        };
        Ok(Self { context, request, sent_at: executor.clock.moment(), place })
    }

    async fn send(&self) -> Result<ClaimReply, store::Error> {
        let executor = self.context.executor;
        let error = match executor.store.apply(self.request.clone()).await {
            Ok(claimed) => return Ok(claimed),
            Err(error) => self.beside_own_attempt(error),
        };
        // Nothing is sent without a reply, but the store may have granted the claim. Without a
        // withdrawal the operation would be in flight until the lease runs out, and held after that.
        if error.may_have_applied() {
            if self.request.may_grant {
                self.withdraw();
            }
            return Err(error);
        }
        // Only such an error says that there is a state to tell.
        if !matches!(error, store::Error::AttemptExists(_)) || !self.request.may_grant {
            return Err(error);
        }
        let state = Box::pin(self.state_of_known_attempt()).await;
        state.map(ClaimReply::NotGranted).ok_or(error)
    }

    /// The error of a claim that has failed. If this process is making an attempt, or was when the
    /// call began, the error says so, even if the store has lost the record of that attempt.
    fn beside_own_attempt(&self, error: store::Error) -> store::Error {
        let is_attempted = self.request.own_attempt.is_some()
            || self.context.executor.own_attempts.of(self.request.subject.id).is_some();
        error.of_claim(is_attempted)
    }

    /// The state of an operation that the store has seen in flight or uncertain, if it can still
    /// read it. A store that cannot write grants neither an attempt nor a look-up, but a copy that
    /// asks for nothing is told the state.
    async fn state_of_known_attempt(&self) -> Option<ReportedState> {
        let look = ClaimRequest { may_grant: false, ..self.request.clone() };
        let told = self.context.executor.store.apply(look);
        match timeout(READ_WITHIN, told).await {
            Ok(Ok(ClaimReply::NotGranted(state))) => {
                Some(state).filter(|it| *it != ReportedState::Free)
            }
            Ok(Ok(ClaimReply::Granted(_) | ClaimReply::Lookup(_)) | Err(_)) | Err(_) => None,
        }
    }

    /// Asks the receiver, and reports the finding to the store.
    async fn look_up(&mut self, keyed: &KeyedRequest, granted: LookupGrant) -> ClaimReply {
        let LookupGrant { attempt, step } = granted;
        let executor = self.context.executor;
        let result = self.context.look_up(keyed, step.as_deref(), attempt).await;
        let LookupResult { finding, reason, reference } = result;
        self.sent_at = executor.clock.moment();
        let request = self.request.clone();
        let report = LookupReport { request, step, finding, reason, reference };
        executor.store.apply(report).await.unwrap_or_else(|error| {
            tracing::warn!(
                operation.id = %self.request.subject.id,
                error = %chain(&error),
                "what a look-up has found could not be recorded"
            );
            // The report may have been granted an attempt, which nobody makes. If the report had no
            // effect, other copies would wait for the end of this look-up. The withdrawal ends
            // both.
            self.withdraw();
            ReportedState::Uncertain { attempt, ends_in: Duration::ZERO }.into()
        })
    }

    fn withdraw(&self) {
        self.context.executor.withdrawals.begin(self.request.withdrawal());
    }
}
