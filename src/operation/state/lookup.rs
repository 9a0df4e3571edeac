//! The finding of a look-up, which asks the receiver whether an uncertain operation was done.

use std::sync::Arc;

use super::ClaimRequest;

/// The finding of a look-up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Finding {
    /// The receiver has done the operation.
    Done,
    /// The receiver has not done the operation so far.
    NotDone,
    /// The receiver did not say whether it has done the operation.
    Unknown,
}

impl Finding {
    /// All findings, in the order of their discriminants.
    pub const ALL: [Self; 3] = [Self::Done, Self::NotDone, Self::Unknown];

    /// The word used in metrics, logs and decisions.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::NotDone => "not-done",
            Self::Unknown => "unknown",
        }
    }
}

/// The end of a look-up. The request to which the look-up was granted reports it.
#[derive(Debug, Clone)]
pub struct Conclusion {
    /// The claim to which the look-up was granted. If the operation was not done, this claim may
    /// get the next attempt.
    pub request: ClaimRequest,
    /// The step that was asked about; none on a route without steps.
    pub step: Option<Arc<str>>,
    /// The finding.
    pub finding: Finding,
    /// How the receiver answered, in a few words.
    pub reason: String,
    /// The receiver's reference for the operation.
    pub reference: Option<String>,
}
