//! The paths that a route serves.

use std::fmt;

use super::paths;

/// The paths of a route. Each is in the one form that every HTTP server reads alike.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum PathPattern {
    /// Only this path.
    Exact(String),
    /// Written `/webhooks/*`, kept as `/webhooks`: this path and every one below it.
    Prefix(String),
}

impl PathPattern {
    /// The plainest form of a pattern: all that some HTTP server decodes, resolves or cuts off is
    /// decoded, resolved or cut off. None if the text is not a path. All servers read a text alike
    /// only if it is its own plainest form.
    pub fn plainest(text: &str) -> Option<Self> {
        let no_path = |c: char| c.is_control() || matches!(c, '*' | '?' | '#');
        let (path, is_prefix) = match text.strip_suffix("/*") {
            Some(path) => (path, true),
            None => (text, false),
        };
        let begins = path.starts_with('/') || (is_prefix && path.is_empty());
        if !begins || path.contains(no_path) {
            return None;
        }
        let path = paths::plainest(path)?;
        Some(if is_prefix {
            Self::Prefix(path.trim_end_matches('/').to_owned())
        } else {
            Self::Exact(path)
        })
    }

    /// The pattern in lower case and without a slash at its end. Two patterns with the same folded
    /// form differ only in what some servers ignore.
    #[must_use]
    pub fn folded(&self) -> Self {
        let fold = |path: &String| path.trim_end_matches('/').to_ascii_lowercase();
        match self {
            Self::Exact(path) => Self::Exact(fold(path)),
            Self::Prefix(path) => Self::Prefix(fold(path)),
        }
    }

    /// The path, without the `/*` of a prefix.
    pub(super) fn as_str(&self) -> &str {
        match self {
            Self::Exact(path) | Self::Prefix(path) => path,
        }
    }

    pub(super) fn to_lower_case(&self) -> Self {
        match self {
            Self::Exact(path) => Self::Exact(path.to_ascii_lowercase()),
            Self::Prefix(path) => Self::Prefix(path.to_ascii_lowercase()),
        }
    }
}

/// The pattern as it is written in the configuration.
impl fmt::Display for PathPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exact(path) => f.write_str(path),
            Self::Prefix(path) => write!(f, "{path}/*"),
        }
    }
}
