//! What a person says about the store itself.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Request, State};
use serde::{Deserialize, Serialize};

use super::Admin;
use super::body::{self, json};
use super::problem::Problem;
use crate::telemetry::chain;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct AcknowledgeJson {
    by: Option<String>,
}

/// What was done.
#[derive(Debug, Serialize)]
pub(super) struct AcknowledgedJson {
    /// False if there was nothing to acknowledge.
    acknowledged: bool,
}

/// `POST /api/store/acknowledge`: it is known that the store came back empty.
pub(super) async fn acknowledge(
    State(admin): State<Admin>,
    request: Request,
) -> Result<Json<AcknowledgedJson>, Problem> {
    let asked: AcknowledgeJson = json(request).await?;
    let by = body::by(asked.by)?;
    let store = Arc::clone(&admin.0.store);
    // In a task of its own: a caller that hangs up leaves nothing half done.
    let made = tokio::spawn(async move { store.acknowledge().await }).await;
    let made = made.map_err(|_panicked| Problem::NoReply)?;
    match &made {
        Ok(acknowledged) => {
            tracing::info!(?by, acknowledged, "a person knows that the store came back empty");
        }
        Err(error) => {
            let error = chain(error);
            tracing::warn!(?by, error, "that the store came back empty may not be acknowledged");
        }
    }
    let acknowledged = made.map_err(|error| Problem::of_writing(&error))?;
    Ok(Json(AcknowledgedJson { acknowledged }))
}
