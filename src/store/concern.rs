//! A reason why a store is less safe than the guarantees assume.

/// Something about a store's set-up that an operator should know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Concern {
    /// A word that names the concern in metrics and to programs. It never changes.
    pub code: &'static str,
    /// The problem, in one sentence.
    pub text: String,
    /// The remedy.
    pub hint: String,
}

impl Concern {
    /// Makes a concern.
    pub fn new(code: &'static str, text: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { code, text: text.into(), hint: hint.into() }
    }
}
