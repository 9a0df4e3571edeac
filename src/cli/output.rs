//! Prints what a command has to say, and asks the operator. No other file prints.

use std::error::Error;
use std::fmt::Write as _;
use std::io::{IsTerminal as _, Write as _};
use std::process::ExitCode;

/// The result of a command: the texts to print and the exit status.
#[derive(Debug)]
pub(super) struct Exit {
    /// The text that was asked for.
    pub(super) stdout: String,
    /// The text about what went wrong.
    pub(super) stderr: String,
    /// The exit status: 0 done, 1 failed, 2 wrong usage or configuration.
    pub(super) status: u8,
}

impl Exit {
    /// The command did what was asked for.
    pub(super) fn done(stdout: impl Into<String>) -> Self {
        Self { stdout: stdout.into(), stderr: String::new(), status: 0 }
    }

    /// The command failed with this error. The message names every cause.
    pub(super) fn failed(error: &dyn Error) -> Self {
        let mut stderr = format!("error: {error}\n");
        let mut cause = error.source();
        while let Some(error) = cause {
            // Writing to a string does not fail.
            let _written = writeln!(stderr, "  because: {error}");
            cause = error.source();
        }
        Self { stdout: String::new(), stderr, status: 1 }
    }

    /// Adds a hint to the message.
    pub(super) fn with_hint(mut self, hint: &str) -> Self {
        // Writing to a string does not fail.
        let _written = writeln!(self.stderr, "  hint: {hint}");
        self
    }

    /// The command line or the configuration is wrong.
    pub(super) fn misused(stderr: impl Into<String>) -> Self {
        Self { stdout: String::new(), stderr: stderr.into(), status: 2 }
    }
}

/// Prints the texts of a command, and gives its exit status to the system.
pub(super) fn print(exit: &Exit) -> ExitCode {
    say(&exit.stdout);
    // If nobody reads stderr there is nobody left to tell.
    let _closed = std::io::stderr().write_all(exit.stderr.as_bytes());
    ExitCode::from(exit.status)
}

/// Prints at once, while the command goes on. False if nobody reads it any more.
pub(super) fn say(text: &str) -> bool {
    let mut stdout = std::io::stdout();
    stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()).is_ok()
}

/// Whether there is a terminal to ask on.
pub(super) fn can_ask() -> bool {
    std::io::stdin().is_terminal()
}

/// Asks on the terminal, and takes nothing but `y` or `yes` for a yes. The question goes to stderr,
/// so that stdout holds only the result.
pub(super) fn ask(question: &str) -> bool {
    let mut stderr = std::io::stderr();
    let asked = stderr.write_all(question.as_bytes()).and_then(|()| stderr.flush());
    let mut answer = String::new();
    let answered = asked.and_then(|()| std::io::stdin().read_line(&mut answer));
    answered.is_ok() && matches!(&*answer.trim().to_ascii_lowercase(), "y" | "yes")
}

/// Prints help, version, or what is wrong with the command line.
pub(super) fn usage(error: &clap::Error) -> ExitCode {
    let _closed = error.print();
    ExitCode::from(if error.use_stderr() { 2 } else { 0 })
}
