//! `onceward operations resolve --all-of-route`: many at once, after a look at them.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::client::Client;
use super::error::Error;
use super::resolve::{Args, put};
use super::text::{self, plain, table};
use crate::cli::output::Ended;

/// What one call is about at most.
const LIMIT: usize = 500;

/// What was done, or would be.
#[derive(Debug, Default, Deserialize, Serialize)]
struct ManyDone {
    operations: Vec<Each>,
    done: usize,
    refused: usize,
    left: bool,
    next: Option<String>,
}

#[derive(Debug, Deserialize, Serialize)]
struct Each {
    operation: String,
    attempt: u32,
    created_at: String,
    result: String,
}

impl ManyDone {
    fn read(told: &Value) -> Result<Self, Error> {
        Self::deserialize(told).map_err(|_| Error::NotUnderstood)
    }

    /// Whether anything was done, and the store has failed for none.
    fn is_success(&self) -> bool {
        self.done > 0 && self.operations.iter().all(|each| each.result != "unknown")
    }
}

pub(super) async fn run(args: &Args, client: &Client, as_json: bool) -> Result<Ended, Error> {
    if !args.dry_run {
        args.decider.can_be_asked()?;
    }
    let found = look(args, client).await?;
    if args.dry_run || found.operations.is_empty() {
        let shown = if as_json { text::json(&found, true) } else { preview(args, &found) };
        return Ok(Ended::done(shown));
    }
    args.decider.agrees(&preview(args, &found))?;
    // no other ones than those that were shown
    let those = found.operations.iter();
    let those = those.map(|each| json!({ "operation": each.operation, "attempt": each.attempt }));
    let mut body = body(args, false);
    put(&mut body, "operations", Some(those.collect::<Vec<_>>()));
    let mut done = ManyDone::read(&client.resolve_many(body.into()).await?)?;
    done.left |= found.left;
    let status = u8::from(!done.is_success());
    let told = if as_json { text::json(&done, true) } else { report(args, &done) };
    Ok(Ended { status, ..Ended::done(told) })
}

/// Those that would be resolved, from as many pages as it takes.
async fn look(args: &Args, client: &Client) -> Result<ManyDone, Error> {
    let limit = args.limit.map_or(LIMIT, usize::from);
    let mut found = ManyDone::default();
    loop {
        let mut body = body(args, true);
        put(&mut body, "limit", Some(limit - found.operations.len()));
        put(&mut body, "cursor", found.next.take());
        let page = ManyDone::read(&client.resolve_many(body.into()).await?)?;
        found.operations.extend(page.operations);
        (found.left, found.next) = (page.left, page.next);
        if found.next.is_none() || found.operations.len() >= limit {
            return Ok(found);
        }
    }
}

fn body(args: &Args, dry_run: bool) -> Map<String, Value> {
    let mut body = args.decider.body();
    put(&mut body, "route", args.all_of_route.clone());
    put(&mut body, "state", args.state.clone());
    put(&mut body, "before", args.before.map(|before| before.to_string()));
    put(&mut body, "outcome", Some(&*args.outcome));
    put(&mut body, "reference", args.reference.clone());
    put(&mut body, "dry_run", Some(dry_run));
    body
}

fn preview(args: &Args, found: &ManyDone) -> String {
    if found.operations.is_empty() {
        return "no operations\n".to_owned();
    }
    let rows = found.operations.iter().map(|each| {
        vec![each.operation.clone(), each.attempt.to_string(), each.created_at.clone()]
    });
    let table = table(&["OPERATION", "ATTEMPT", "CREATED"], rows);
    let (count, outcome) = (counted(found.operations.len()), &args.outcome);
    let reason = plain(&args.decider.reason);
    let left = if found.left { "more are left for another time\n" } else { "" };
    let danger = match &**outcome {
        "failed" => "danger: what the receiver has done all the same, the next copies do again\n",
        _ => "",
    };
    format!("{table}\n{count} to be resolved as {outcome}\n{danger}{left}reason: {reason}\n")
}

fn report(args: &Args, done: &ManyDone) -> String {
    let changed = done.operations.iter().filter(|each| each.result != "done");
    let changed =
        changed.map(|each| format!("{}: {}\n", plain(&each.operation), plain(&each.result)));
    let (changed, count) = (changed.collect::<String>(), counted(done.done));
    let refused = match done.refused {
        0 => String::new(),
        refused => format!(", {refused} refused: changed since"),
    };
    let left = if done.left { "; more are left: try again" } else { "" };
    format!("{changed}{count} resolved as {}{refused}{left}\n", args.outcome)
}

fn counted(count: usize) -> String {
    if count == 1 { "1 operation".to_owned() } else { format!("{count} operations") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_a_failure_if_nothing_was_done_or_the_store_failed_for_one() {
        for (results, success) in [
            (&["done", "done"][..], true),
            (&["done", "refused"], true),
            (&["refused", "refused"], false),
            (&["done", "unknown"], false),
            (&["unknown"], false),
            (&[], false),
        ] {
            let word = |text: &str| text.to_owned();
            let each = results.iter().map(|result| Each {
                operation: word("op"),
                attempt: 1,
                created_at: word("now"),
                result: word(result),
            });
            let count = |word| results.iter().filter(|result| **result == word).count();
            let (done, refused) = (count("done"), count("refused"));
            let many =
                ManyDone { operations: each.collect(), done, refused, ..ManyDone::default() };
            assert_eq!(many.is_success(), success, "{results:?}");
        }
    }
}
