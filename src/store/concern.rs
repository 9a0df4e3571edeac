//! What makes a store unsafe: not wrong, but not what the promises need.

/// Something about a store that a person should know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Concern {
    /// A stable word for it, for metrics and programs.
    pub code: &'static str,
    /// What is so, in one sentence.
    pub text: String,
    /// What to do about it.
    pub hint: String,
}
