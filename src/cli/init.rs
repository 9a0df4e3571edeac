//! `onceward init`: a configuration to start with.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::output::Ended;

/// What the README shows, too.
const STARTING: &str = include_str!("../../config/minimal.toml");

/// Writes a configuration to start with
#[derive(Debug, clap::Args)]
#[command(after_help = "Example: onceward init --output onceward.toml")]
pub(super) struct Args {
    /// A file that does not exist yet; without it, standard output
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// The file was not written.
#[derive(Debug, thiserror::Error)]
#[error("`{}` was not written", path.display())]
struct Error {
    path: PathBuf,
    source: io::Error,
}

pub(super) fn run(args: &Args) -> Ended {
    match write(args) {
        Ok(text) => Ended::done(text),
        Err(error) => Ended::failed(&error),
    }
}

/// Writes it, and gives what is to be printed.
fn write(args: &Args) -> Result<String, Error> {
    match &args.output {
        None => Ok(STARTING.to_owned()),
        Some(path) => match write_new(path) {
            Ok(()) => Ok(format!("wrote `{}`\n", path.display())),
            Err(source) => Err(Error { path: path.clone(), source }),
        },
    }
}

/// Never over a file that is there already, not even one that appears at this moment.
fn write_new(path: &Path) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).open(path)?;
    file.write_all(STARTING.as_bytes())?;
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_exists_is_not_overwritten() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("onceward.toml");
        let args = Args { output: Some(path.clone()) };
        assert_eq!(write(&args).unwrap(), format!("wrote `{}`\n", path.display()));
        assert_eq!(std::fs::read_to_string(&path).unwrap(), STARTING);

        std::fs::write(&path, "mine").unwrap();
        assert_eq!(write(&args).unwrap_err().source.kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "mine");
    }

    #[test]
    fn without_a_file_it_is_printed() {
        assert_eq!(write(&Args { output: None }).unwrap(), STARTING);
    }
}
