//! `onceward operations forget`.

use super::client::Client;
use super::error::Error;
use super::resolve::Decider;
use super::shown::Shown;
use super::text::{json, plain};
use crate::operation::OperationId;

/// Take an operation back: its next copy runs again, whatever it asks for
///
/// The attempts and decisions stay in the record. An operation in flight is refused.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example: onceward operations forget op_92b0ea2075b84f9d734df50ef6b6d935 \\
      --reason \"the order was entered by mistake\"")]
pub(super) struct Args {
    /// Its id, as `Onceward-Operation` says it
    #[arg(value_name = "OPERATION")]
    operation: OperationId,
    #[command(flatten)]
    decider: Decider,
}

pub(super) async fn run(args: &Args, client: &Client, as_json: bool) -> Result<String, Error> {
    args.decider.can_be_asked()?;
    let shown = Shown::read(&client.show(args.operation).await?)?;
    if shown.state == "in_flight" {
        let attempt = shown.latest().unwrap_or(0);
        return Err(Error::Stands { state: shown.state, attempt });
    }
    args.decider.agrees(&preview(args, &shown))?;
    let done = client.forget(args.operation, args.decider.body().into()).await?;
    let id = args.operation;
    Ok(if as_json { json(&done, true) } else { format!("{id} is forgotten\n") })
}

fn preview(args: &Args, shown: &Shown) -> String {
    let (standing, reason) = (plain(&shown.standing()), plain(&args.decider.reason));
    let (key, danger) = (plain(&shown.key()), shown.danger());
    format!(
        "{standing}\nkey: {key}\nto be forgotten: the next copy is a new attempt\n{danger}\n\
         reason: {reason}\n"
    )
}
