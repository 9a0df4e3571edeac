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

impl FromStr for Format {
    type Err = LogError;

    fn from_str(text: &str) -> Result<Self, LogError> {
        match text {
            "text" => Ok(Self::Text),
            "json" => Ok(Self::Json),
            _ => Err(LogError::Format),
        }
    }
}

/// The log cannot be set up.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// The filter does not parse. It is not repeated: it may stand in a variable.
    #[error(
        "the log filter (`--log` or `ONCEWARD_LOG`) does not parse: it is a level such as `info`, or \
         directives such as `info,onceward::proxy=debug`"
    )]
    Filter,
    /// There is no such format.
    #[error(
        "the log format (`--log-format` or `ONCEWARD_LOG_FORMAT`) is neither `text` nor `json`"
    )]
    Format,
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
    let parsed = parsed.map_err(|_| LogError::Filter)?;
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
