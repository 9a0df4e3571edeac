//! What is remembered: one operation, or a list.

use std::sync::Arc;

use axum::Json;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, RawQuery, State};
use serde::Serialize;

use super::Admin;
use super::json::OperationJson;
use super::listing::{cursor, listing, page};
use super::problem::Problem;
use crate::operation::{Operation, OperationId};

/// What stands in the path of a call.
pub(super) type InPath = Result<Path<String>, PathRejection>;

/// `GET /api/operations/{id}`.
pub(super) async fn show(
    State(admin): State<Admin>,
    id: InPath,
) -> Result<Json<OperationJson>, Problem> {
    let operation = admin.find(operation_id(id)?).await?;
    Ok(Json((&operation).into()))
}

/// A page of a list.
#[derive(Debug, Serialize)]
pub(super) struct PageJson {
    operations: Vec<OperationJson>,
    next: Option<String>,
    /// Of an empty list of a route that is not configured: those that are.
    #[serde(skip_serializing_if = "Option::is_none")]
    routes: Option<Vec<Arc<str>>>,
}

/// `GET /api/operations`: newest first.
pub(super) async fn list(
    State(admin): State<Admin>,
    RawQuery(query): RawQuery,
) -> Result<Json<PageJson>, Problem> {
    let listing = listing(query.as_deref().unwrap_or_default())?;
    let (operations, next) = page(&admin, &listing).await?;
    let routes = &admin.0.retentions.routes;
    let unknown =
        listing.route.filter(|route| operations.is_empty() && !routes.contains_key(route));
    let routes = unknown.map(|_| {
        let mut names: Vec<_> = routes.keys().cloned().collect();
        names.sort_unstable();
        names
    });
    Ok(Json(PageJson { operations, next: next.map(cursor), routes }))
}

/// The id that stands in the path of a call.
pub(super) fn operation_id(id: InPath) -> Result<OperationId, Problem> {
    let Path(id) = id.map_err(|_| Problem::NotAnOperationId)?;
    id.parse().map_err(|_| Problem::NotAnOperationId)
}

impl Admin {
    /// An operation, as it stands now.
    pub(super) async fn find(&self, id: OperationId) -> Result<Operation, Problem> {
        let found = self.0.store.get(id).await;
        let found = found.map_err(|error| Problem::of_reading(&error))?;
        found.ok_or(Problem::NoSuchOperation)
    }
}
