//! The values that labels may have.

use crate::operation::state::{ReportedState, RuleName};
use crate::words::enum_of_words;

enum_of_words! {
    /// What happened to a request.
    pub enum DispositionWord {
        /// An attempt was made for it, with any outcome.
        Executed = "executed",
        /// It was answered with the stored answer of an earlier success.
        Replayed = "replayed",
        /// Another attempt at its operation was in flight.
        InFlight = "in-flight",
        /// The outcome of its operation is uncertain.
        Uncertain = "uncertain",
        /// Its key belongs to a different request.
        Mismatched = "mismatched",
        /// It was forwarded without deduplication.
        Passed = "passed",
        /// It was refused, and got no operation.
        Refused = "refused",
    }
}

impl DispositionWord {
    /// The disposition of a request that makes no attempt, from the state of its operation.
    pub const fn of_copy(state: &ReportedState) -> Self {
        match state {
            ReportedState::Succeeded { .. } => Self::Replayed,
            // `Free`: nobody holds the operation, and this claim was not granted all the same. The
            // sender is told what a copy in flight is told: send again.
            ReportedState::Free | ReportedState::InFlight { .. } => Self::InFlight,
            ReportedState::Uncertain { .. } => Self::Uncertain,
            ReportedState::Mismatched { .. } => Self::Mismatched,
        }
    }
}

enum_of_words! {
    /// A call to the store.
    #[expect(missing_docs, reason = "each is described at `Store`")]
    pub enum StoreCall {
        Claim = "claim",
        Renew = "renew",
        Settle = "settle",
        Get = "get",
        List = "list",
        Resolve = "resolve",
        Forget = "forget",
        Sweep = "sweep",
        Conclude = "conclude",
    }
}

impl From<RuleName> for StoreCall {
    fn from(name: RuleName) -> Self {
        match name {
            RuleName::Claim => Self::Claim,
            RuleName::Renew => Self::Renew,
            // A withdrawal settles an attempt as never sent.
            RuleName::Settle | RuleName::Advance | RuleName::Withdraw => Self::Settle,
            RuleName::Conclude => Self::Conclude,
            RuleName::Resolve => Self::Resolve,
            RuleName::Forget => Self::Forget,
            RuleName::Expire => Self::Sweep,
        }
    }
}

enum_of_words! {
    /// A limit that can be reached. Its word is the name of the setting.
    pub enum Limit {
        /// `server.limits.connections_max`.
        Connections = "connections_max",
        /// `server.limits.requests_in_flight_max`.
        RequestsInFlight = "requests_in_flight_max",
        /// `server.limits.buffered_bytes_max`.
        BufferedBytes = "buffered_bytes_max",
        /// `server.limits.bodies_pending_max`.
        BodiesPending = "bodies_pending_max",
        /// `server.limits.per_peer_max`.
        PerPeer = "per_peer_max",
        /// `server.limits.header_bytes_max`.
        HeaderBytes = "header_bytes_max",
        /// `server.limits.header_lines_max`.
        HeaderLines = "header_lines_max",
        /// `server.limits.body_timeout`.
        BodyTimeout = "body_timeout",
        /// `server.limits.body_rate_min`.
        BodyRate = "body_rate_min",
        /// `server.limits.header_timeout`.
        HeaderTimeout = "header_timeout",
        /// `server.limits.idle_timeout`.
        IdleTimeout = "idle_timeout",
        /// `server.limits.write_timeout`.
        WriteTimeout = "write_timeout",
        /// A route's `in_flight_max`.
        InFlight = "in_flight_max",
        /// A route's `waiters_max`.
        Waiters = "waiters_max",
        /// A route's `replay.body_bytes_max`.
        ReplayBodyBytes = "replay.body_bytes_max",
        /// Claims whose reply was lost and that are still being withdrawn. No setting has this
        /// limit.
        Withdrawals = "withdrawals_max",
    }
}
