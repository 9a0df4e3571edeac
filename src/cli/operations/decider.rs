//! Who decides about operations, and why; and the question to them before anything changes.

use super::error::Error;
use crate::cli::output;

/// Who decides, and why.
#[derive(Debug, clap::Args)]
pub(super) struct Decider {
    /// Why: it is kept with the decision
    #[arg(long, value_name = "TEXT")]
    pub(super) reason: String,
    /// Who decides: it is kept with the decision [default: $USER]
    #[arg(long, value_name = "NAME")]
    by: Option<String>,
    /// Go on without a question
    #[arg(long, short)]
    yes: bool,
}

impl Decider {
    /// Fails if nobody can agree: there is no `--yes` and no terminal to ask on. Commands check
    /// this before they call anything.
    pub(super) fn check_can_agree(&self) -> Result<(), Error> {
        // In a script stdin may be a pipe, and a question would read the script's data as its
        // answer.
        if self.yes || output::can_ask() { Ok(()) } else { Err(Error::CannotAsk) }
    }

    /// Shows a preview and asks whether to go on, unless there is `--yes`.
    pub(super) fn agree(&self, preview: &str) -> Result<(), Error> {
        if self.yes || output::ask(&format!("{preview}Go on? [y/N] ")) {
            Ok(())
        } else {
            Err(Error::Declined)
        }
    }

    /// The name of whoever decides.
    pub(super) fn name(&self) -> Option<String> {
        name(self.by.as_ref())
    }
}

/// The name that was given, or that of the environment. A container may have a `USER` that is set
/// and empty. With an `env` of clap's, every message about wrong usage would show the option as
/// required wherever the variable is set.
pub(in crate::cli) fn name(given: Option<&String>) -> Option<String> {
    let name = given.cloned().or_else(|| std::env::var("USER").ok());
    name.filter(|name| !name.trim().is_empty())
}
