//! `onceward operations`: shows operations and decides about them, through the admin API of a
//! running process.

mod audit;
mod client;
mod decider;
mod error;
mod forget;
mod list;
mod resolve;
mod resolve_many;
mod show;
mod summary;
mod text;

use clap::Subcommand;

use super::output::Exit;
pub(super) use client::{Client, Connection};
pub(super) use decider::name;
pub(super) use error::Error;
pub(super) use text::json;

/// List and show operations, and decide about those whose outcome nobody knows
///
/// Through the admin API of a running process. Its token, where it asks for one, comes from
/// `ONCEWARD_ADMIN_TOKEN` or from a file.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  onceward operations list --state uncertain
  onceward operations show op_92b0ea2075b84f9d734df50ef6b6d935
  onceward operations resolve op_92b0ea2075b84f9d734df50ef6b6d935 \\
      --outcome succeeded --reason \"seen in the ledger\"")]
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
    /// List operations, newest first.
    List(list::Args),
    /// Show one operation, with its attempts and decisions.
    Show(show::Args),
    /// Say how an uncertain or failed operation ended, or many of them.
    Resolve(resolve::Args),
    /// Forget an operation: its next copy runs again.
    Forget(forget::Args),
    /// List what people decided, newest first.
    Audit(audit::Args),
}

pub(super) fn run(args: &Args) -> Exit {
    match try_run(args) {
        Ok(ended) => ended,
        Err(error) => error.into(),
    }
}

fn try_run(args: &Args) -> Result<Exit, Error> {
    let client = Client::open(&args.connection)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(Error::Runtime)?;
    let mut ended = runtime.block_on(run_with(args, &client)).unwrap_or_else(Exit::from);
    ended.stderr.push_str(client.warning());
    Ok(ended)
}

async fn run_with(args: &Args, client: &Client) -> Result<Exit, Error> {
    let text = match &args.command {
        Command::List(list) => list::run(list, client, args.json).await,
        Command::Show(show) => show::run(show, client, args.json).await,
        Command::Resolve(resolve) => match resolve.operation {
            Some(id) => resolve::run(resolve, id, client, args.json).await,
            None => return resolve_many::run(resolve, client, args.json).await,
        },
        Command::Forget(forget) => forget::run(forget, client, args.json).await,
        Command::Audit(audit) => audit::run(audit, client, args.json).await,
    };
    text.map(Exit::done)
}
