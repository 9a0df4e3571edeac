//! The log: one event per line, as text or as JSON, on standard error.

use std::error::Error;
use std::str::FromStr;

use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

/// How a line of the log is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Text, for people.
    Text,
    /// JSON, for programs: one object per line.
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

/// Why the log cannot be set up.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// The filter does not parse. The message does not repeat it: what comes from an environment
    /// variable is not printed.
    #[error(
        "the log filter (`--log` or `ONCEWARD_LOG`) does not parse: it is a level such as `info`, or \
         directives such as `info,onceward::proxy=debug`"
    )]
    Filter,
    /// The format is unknown.
    #[error(
        "the log format (`--log-format` or `ONCEWARD_LOG_FORMAT`) is neither `text` nor `json`"
    )]
    Format,
    /// The log was set up before.
    #[error("the log is already set up")]
    Installed,
}

/// Sends the log of the whole process to standard error. It can be called once per process.
///
/// `filter` is a level, or directives such as `info,onceward::proxy=debug`.
pub fn install(format: Format, filter: &str) -> Result<(), LogError> {
    // `deadpool` logs every connection that it loses. The store reports once that the database
    // cannot be reached, so the rest is noise, unless the operator asks for it.
    let quiet = if filter.contains("deadpool") { "" } else { ",deadpool=error" };
    let parsed = Targets::from_str(&format!("{filter}{quiet}"));
    let parsed = parsed.map_err(|_| LogError::Filter)?;
    let registry = tracing_subscriber::registry().with(parsed);
    // Standard output is for the results of commands. Colours would be escape sequences in the
    // files and journals that logs mostly end up in.
    let lines = tracing_subscriber::fmt::layer().with_writer(std::io::stderr).with_ansi(false);
    let installed = match format {
        Format::Text => registry.with(lines).try_init(),
        // Flattened, the fields of an event stand at the top level, where collectors look for them.
        Format::Json => registry.with(lines.json().flatten_event(true)).try_init(),
    };
    installed.map_err(|_| LogError::Installed)
}

/// An error with all its causes, in one line. As a plain field of an event an error loses its
/// causes in the JSON format.
pub fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}
