//! What an operator tells the process about the store itself.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Request, State};

use super::api::{Acknowledge, Acknowledged};
use super::body::{self, json};
use super::control::Admin;
use super::problem::Problem;
use crate::telemetry::chain;

/// `POST /api/store/acknowledge`: the operator knows that the store came back empty.
pub(super) async fn acknowledge(
    State(admin): State<Admin>,
    request: Request,
) -> Result<Json<Acknowledged>, Problem> {
    let body: Acknowledge = json(request).await?;
    let by = body::by(body.by)?;
    let store = Arc::clone(&admin.0.store);
    // In a task of its own, so that a caller that hangs up leaves nothing half done.
    let acknowledged = tokio::spawn(async move { store.acknowledge().await }).await;
    let acknowledged = acknowledged.map_err(|_panicked| Problem::NoReply)?;
    match &acknowledged {
        Ok(acknowledged) => {
            tracing::info!(?by, acknowledged, "a person knows that the store came back empty");
        }
        Err(error) => {
            let error = chain(error);
            tracing::warn!(?by, error, "that the store came back empty may not be acknowledged");
        }
    }
    let acknowledged = acknowledged.map_err(|error| Problem::of_writing(&error))?;
    Ok(Json(Acknowledged { acknowledged }))
}
