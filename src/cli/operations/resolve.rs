//! `onceward operations resolve`.

use serde_json::{Map, Value};

use super::client::Client;
use super::error::Error;
use super::list::time;
use super::shown::Shown;
use super::{many, text};
use crate::cli::output::{self, Ended};
use crate::operation::OperationId;

/// Say how an uncertain or failed operation ended
///
/// Resolved as succeeded, later copies get the answer given here, else the stored one if it is
/// complete and a success, else an empty 200. Resolved as failed, the next copy is a new attempt:
/// be sure that the receiver is not still working on the last one. An operation in flight is
/// refused.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  onceward operations resolve op_92b0ea2075b84f9d734df50ef6b6d935 \\
      --outcome succeeded --reason \"seen in the ledger\" --reference payment-7
  onceward operations resolve --all-of-route orders --state uncertain --before 1h \\
      --outcome succeeded --reason \"all are in the ledger\" --dry-run")]
pub(super) struct Args {
    /// Its id, as `Onceward-Operation` says it
    #[arg(value_name = "OPERATION", required_unless_present = "all_of_route")]
    operation: Option<OperationId>,
    /// Instead of one: all of this route that are in `--state` and were created before `--before`
    #[arg(long, value_name = "NAME", conflicts_with = "operation")]
    #[arg(requires_all = ["state", "before"])]
    pub(super) all_of_route: Option<String>,
    /// Of many: those in this state
    #[arg(long, requires = "all_of_route", value_parser = ["uncertain", "failed"])]
    pub(super) state: Option<String>,
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
    /// How it ended
    #[arg(long, value_parser = ["succeeded", "failed"])]
    pub(super) outcome: String,
    /// The status that later copies get
    #[arg(long, value_name = "STATUS", conflicts_with = "all_of_route")]
    status: Option<u16>,
    /// The body that later copies get
    #[arg(long, value_name = "TEXT", conflicts_with = "all_of_route")]
    body: Option<String>,
    /// Something to find it by elsewhere, such as a payment's number
    #[arg(long, value_name = "TEXT")]
    pub(super) reference: Option<String>,
    #[command(flatten)]
    pub(super) decider: Decider,
}

/// Who decides, and why.
#[derive(Debug, clap::Args)]
pub(super) struct Decider {
    /// Why: it is kept with the decision
    #[arg(long, value_name = "TEXT")]
    pub(super) reason: String,
    /// Who decides: it is kept with the decision
    #[arg(long, value_name = "NAME", env = "USER", hide_env_values = true)]
    by: Option<String>,
    /// Go on without a question
    #[arg(long, short)]
    yes: bool,
}

impl Decider {
    /// Whether there will be an answer, which is looked at before anything is called: it was given
    /// before, or there is a terminal to ask on.
    pub(super) fn can_be_asked(&self) -> Result<(), Error> {
        if self.yes || output::can_ask() { Ok(()) } else { Err(Error::CannotAsk) }
    }

    /// Asks on the terminal whether to do what is said, unless the answer was given before.
    pub(super) fn agrees(&self, to: &str) -> Result<(), Error> {
        if self.yes || output::ask(&format!("{to}Go on? [y/N] ")) {
            Ok(())
        } else {
            Err(Error::Declined)
        }
    }

    /// The members that every decision has.
    pub(super) fn body(&self) -> Map<String, Value> {
        let mut body = Map::new();
        body.insert("reason".to_owned(), self.reason.clone().into());
        let by = self.by.clone().filter(|by| !by.trim().is_empty());
        put(&mut body, "by", by);
        body
    }
}

/// Adds a member, if there is one.
pub(super) fn put(body: &mut Map<String, Value>, name: &str, value: Option<impl Into<Value>>) {
    if let Some(value) = value {
        body.insert(name.to_owned(), value.into());
    }
}

pub(super) async fn run(args: &Args, client: &Client, as_json: bool) -> Result<Ended, Error> {
    let Some(id) = args.operation else { return many::run(args, client, as_json).await };
    args.decider.can_be_asked()?;
    let shown = Shown::read(&client.show(id).await?)?;
    let attempt = shown.latest();
    if !matches!(&*shown.state, "uncertain" | "failed") {
        return Err(Error::Stands { state: shown.state, attempt: attempt.unwrap_or(0) });
    }
    args.decider.agrees(&preview(args, &shown))?;
    let mut body = args.decider.body();
    put(&mut body, "outcome", Some(&*args.outcome));
    put(&mut body, "reference", args.reference.clone());
    put(&mut body, "status", args.status);
    put(&mut body, "body", args.body.clone());
    // what was shown, so that nothing else is decided about
    put(&mut body, "attempt", attempt);
    put(&mut body, "state", Some(&*shown.state));
    let done = client.resolve(id, body.into()).await?;
    Ok(Ended::done(if as_json {
        text::json(&done, true)
    } else {
        format!("{id} is resolved as {}\n", args.outcome)
    }))
}

fn preview(args: &Args, shown: &Shown) -> String {
    let standing = text::plain(&shown.standing());
    let then = match (&*args.outcome, args.status, &args.body) {
        ("failed", _, _) => "the next copy is a new attempt".to_owned(),
        (_, None, None) => match &shown.answer {
            Some(answer) if answer.would_be_replayed() => {
                format!("later copies get the stored answer, status {}", answer.status)
            }
            Some(_) | None => "later copies get an empty 200".to_owned(),
        },
        (_, status, body) => {
            let bytes = body.as_ref().map_or(0, String::len);
            format!("later copies get status {}, {bytes} bytes", status.unwrap_or(200))
        }
    };
    let reason = text::plain(&args.decider.reason);
    let key = text::plain(&shown.key());
    let danger = match &*args.outcome {
        "failed" => format!("{}\n", shown.danger()),
        _ => String::new(),
    };
    format!(
        "{standing}\nkey: {key}\nto be resolved as {}: {then}\n{danger}reason: {reason}\n",
        args.outcome
    )
}
