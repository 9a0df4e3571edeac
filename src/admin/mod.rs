//! The control plane on its own listener: health, metrics, the operations that the store remembers,
//! and the decisions of operators.
//!
//! | call | what it does | file |
//! | --- | --- | --- |
//! | `GET /livez`, `GET /readyz` | health, for probes that have no token | `health.rs` |
//! | `GET /metrics` | metrics | `health.rs` |
//! | `GET /api/operations` | lists operations | `operations.rs`, `listing.rs` |
//! | `GET /api/operations/{id}` | shows one operation | `operations.rs` |
//! | `POST /api/operations/{id}/resolve` | resolves one operation | `decide.rs` |
//! | `DELETE /api/operations/{id}` | forgets one operation | `decide.rs` |
//! | `POST /api/operations/resolve` | resolves many operations | `resolve_many.rs` |
//! | `POST /api/store/acknowledge` | accepts that the store came back empty | `store.rs` |
//!
//! `guard.rs` checks every call but the first two before it is routed. [`api`] has the bodies of
//! calls and answers.

pub mod api;
mod body;
mod control;
mod decide;
mod failures;
mod from_record;
mod guard;
mod health;
mod listing;
mod operations;
mod problem;
mod resolve_many;
mod store;
mod store_health;

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use axum::Router;
use axum::middleware::{from_fn_with_state, map_response_with_state};
use axum::routing::{get, post};

use crate::secret::Secret;

pub use control::{Admin, Dependencies, Retentions};
use problem::Problem;

/// Where the control plane listens if nobody says otherwise.
pub const ADDRESS: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 8081);

/// Where the control plane listens, and who may call it.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The address that it listens on.
    pub listen: SocketAddr,
    /// The token that every call but `/livez` and `/readyz` must bring. The configuration allows
    /// none only on a loopback address.
    pub token: Option<Secret>,
    /// How long a decision is remembered if the operation's route is not configured any more.
    pub retention: Duration,
}

impl Admin {
    /// The router for all calls.
    pub fn router(&self) -> Router {
        let guarded = Router::new()
            .route("/metrics", get(health::metrics))
            .route("/api/operations", get(operations::list))
            .route("/api/operations/resolve", post(resolve_many::resolve))
            .route("/api/operations/{id}", get(operations::show).delete(decide::forget))
            .route("/api/operations/{id}/resolve", post(decide::resolve))
            .route("/api/store/acknowledge", post(store::acknowledge))
            .layer(map_response_with_state(self.clone(), operations::tell_loss))
            .method_not_allowed_fallback(|| async { Problem::MethodNotAllowed })
            .fallback(|| async { Problem::NotFound })
            .layer(from_fn_with_state(self.clone(), guard::check));
        // Load balancers and the kubelet call these two and have no token. The answers therefore
        // name nothing of the store, its servers or its operations.
        Router::new()
            .route("/livez", get(health::live))
            .route("/readyz", get(health::ready))
            .merge(guarded)
            .with_state(self.clone())
    }
}
