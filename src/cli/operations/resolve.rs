//! `onceward operations resolve`.

use super::client::Client;
use super::decider::Decider;
use super::error::Error;
use super::list::time;
use super::{summary, text};
use crate::admin::api::{Operation, Outcome, ResolvableState, Resolve};
use crate::operation::OperationId;

/// Say how an uncertain or failed operation ended
///
/// Resolved as succeeded, later copies get the answer given here, else the stored one if it is
/// complete and a success, else an empty 200. Resolved as failed, the next copy is a new attempt:
/// be sure that the upstream is not still working on the last one. An operation in flight is
/// refused.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  onceward operations resolve op_92b0ea2075b84f9d734df50ef6b6d935 \\
      --outcome succeeded --reason \"seen in the ledger\" --reference payment-7
  onceward operations resolve --all-of-route orders --state uncertain --before 1h \\
      --outcome succeeded --reason \"all are in the ledger\" --dry-run")]
pub(super) struct Args {
    /// The operation id, as in the header `Onceward-Operation`
    #[arg(value_name = "OPERATION", required_unless_present = "all_of_route")]
    pub(super) operation: Option<OperationId>,
    #[command(flatten)]
    pub(super) many: ManyArgs,
    /// How the operation ended
    #[arg(long)]
    pub(super) outcome: Outcome,
    /// The status that later copies get
    #[arg(long, value_name = "STATUS", conflicts_with = "all_of_route")]
    status: Option<u16>,
    /// The body that later copies get
    #[arg(long, value_name = "TEXT", conflicts_with = "all_of_route")]
    body: Option<String>,
    /// Where to find out more, such as the number of a payment: it is kept with the decision
    #[arg(long, value_name = "TEXT")]
    pub(super) reference: Option<String>,
    #[command(flatten)]
    pub(super) decider: Decider,
}

/// Which operations to resolve in place of one.
#[derive(Debug, clap::Args)]
pub(super) struct ManyArgs {
    /// Instead of one: all of this route that are in `--state` and were created before `--before`
    #[arg(long = "all-of-route", id = "all_of_route", value_name = "NAME")]
    #[arg(conflicts_with = "operation", requires_all = ["state", "before"])]
    pub(super) route: Option<String>,
    /// Of many: those in this state
    #[arg(long, requires = "all_of_route")]
    pub(super) state: Option<ResolvableState>,
    /// Of many: those created before this time, or so long ago
    #[arg(long, value_name = "TIME", requires = "all_of_route", value_parser = time)]
    pub(super) before: Option<jiff::Timestamp>,
    /// Of many: at most so many, the newest first
    #[arg(long, value_name = "N", requires = "all_of_route")]
    #[arg(value_parser = clap::value_parser!(u16).range(1..=500))]
    pub(super) limit: Option<u16>,
    /// Of many: only show which
    #[arg(long, requires = "all_of_route")]
    pub(super) dry_run: bool,
}

/// Resolves one operation.
pub(super) async fn run(
    args: &Args,
    id: OperationId,
    client: &Client,
    as_json: bool,
) -> Result<String, Error> {
    args.decider.check_can_agree()?;
    let operation = client.operation(id).await?;
    let attempt = summary::latest_attempt(&operation);
    // Without this check the operator would agree first and be refused by the process then.
    let state = match &*operation.state {
        "uncertain" => ResolvableState::Uncertain,
        "failed" => ResolvableState::Failed,
        _ => {
            let attempt = attempt.unwrap_or(0);
            return Err(Error::WrongState { state: operation.state, attempt });
        }
    };
    args.decider.agree(&preview(args, &operation))?;
    let resolve = Resolve {
        outcome: args.outcome,
        reason: args.decider.reason.clone(),
        reference: args.reference.clone(),
        by: args.decider.name(),
        // The attempt and the state that were shown: if a copy makes a new attempt while the
        // operator thinks, nothing is decided about it.
        attempt,
        state: Some(state),
        status: args.status,
        body: args.body.clone(),
    };
    let done = client.resolve(id, &resolve).await?;
    Ok(if as_json {
        text::json(&done, true)
    } else {
        format!("{id} is resolved as {}\n", args.outcome.as_str())
    })
}

fn preview(args: &Args, operation: &Operation) -> String {
    let state = text::plain(&summary::state(operation));
    let key = text::plain(&summary::key(operation));
    let outcome = args.outcome.as_str();
    let then = then(args, operation);
    let danger = match args.outcome {
        Outcome::Failed => format!("{}\n", summary::danger(operation)),
        Outcome::Succeeded => String::new(),
    };
    let reason = text::plain(&args.decider.reason);
    format!("{state}\nkey: {key}\nto be resolved as {outcome}: {then}\n{danger}reason: {reason}\n")
}

/// What later copies get.
fn then(args: &Args, operation: &Operation) -> String {
    match (args.outcome, args.status, &args.body) {
        (Outcome::Failed, _, _) => "the next copy is a new attempt".to_owned(),
        (Outcome::Succeeded, None, None) => match &operation.answer {
            Some(answer) if summary::would_be_replayed(answer) => {
                format!("later copies get the stored answer, status {}", answer.status)
            }
            Some(_) | None => "later copies get an empty 200".to_owned(),
        },
        (Outcome::Succeeded, status, body) => {
            let bytes = body.as_ref().map_or(0, String::len);
            format!("later copies get status {}, {bytes} bytes", status.unwrap_or(200))
        }
    }
}
