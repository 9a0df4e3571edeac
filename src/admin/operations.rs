//! What is remembered of an operation.

use axum::Json;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};

use super::Admin;
use super::json::OperationJson;
use super::problem::Problem;
use crate::operation::OperationId;
use crate::store;

/// `GET /api/operations/{id}`.
pub(super) async fn show(
    State(admin): State<Admin>,
    id: Result<Path<String>, PathRejection>,
) -> Result<Json<OperationJson>, Problem> {
    let Path(id) = id.map_err(|_| Problem::NotAnOperationId)?;
    let id: OperationId = id.parse().map_err(|_| Problem::NotAnOperationId)?;
    let operation = admin.0.store.get(id).await.map_err(|error| match error {
        store::Error::Unreadable(..) => Problem::Unreadable,
        store::Error::Unavailable(_) | store::Error::NoReply(_) | store::Error::Failed(_) => {
            Problem::StoreUnavailable
        }
    })?;
    operation.as_ref().map(|found| Json(found.into())).ok_or(Problem::NoSuchOperation)
}
