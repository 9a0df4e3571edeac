//! `onceward store`: tells a running process something about its store, through the admin API.

use clap::Subcommand;

use super::operations::{Client, Connection, Error, json, name};
use super::output::{self, Exit};
use crate::admin::api;

/// Go on after the store has lost what it had
///
/// Asked for through the admin API of a running process. Its token, where it asks for one, comes
/// from `ONCEWARD_ADMIN_TOKEN` or from a file.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example: onceward store acknowledge")]
pub(super) struct Args {
    #[command(flatten)]
    connection: Connection,
    /// Print JSON
    #[arg(long, global = true, display_order = 100)]
    json: bool,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Go on after the store came back empty
    ///
    /// With `when_store_emptied = "stop"` nothing new is forwarded until then. What the store had
    /// is lost: events that were done run again if their senders send them again. All processes on
    /// the store go on with their next event.
    #[command(after_help = "Example: onceward store acknowledge --yes")]
    Acknowledge(Acknowledge),
}

#[derive(Debug, clap::Args)]
struct Acknowledge {
    /// Who acknowledges: it is written into the log [default: $USER]
    #[arg(long, value_name = "NAME")]
    by: Option<String>,
    /// Go on without a question
    #[arg(long, short)]
    yes: bool,
}

const QUESTION: &str = "what the store had is lost: events that were done run again if they are sent \
    again\nGo on? [y/N] ";

pub(super) fn run(args: &Args) -> Exit {
    let Command::Acknowledge(asked) = &args.command;
    match acknowledge(args, asked) {
        Ok(answer) => Exit::done(answer),
        Err(error) => error.into(),
    }
}

fn acknowledge(args: &Args, asked: &Acknowledge) -> Result<String, Error> {
    if !asked.yes && !output::can_ask() {
        return Err(Error::CannotAsk);
    }
    let client = Client::open(&args.connection)?;
    if !asked.yes && !output::ask(QUESTION) {
        return Err(Error::Declined);
    }
    let body = api::Acknowledge { by: name(asked.by.as_ref()) };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(Error::Runtime)?;
    let answer = runtime.block_on(client.acknowledge(&body))?;
    if args.json {
        return Ok(json(&answer, true));
    }
    Ok(if answer.acknowledged {
        "acknowledged: claims are granted again\n".to_owned()
    } else {
        "the store has lost nothing: there is nothing to acknowledge\n".to_owned()
    })
}
