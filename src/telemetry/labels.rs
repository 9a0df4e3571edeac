//! The values that labels may have: from configuration and code, never from a request.

use crate::operation::state::{Call, Claimed, OperationState};

/// What happened to a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Disposition {
    /// An attempt was made for it, whatever its outcome.
    Executed,
    /// It got the answer of an earlier success.
    Replayed,
    /// Another attempt was in flight.
    InFlight,
    /// Nobody knows the outcome.
    Uncertain,
    /// Its key stands for a different request.
    Mismatched,
    /// It was forwarded and not deduplicated.
    Passed,
    /// It got no operation.
    Refused,
}

impl Disposition {
    /// What becomes of a request whose claim is answered like this.
    pub const fn of(claimed: &Claimed) -> Self {
        match claimed {
            Claimed::Granted(_) => Self::Executed,
            Claimed::LookUp(_) => Self::Uncertain,
            Claimed::NotGranted(state) => Self::of_copy(state),
        }
    }

    /// What becomes of a copy of an operation that stands like this.
    pub const fn of_copy(state: &OperationState) -> Self {
        match state {
            OperationState::Succeeded { .. } => Self::Replayed,
            OperationState::Free | OperationState::InFlight { .. } => Self::InFlight,
            OperationState::Uncertain { .. } => Self::Uncertain,
            OperationState::Mismatched { .. } => Self::Mismatched,
        }
    }

    /// All of them, in the order of their discriminants.
    pub const ALL: [Self; 7] = [
        Self::Executed,
        Self::Replayed,
        Self::InFlight,
        Self::Uncertain,
        Self::Mismatched,
        Self::Passed,
        Self::Refused,
    ];

    /// The word in headers, metrics and logs.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Executed => "executed",
            Self::Replayed => "replayed",
            Self::InFlight => "in-flight",
            Self::Uncertain => "uncertain",
            Self::Mismatched => "mismatched",
            Self::Passed => "passed",
            Self::Refused => "refused",
        }
    }
}

/// A call to the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "each is described at `Store`")]
pub enum StoreCall {
    Claim,
    Renew,
    Settle,
    Get,
    List,
    Resolve,
    Forget,
    Sweep,
    Conclude,
}

impl StoreCall {
    /// All of them, in the order of their discriminants.
    pub const ALL: [Self; 9] = [
        Self::Claim,
        Self::Renew,
        Self::Settle,
        Self::Get,
        Self::List,
        Self::Resolve,
        Self::Forget,
        Self::Sweep,
        Self::Conclude,
    ];

    /// The word in metrics.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Claim => "claim",
            Self::Renew => "renew",
            Self::Settle => "settle",
            Self::Get => "get",
            Self::List => "list",
            Self::Resolve => "resolve",
            Self::Forget => "forget",
            Self::Sweep => "sweep",
            Self::Conclude => "conclude",
        }
    }
}

impl From<Call> for StoreCall {
    fn from(call: Call) -> Self {
        match call {
            Call::Claim => Self::Claim,
            Call::Renew => Self::Renew,
            // A withdrawal is a settle, as never sent.
            Call::Settle | Call::Advance | Call::Withdraw => Self::Settle,
            Call::Conclude => Self::Conclude,
            Call::Resolve => Self::Resolve,
            Call::Forget => Self::Forget,
            Call::Expire => Self::Sweep,
        }
    }
}

/// A limit that can be reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Limit {
    /// `server.limits.connections_max`.
    Connections,
    /// `server.limits.requests_in_flight_max`.
    RequestsInFlight,
    /// `server.limits.buffered_bytes_max`.
    BufferedBytes,
    /// `server.limits.bodies_pending_max`.
    BodiesPending,
    /// `server.limits.per_peer_max`.
    PerPeer,
    /// `server.limits.header_bytes_max`.
    HeaderBytes,
    /// `server.limits.header_lines_max`.
    HeaderLines,
    /// `server.limits.body_timeout`.
    BodyTimeout,
    /// `server.limits.body_rate_min`.
    BodyRate,
    /// `server.limits.header_timeout`.
    HeaderTimeout,
    /// `server.limits.idle_timeout`.
    IdleTimeout,
    /// `server.limits.write_timeout`.
    WriteTimeout,
    /// A route's `in_flight_max`.
    InFlight,
    /// A route's `waiters_max`.
    Waiters,
    /// A route's `replay.body_bytes_max`.
    ReplayBodyBytes,
    /// Claims without a reply that are still being withdrawn.
    Withdrawals,
}

impl Limit {
    /// All of them, in the order of their discriminants.
    pub const ALL: [Self; 16] = [
        Self::Connections,
        Self::RequestsInFlight,
        Self::BufferedBytes,
        Self::BodiesPending,
        Self::PerPeer,
        Self::HeaderBytes,
        Self::HeaderLines,
        Self::BodyTimeout,
        Self::BodyRate,
        Self::HeaderTimeout,
        Self::IdleTimeout,
        Self::WriteTimeout,
        Self::InFlight,
        Self::Waiters,
        Self::ReplayBodyBytes,
        Self::Withdrawals,
    ];

    /// The word in metrics.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Connections => "connections_max",
            Self::RequestsInFlight => "requests_in_flight_max",
            Self::BufferedBytes => "buffered_bytes_max",
            Self::BodiesPending => "bodies_pending_max",
            Self::PerPeer => "per_peer_max",
            Self::HeaderBytes => "header_bytes_max",
            Self::HeaderLines => "header_lines_max",
            Self::BodyTimeout => "body_timeout",
            Self::BodyRate => "body_rate_min",
            Self::HeaderTimeout => "header_timeout",
            Self::IdleTimeout => "idle_timeout",
            Self::WriteTimeout => "write_timeout",
            Self::InFlight => "in_flight_max",
            Self::Waiters => "waiters_max",
            Self::ReplayBodyBytes => "replay.body_bytes_max",
            Self::Withdrawals => "withdrawals_max",
        }
    }
}
