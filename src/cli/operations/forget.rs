//! `onceward operations forget`.

use super::client::Client;
use super::decider::Decider;
use super::error::Error;
use super::summary;
use super::text::{json, plain};
use crate::admin::api::{Forget, Operation};
use crate::operation::OperationId;

/// Forget an operation: its next copy runs again, whatever it asks for
///
/// The attempts and decisions stay in the record. An operation in flight is refused.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example: onceward operations forget op_92b0ea2075b84f9d734df50ef6b6d935 \\
      --reason \"the order was entered by mistake\"")]
pub(super) struct Args {
    /// The operation id, as in the header `Onceward-Operation`
    #[arg(value_name = "OPERATION")]
    operation: OperationId,
    #[command(flatten)]
    decider: Decider,
}

pub(super) async fn run(args: &Args, client: &Client, as_json: bool) -> Result<String, Error> {
    args.decider.check_can_agree()?;
    let operation = client.operation(args.operation).await?;
    // Without this check the operator would agree first and be refused by the process then.
    if operation.state == "in_flight" {
        let attempt = summary::latest_attempt(&operation).unwrap_or(0);
        return Err(Error::WrongState { state: operation.state, attempt });
    }
    args.decider.agree(&preview(args, &operation))?;
    let forget = Forget { reason: args.decider.reason.clone(), by: args.decider.name() };
    let done = client.forget(args.operation, &forget).await?;
    let id = args.operation;
    Ok(if as_json { json(&done, true) } else { format!("{id} is forgotten\n") })
}

fn preview(args: &Args, operation: &Operation) -> String {
    let state = plain(&summary::state(operation));
    let key = plain(&summary::key(operation));
    let danger = summary::danger(operation);
    let reason = plain(&args.decider.reason);
    format!(
        "{state}\nkey: {key}\nto be forgotten: the next copy is a new attempt\n{danger}\n\
         reason: {reason}\n"
    )
}
