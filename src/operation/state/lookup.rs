//! The finding of a look-up, which asks the receiver whether an uncertain operation was done.

use std::sync::Arc;

use super::ClaimRequest;
use crate::words::enum_of_words;

enum_of_words! {
    /// The finding of a look-up. Its words stand in metrics, logs and decisions.
    pub enum Finding {
        /// The receiver has done the operation.
        Done = "done",
        /// The receiver has not done the operation so far.
        NotDone = "not-done",
        /// The receiver did not say whether it has done the operation.
        Unknown = "unknown",
    }
}

/// The end of a look-up. The request to which the look-up was granted reports it.
#[derive(Debug, Clone)]
pub struct LookupReport {
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
