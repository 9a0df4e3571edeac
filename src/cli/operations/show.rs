//! `onceward operations show`.

use std::fmt::Write as _;

use super::client::Client;
use super::error::Error;
use super::summary;
use super::text::{json, plain, table};
use crate::admin::api::{Attempt, Decision, Operation, Step};
use crate::operation::OperationId;

/// Show one operation, with its attempts and decisions
#[derive(Debug, clap::Args)]
#[command(after_help = "Example: onceward operations show op_92b0ea2075b84f9d734df50ef6b6d935")]
pub(super) struct Args {
    /// The operation id, as in the header `Onceward-Operation` of the answer to the sender
    #[arg(value_name = "OPERATION")]
    operation: OperationId,
}

pub(super) async fn run(args: &Args, client: &Client, as_json: bool) -> Result<String, Error> {
    if as_json {
        return Ok(json(&client.show(args.operation).await?, true));
    }
    Ok(text(&client.operation(args.operation).await?))
}

fn text(operation: &Operation) -> String {
    let mut text = String::new();
    let mut line = |name: &str, value: &str| {
        // Writing to a string does not fail.
        let _written = writeln!(text, "{name:<13}{}", plain(value));
    };
    line("operation", &operation.operation);
    line("state", &summary::state_name(operation));
    line("route", &operation.route);
    line("request", &format!("{} {}", operation.method, operation.path));
    line("key", &format!("{}: {}", operation.key.from.as_str(), quoted(&operation.key.parts)));
    line("fingerprint", operation.fingerprint.as_deref().unwrap_or("none"));
    line("created", &operation.created_at);
    if let Some(settled_at) = &operation.settled_at {
        line("settled", settled_at);
    }
    line(
        if operation.state == "in_flight" { "lease until" } else { "kept until" },
        &operation.expires_at,
    );
    if let Some(lease) = &operation.lease {
        line("held by", &lease.holder);
        line("ends at", &lease.ends_at);
    }
    if let Some(answer) = &operation.answer {
        let body = if answer.body_omitted {
            "its body was not kept".to_owned()
        } else {
            format!("{} bytes", answer.body_bytes)
        };
        line("answer", &format!("{}, {body}", answer.status));
    }
    text.push_str(&steps(&operation.steps));
    text.push_str(&attempts(operation));
    text.push_str(&decisions(&operation.decisions));
    text
}

/// Writes the parts of a key in quotes. The process has quoted a part already if it could be
/// mistaken for something else, such as a text that looks like a number.
fn quoted(parts: &[String]) -> String {
    let quoted = |part: &String| {
        if part.starts_with('"') { part.clone() } else { format!("\"{part}\"") }
    };
    parts.iter().map(quoted).collect::<Vec<_>>().join(" ")
}

/// Lists the steps. An upstream knows its step by the step's own operation id.
fn steps(steps: &[Step]) -> String {
    if steps.is_empty() {
        return String::new();
    }
    let row = |step: &Step| vec![step.name.clone(), step.state.clone(), step.operation.clone()];
    format!("\nsteps:\n{}", table(&["STEP", "STATE", "ITS OPERATION"], steps.iter().map(row)))
}

fn attempts(operation: &Operation) -> String {
    let kept = operation.attempts.len();
    let total = operation.attempts_total;
    let count = if kept == total as usize {
        format!("{total} in all")
    } else {
        format!("{total} in all, {kept} are kept")
    };
    // A column that would be empty for every attempt is left out.
    let has = |of: fn(&Attempt) -> &Option<String>| {
        operation.attempts.iter().any(|one| of(one).is_some())
    };
    let some: Vec<&Column> = OPTIONAL.iter().filter(|column| has(column.of)).collect();
    let mut header = vec!["ATTEMPT", "STARTED", "ENDED", "SENT", "OUTCOME", "REASON", "STATUS"];
    header.extend(some.iter().map(|column| column.name));
    header.push("HOLDER");
    let rows = operation.attempts.iter().map(|one| attempt(one, &some));
    format!("\nattempts: {count}\n{}", table(&header, rows))
}

/// A column that some attempts have a value for.
struct Column {
    name: &'static str,
    of: fn(&Attempt) -> &Option<String>,
}

const OPTIONAL: [Column; 3] = [
    Column { name: "STEP", of: |attempt| &attempt.step },
    Column { name: "REFERENCE", of: |attempt| &attempt.reference },
    Column { name: "KEY IN", of: |attempt| &attempt.forward_key },
];

fn attempt(attempt: &Attempt, some: &[&Column]) -> Vec<String> {
    let sent = match attempt.sent {
        Some(true) => "yes",
        Some(false) => "no",
        None => "unknown",
    };
    let mut row = vec![
        attempt.number.to_string(),
        attempt.started_at.clone(),
        attempt.ended_at.clone().unwrap_or_default(),
        sent.to_owned(),
        attempt.outcome.clone().unwrap_or_default(),
        attempt.reason.clone().unwrap_or_default(),
        attempt.status.map(|status| status.to_string()).unwrap_or_default(),
    ];
    row.extend(some.iter().map(|column| (column.of)(attempt).clone().unwrap_or_default()));
    row.push(attempt.holder.clone());
    row
}

fn decisions(decisions: &[Decision]) -> String {
    if decisions.is_empty() {
        return "\ndecisions: none\n".to_owned();
    }
    let header = ["AT", "BY", "DECISION", "REASON", "REFERENCE"];
    let rows = decisions.iter().map(|decision| {
        let reference = decision.reference.clone().unwrap_or_default();
        let Decision { at, by, decision, reason, .. } = decision.clone();
        vec![at, by, decision, reason, reference]
    });
    format!("\ndecisions:\n{}", table(&header, rows))
}
