//! The log: one event a line, as text or as JSON, on standard error.

use std::error::Error;
use std::str::FromStr;

use tracing_subscriber::EnvFilter;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

/// How a line of the log is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// For people.
    Text,
    /// For programs: one object a line.
    Json,
}

/// The log cannot be set up.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// The filter does not parse.
    #[error("the log filter `{0}` does not parse")]
    Filter(String),
    /// There is one already.
    #[error("the log is already set up")]
    Installed,
}

/// Sends the log of the whole process to standard error. `filter` is a level, or directives such
/// as `info,onceward::proxy=debug`.
pub fn install(format: Format, filter: &str) -> Result<(), LogError> {
    // The pool of the database says of each connection that it is lost; the store says it once.
    let quiet = if filter.contains("deadpool") { "" } else { ",deadpool=error" };
    let parsed = EnvFilter::from_str(&format!("{filter}{quiet}"));
    let parsed = parsed.map_err(|_| LogError::Filter(filter.to_owned()))?;
    let registry = tracing_subscriber::registry().with(parsed);
    let lines = tracing_subscriber::fmt::layer().with_writer(std::io::stderr).with_ansi(false);
    let installed = match format {
        Format::Text => registry.with(lines).try_init(),
        Format::Json => registry.with(lines.json().flatten_event(true)).try_init(),
    };
    installed.map_err(|_| LogError::Installed)
}

/// An error and all that it was caused by, in one line. As a field alone, an error loses its causes
/// in the JSON format.
pub fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}
