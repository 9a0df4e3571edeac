//! Shows one operation, or a list of them.

use axum::Json;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, RawQuery, State};
use axum::response::Response;
use http::HeaderValue;

use super::api;
use super::control::Admin;
use super::listing::{cursor, listing, page};
use super::problem::Problem;
use crate::operation::{Operation, OperationId};
use crate::store::EPOCH_CHANGED;

/// The part of a call's path that should be an operation id.
pub(super) type IdInPath = Result<Path<String>, PathRejection>;

/// `GET /api/operations/{id}`.
pub(super) async fn show(
    State(admin): State<Admin>,
    id: IdInPath,
) -> Result<Json<api::Operation>, Problem> {
    let operation = admin.find(operation_id(id)?).await?;
    Ok(Json((&operation).into()))
}

/// `GET /api/operations`: newest first.
pub(super) async fn list(
    State(admin): State<Admin>,
    RawQuery(query): RawQuery,
) -> Result<Json<api::Page<api::Operation>>, Problem> {
    let listing = listing(query.as_deref().unwrap_or_default())?;
    let (operations, next) = page(&admin, &listing).await?;
    let route = listing.route.filter(|_| operations.is_empty());
    let routes = route.and_then(|route| admin.0.retentions.routes_if_unknown(&route));
    Ok(Json(api::Page { operations, next: next.map(cursor), routes }))
}

/// Says with an answer that the store came back empty, so that nobody takes a list for all that
/// there was.
pub(super) async fn tell_loss(State(admin): State<Admin>, mut response: Response) -> Response {
    if admin.0.health.concerns().contains(&EPOCH_CHANGED) {
        let emptied = HeaderValue::from_static(api::EMPTIED);
        response.headers_mut().insert(api::STORE, emptied);
    }
    response
}

/// The operation id in the path of a call.
pub(super) fn operation_id(id: IdInPath) -> Result<OperationId, Problem> {
    let Path(id) = id.map_err(|_| Problem::NotAnOperationId)?;
    id.parse().map_err(|_| Problem::NotAnOperationId)
}

impl Admin {
    /// The record of an operation as it is now.
    pub(super) async fn find(&self, id: OperationId) -> Result<Operation, Problem> {
        let found = self.0.store.get(id).await;
        let found = found.map_err(|error| Problem::of_reading(&error))?;
        found.ok_or(Problem::NoSuchOperation)
    }
}
