//! What the operator types.

mod check;
mod completions;
mod demo;
mod explain;
mod init;
mod operations;
mod output;
mod providers;
mod serve;
mod store;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use output::print;

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
    /// See it work: a sample receiver, the proxy, and what becomes of duplicates.
    Demo(demo::Args),
    /// Find all problems and risks of a configuration, without starting.
    Check(check::Args),
    /// Show what a captured request would be taken for, and why.
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
    // Fails only if there is one already, which is then the one that was wanted.
    let _there_is_one = rustls::crypto::ring::default_provider().install_default();
    let ended = match arguments.command {
        Command::Serve(args) => serve::run(&args),
        Command::Demo(args) => demo::run(&args),
        Command::Check(args) => check::run(&args),
        Command::Explain(args) => explain::run(&args),
        Command::Operations(args) => operations::run(&args),
        Command::Store(args) => store::run(&args),
        Command::Providers(args) => providers::run(&args),
        Command::Init(args) => init::run(&args),
        Command::Completions(args) => completions::run(&args),
    };
    print(&ended)
}
