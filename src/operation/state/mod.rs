//! The states of an operation, and the only code that changes them.
//!
//! Every change is a [`Rule`]: a request that is applied to the record that a store has found (or
//! to none) at a time on the store's clock. It gives the record to keep and the reply to the
//! caller. A store applies a rule in one atomic step, so of two requests that arrive at the same
//! moment the second one sees what the first one changed. This is the state that each rule makes of
//! each state that is found:
//!
//! | found | claim | settle | conclude | withdraw | resolve | forget | time |
//! | --- | --- | --- | --- | --- | --- | --- | --- |
//! | none | in flight | its outcome | - | - | - | - | - |
//! | in flight | - | its outcome | - | failed | - | - | uncertain |
//! | uncertain | in flight | its outcome | succeeded, in flight | failed | succeeded, failed | forgotten | none |
//! | succeeded | - | - | - | - | - | forgotten | none |
//! | failed | in flight | - | - | - | succeeded, failed | forgotten | none |
//! | forgotten | in flight | - | - | - | - | forgotten | none |
//!
//! `-`: the state stays as it is, and the reply says which one it is. Renew changes no state.
//!
//! * Settle and withdraw change the state for the current claim only: that of the attempt in
//!   flight, or of the last attempt of an uncertain operation (of a step: the claim under which the
//!   step began). So a process that was paused, and
//!   wakes up after another one has claimed its operation, changes nothing but the attempt log. A
//!   settle that finds no record writes a new one, because the store has lost the record.
//! * A claim of an uncertain operation is refused, unless the route's policy lets a copy make the
//!   next attempt or a look-up. The next attempt begins only when `attempt_timeout` of the last one
//!   has passed, because the upstream may work on it until then. A copy that is refused makes the
//!   hold longer.
//! * A look-up leaves the operation uncertain until conclude reports what was found. *Done* makes
//!   the operation succeeded. After *not done* the same request makes the next attempt, if it may
//!   begin. Otherwise the operation stays uncertain.
//! * A claim with another fingerprint is refused while the operation is in flight, uncertain or
//!   succeeded. In the other states it is granted: a sender may correct an event that failed.
//! * A claim of a success is granted if the route remembers outcomes for waiters only
//!   ([`Remember::InFlight`]).
//! * A record that a route made under `mode = "observe"` does not bind a claim under `enforce`: the
//!   claim is granted, even while the record is in flight. Only a success with a valid signature
//!   binds it.
//! * A claim is granted nothing while its own process is making an attempt of which the record, or
//!   the lack of one, says nothing. The store has lost the record of that attempt.
//! * A claim that has no place for an attempt is granted nothing. If it is refused, the record says
//!   so all the same.
//! * Whoever opens the embedded store makes what an earlier process had in flight uncertain, and
//!   does not wait for the leases to run out ([`abandon`]).
//!
//! Each rule has a request and a file:
//!
//! * claim: [`ClaimRequest`] asks for the right to make an attempt (`claim.rs`; `next.rs` decides
//!   about uncertain operations, `grant.rs` begins the attempt);
//! * renew: [`Renewal`] makes the lease of an attempt longer (`renew.rs`);
//! * settle: [`Settlement`] reports how an attempt ended (`settle.rs`), [`StepSettlement`] how one
//!   of several steps ended (`steps/advance.rs`);
//! * conclude: [`LookupReport`] reports what a look-up found (`conclude.rs`);
//! * withdraw: [`Withdrawal`] ends a claim under which nothing is sent (`withdraw.rs`);
//! * resolve, forget: [`Resolution`] and [`Forgetting`] are decisions of an operator (`decide.rs`);
//! * time: [`lapse()`] makes the changes of time alone. It comes before every other rule and, as
//!   [`Expiry`], in a sweep (`lapse.rs`).

mod claim;
mod claim_reply;
mod conclude;
mod decide;
mod decisions;
mod grant;
mod hold;
mod holder;
mod lapse;
mod lookup;
mod name;
mod next;
mod records;
mod renew;
mod request;
mod rule;
mod settle;
mod steps;
#[cfg(test)]
mod tests;
mod transition;
mod withdraw;

pub use claim::recall;
pub use claim_reply::{ClaimReply, Grant, LookupGrant, ReportedState};
pub use decide::{Decided, Forgetting, Resolution, Verdict};
pub use lapse::{Expiry, abandon, lapse};
pub use lookup::{Finding, LookupReport};
pub use name::StateName;
pub use records::{Failure, Hold, Lease, LookupLease, Success};
pub use renew::{Renewal, Renewed};
pub use request::{ClaimRequest, OwnAttempt};
pub use rule::{Rule, RuleName};
pub use settle::{Ending, Settled, Settlement};
pub use steps::{Advanced, EventEnd, StepSettlement};
pub use transition::{Change, Transition};
pub use withdraw::Withdrawal;

pub use crate::operation::copies::{IfInFlight, IfUncertain, Remember};

use serde::{Deserialize, Serialize};

use crate::operation::Timestamp;

/// The state of an operation, with the values that are kept in it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum State {
    /// An attempt is in flight under a lease. Copies wait or are refused.
    InFlight(Lease),
    /// The request may have reached the upstream, and nobody knows whether the operation was done.
    /// It is not sent again unless the route's policy, a look-up or an operator says so.
    Uncertain(Hold),
    /// The operation was done. Copies get the stored answer until the retention has passed.
    Succeeded(Success),
    /// The operation was not done. The next copy is a new attempt.
    Failed(Failure),
    /// An operator freed the operation, whatever its state was. The next copy is a new attempt. The
    /// attempt log and the numbers of the attempts stay.
    Forgotten {
        /// When the record may be removed.
        expires_at: Timestamp,
    },
}
