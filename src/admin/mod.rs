//! The control plane, on its own listener: health, metrics, and what is remembered.

mod health;
mod json;
mod operations;
mod problem;

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use axum::Router;
use axum::extract::{Request, State};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use http::header;

use crate::secret::Secret;
use crate::store::Store;
use crate::telemetry::Metrics;

use problem::Problem;

/// Where the control plane listens, and who may use it.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The address.
    pub listen: SocketAddr,
    /// What every call but `/livez` and `/readyz` must bring; none only on loopback.
    pub token: Option<Secret>,
}

/// What the control plane knows of the process. Clones are one and the same.
#[derive(Debug, Clone)]
pub struct Admin(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    store: Arc<dyn Store>,
    metrics: Arc<Metrics>,
    token: Option<Secret>,
    draining: AtomicBool,
}

impl Admin {
    /// Shows this store and these metrics to whoever has the token.
    pub fn new(store: Arc<dyn Store>, metrics: Arc<Metrics>, token: Option<Secret>) -> Self {
        let draining = AtomicBool::new(false);
        Self(Arc::new(Shared { store, metrics, token, draining }))
    }

    /// From now on the process is not ready.
    pub fn drain(&self) {
        self.0.draining.store(true, Ordering::Release);
    }

    /// All calls of the control plane.
    pub fn router(&self) -> Router {
        let guarded = Router::new()
            .route("/metrics", get(health::metrics))
            .route("/api/operations/{id}", get(operations::show))
            .method_not_allowed_fallback(|| async { Problem::MethodNotAllowed })
            .fallback(|| async { Problem::NotFound })
            .layer(from_fn_with_state(self.clone(), check_token));
        // Health is asked for by machines that have no token, and tells nothing else.
        Router::new()
            .route("/livez", get(health::live))
            .route("/readyz", get(health::ready))
            .merge(guarded)
            .with_state(self.clone())
    }
}

async fn check_token(State(admin): State<Admin>, request: Request, next: Next) -> Response {
    let Some(token) = &admin.0.token else { return next.run(request).await };
    let given = request.headers().get(header::AUTHORIZATION).map(http::HeaderValue::as_bytes);
    match given.and_then(bearer) {
        Some(given) if token.is(given) => next.run(request).await,
        Some(_) | None => Problem::Unauthorized.into_response(),
    }
}

/// The token in `Bearer TOKEN`; the case of the scheme does not count (RFC 9110, 11.1).
fn bearer(credentials: &[u8]) -> Option<&[u8]> {
    let (scheme, token) = credentials.split_at_checked(b"Bearer ".len())?;
    scheme.eq_ignore_ascii_case(b"Bearer ").then_some(token)
}
