//! The command line: one file or folder for each command.
//!
//! A command returns an `Exit`, the text to print and the exit status, so that tests need no
//! process. Only `output.rs` prints.

mod check;
mod completions;
mod demo;
mod explain;
mod init;
mod operations;
mod output;
mod providers;
mod serve;
mod signals;
mod store;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::{CommandFactory as _, Parser, Subcommand};

use output::{Exit, print};

/// An HTTP reverse proxy that forwards each webhook event once: copies are answered, not forwarded.
#[derive(Debug, Parser)]
#[command(name = "onceward", version, max_term_width = 100)]
#[command(after_help = "Try it: `onceward demo`")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run the proxy.
    Serve(serve::Args),
    /// See it work: a sample upstream, the proxy, and what becomes of duplicates.
    Demo(demo::Args),
    /// Find all problems and risks of a configuration, without starting.
    Check(check::Args),
    /// Show what the proxy would do with a captured request, and why.
    Explain(explain::Args),
    /// List and show operations, and decide about those whose outcome nobody knows.
    Operations(operations::Args),
    /// Go on after the store has lost what it had (`acknowledge`).
    Store(store::Args),
    /// List the senders that are known, or show what is known of one.
    Providers(providers::Args),
    /// Write a starting configuration.
    Init(init::Args),
    /// Write completions for a shell, or the man page.
    Completions(completions::Args),
}

/// Runs the program with these arguments. Exit codes: 0 done, 1 failed, 2 wrong usage or
/// configuration.
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let arguments = match Arguments::try_parse_from(arguments) {
        Ok(arguments) => arguments,
        Err(error) => return output::usage(&error),
    };
    // The HTTP client is built without a provider of cryptography and uses the one of the process.
    // A second call in one process fails and changes nothing.
    let _installed = rustls::crypto::ring::default_provider().install_default();
    let exit: Exit = match arguments.command {
        Command::Serve(args) => serve::run(&args),
        Command::Demo(args) => demo::run(&args),
        Command::Check(args) => check::run(&args),
        Command::Explain(args) => explain::run(&args),
        Command::Operations(args) => operations::run(&args),
        Command::Store(args) => store::run(&args),
        Command::Providers(args) => providers::run(&args),
        Command::Init(args) => init::run(&args),
        Command::Completions(args) => completions::run(&args, Arguments::command()),
    };
    print(&exit)
}
