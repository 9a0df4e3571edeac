//! The input of the executor.

use std::fmt::Debug;
use std::sync::Arc;

use tokio::time::Instant;

use crate::budget::Reserved;
use crate::operation::Subject;
use crate::upstream::Request;

/// A request whose operation is known.
#[derive(Debug)]
pub struct KeyedRequest {
    /// What the request is about.
    pub subject: Arc<Subject>,
    /// The key as one text, as the receiver knows it; empty if the key has several parts.
    pub key: String,
    /// The request for the upstream.
    pub request: Request,
    /// Makes the requests for the steps; none on a route without steps.
    pub steps: Option<Box<dyn StepRequests>>,
    /// When the request arrived. `answer_within` counts from here.
    pub arrived: Instant,
    /// The memory that is reserved for the body of the request.
    pub memory: Reserved,
}

/// Makes the requests for the steps of an event.
///
/// A request is made when its step begins, because most copies of an event never begin one.
pub trait StepRequests: Debug + Send + Sync {
    /// The request for the step with this name; none if there is no such step.
    fn of(&self, step: &str) -> Option<Request>;
}
