//! The only file that prints.

use std::error::Error;
use std::fmt::Write as _;
use std::io::{IsTerminal as _, Write as _};
use std::process::ExitCode;

/// How a command ended, and what it has to say.
#[derive(Debug)]
pub(super) struct Ended {
    /// What was asked for.
    pub(super) stdout: String,
    /// What went wrong.
    pub(super) stderr: String,
    /// 0 done, 1 failed, 2 wrong usage or configuration.
    pub(super) status: u8,
}

impl Ended {
    /// It did what was asked for.
    pub(super) fn done(stdout: impl Into<String>) -> Self {
        Self { stdout: stdout.into(), stderr: String::new(), status: 0 }
    }

    /// It failed, for this reason and all that it was caused by.
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

    /// The same, and what helps.
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

/// Prints what a command has to say, and ends with its status.
pub(super) fn print(ended: &Ended) -> ExitCode {
    say(&ended.stdout);
    let _closed = std::io::stderr().write_all(ended.stderr.as_bytes());
    ExitCode::from(ended.status)
}

/// Prints at once, while a command goes on. Whether somebody still reads it.
pub(super) fn say(text: &str) -> bool {
    let mut stdout = std::io::stdout();
    stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()).is_ok()
}

/// Whether there is a person to ask.
pub(super) fn can_ask() -> bool {
    std::io::stdin().is_terminal()
}

/// Asks the person, beside what is printed. Nothing but a yes is one.
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
