//! Where a value was written.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

/// Where a value was written.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Origin {
    /// An option of the command line.
    Argument(&'static str),
    /// A file as a whole.
    File(Arc<Path>),
    /// A line of a file, counted from 1.
    Line(Arc<Path>, usize),
    /// A variable of the environment.
    Variable(String),
    /// The preset of a sender.
    Preset(&'static str),
    /// Nowhere: the built-in value counts.
    BuiltIn,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Argument(name) => f.write_str(name),
            Self::File(file) => write!(f, "{}", file.display()),
            Self::Line(file, line) => write!(f, "{}:{line}", file.display()),
            Self::Variable(name) => f.write_str(name),
            Self::Preset(name) => write!(f, "preset {name}"),
            Self::BuiltIn => f.write_str("built-in"),
        }
    }
}
