//! The log: one event per line, as text or as JSON, on standard error.

use std::error::Error;
use std::str::FromStr;

use tracing_subscriber::filter::{LevelFilter, Targets};
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
    let parsed = targets(filter)?;
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

/// Parses a filter. Targets of which it says nothing have the level `info`.
///
/// The parser of `Targets` would take a mistyped level for a target, and turn off all others.
fn targets(filter: &str) -> Result<Targets, LogError> {
    let directives = filter.split(',').map(str::trim).filter(|directive| !directive.is_empty());
    let mut default = LevelFilter::INFO;
    let mut targets = Targets::new();
    for directive in directives {
        match directive.split_once('=') {
            Some((target, word)) => {
                targets = targets.with_target(parse_target(target)?, level(word)?);
            }
            None => default = level(directive)?,
        }
    }
    // `deadpool` logs every connection that it loses. The store reports once that the database
    // cannot be reached, so the rest is noise, unless the operator asks for it.
    if !filter.contains("deadpool") {
        targets = targets.with_target("deadpool", default.min(LevelFilter::ERROR));
    }
    Ok(targets.with_default(default))
}

fn parse_target(text: &str) -> Result<&str, LogError> {
    let is_in_path = |c: char| c.is_ascii_alphanumeric() || "_:-".contains(c);
    if text.is_empty() || !text.chars().all(is_in_path) {
        return Err(LogError::Filter);
    }
    Ok(text)
}

fn level(word: &str) -> Result<LevelFilter, LogError> {
    // The library takes an empty word for `error`.
    if word.is_empty() {
        return Err(LogError::Filter);
    }
    word.parse().map_err(|_| LogError::Filter)
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

#[cfg(test)]
mod tests {
    use tracing::Level;

    use super::*;

    fn shows(filter: &str, target: &str) -> Vec<Level> {
        let targets = targets(filter).unwrap();
        let levels = [Level::ERROR, Level::WARN, Level::INFO, Level::DEBUG];
        levels.into_iter().filter(|level| targets.would_enable(target, level)).collect()
    }

    #[test]
    fn a_filter_is_a_level_or_directives() {
        let up_to_info = [Level::ERROR, Level::WARN, Level::INFO];
        for filter in ["info", "INFO", " info ", "info,", "", " , ", "onceward::admin=debug"] {
            assert_eq!(shows(filter, "onceward::proxy"), up_to_info, "{filter:?}");
        }
        assert_eq!(shows("warn,onceward::proxy=debug", "onceward::proxy").len(), 4);
        assert_eq!(shows("warn,onceward::proxy=debug", "onceward::admin").len(), 2);
        assert!(shows("warn, onceward::admin=off", "onceward::admin").is_empty());
        assert!(shows("off", "onceward::proxy").is_empty());
    }

    #[test]
    fn a_word_that_is_no_level_is_refused() {
        for filter in ["inof", "information", "info;debug", "7", "-1", "*", "=", "[span", "[]"] {
            assert!(matches!(targets(filter), Err(LogError::Filter)), "{filter:?}");
        }
        for filter in ["[span]=debug", "info,onceward", "onceward=loud", "info\nwarn"] {
            assert!(matches!(targets(filter), Err(LogError::Filter)), "{filter:?}");
        }
    }

    #[test]
    fn lost_connections_of_the_pool_are_logged_if_they_are_asked_for() {
        assert_eq!(shows("info", "deadpool::managed"), [Level::ERROR]);
        assert!(shows("off", "deadpool::managed").is_empty());
        assert_eq!(shows("info,deadpool=debug", "deadpool::managed").len(), 4);
    }
}
