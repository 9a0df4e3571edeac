//! Lists of operations, newest first, a page at a time.

use std::sync::Arc;

use super::probe;
use crate::operation::{Operation, OperationId, StateName, Timestamp};

/// Records that are looked at for one page, so that no list takes long: a page may hold fewer
/// operations than were asked for, or none, and still have a next one.
pub const SCANNED_MAX: usize = 10_000;

/// Which operations to list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listing {
    /// Those of this route only.
    pub route: Option<Arc<str>>,
    /// Those in this state only.
    pub state: Option<StateName>,
    /// Those behind this place only.
    pub after: Option<Place>,
    /// At most so many.
    pub limit: usize,
}

/// A place in a list: newer operations are before it. Operations of one millisecond stand in the
/// order of their ids, the highest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// When the operation there was created.
    pub created_at: Timestamp,
    /// Which one it is.
    pub id: OperationId,
}

/// A page of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// Newest first, each as it stands now.
    pub operations: Vec<Operation>,
    /// Where the list goes on; none at its end.
    pub next: Option<Place>,
}

impl Listing {
    /// Whether an operation, as it stands now, is asked for. Those of probes never are.
    pub fn wants(&self, operation: &Operation) -> bool {
        !probe::is_throw_away(operation)
            && self.route.as_ref().is_none_or(|route| *route == operation.asked.route)
            && self.state.is_none_or(|state| state == operation.state.name())
    }
}

impl Place {
    /// Where an operation stands.
    pub fn of(operation: &Operation) -> Self {
        Self { created_at: operation.created_at, id: operation.asked.id }
    }
}
