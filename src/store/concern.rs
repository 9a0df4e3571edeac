//! A reason why a store is not as safe as the guarantees assume.

/// Something about a store's set-up that an operator should know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Concern {
    /// A stable word for it, for metrics and programs.
    pub code: &'static str,
    /// The problem, in one sentence.
    pub text: String,
    /// What to do about it.
    pub hint: String,
}
