//! `onceward operations audit`: lists decisions.

use serde::Serialize;

use super::client::Client;
use super::error::Error;
use super::list::{self, Filter, Pages};
use super::text::{json, table};
use crate::admin::api::{Decision, OPERATOR, Operation};

/// How many operations are read for one report.
const OPERATIONS_MAX: usize = 100_000;

/// List what people decided, newest first
///
/// A decision is remembered as long as its operation. Of very many operations only the newest are
/// read; the last line of the JSON is then `{"older_not_looked_at":true}`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example: onceward operations audit --route stripe --json")]
pub(super) struct Args {
    #[command(flatten)]
    filter: Filter,
    /// Also list what policies such as `when_uncertain` decided
    #[arg(long)]
    policies: bool,
    /// The most decisions to list
    #[arg(long, value_name = "N", default_value_t = 50)]
    limit: usize,
}

/// A decision, and the operation that it is about.
#[derive(Debug, Serialize)]
struct Entry {
    at: String,
    operation: String,
    route: String,
    by: String,
    decision: String,
    reason: String,
    reference: Option<String>,
}

pub(super) async fn run(args: &Args, client: &Client, as_json: bool) -> Result<String, Error> {
    let mut pages = Pages::new(&args.filter, Some(OPERATIONS_MAX));
    let mut entries = Vec::new();
    while let Some(operations) = pages.next(client).await? {
        for json in &operations {
            entries.extend(entries_of(&list::operation(json)?, args.policies));
        }
        // Decisions beyond the limit are dropped at each page, so that memory stays bounded.
        keep_newest(&mut entries, args.limit);
    }
    Ok(if as_json { lines(&entries, pages.has_more()) } else { text(entries, pages.has_more()) })
}

/// Writes a line for each decision, and one more line if older operations were not read.
fn lines(entries: &[Entry], has_more: bool) -> String {
    let last = has_more.then(|| json(&serde_json::json!({ "older_not_looked_at": true }), false));
    entries.iter().map(|entry| json(entry, false)).chain(last).collect()
}

fn text(entries: Vec<Entry>, has_more: bool) -> String {
    let more = if has_more { "older operations were not looked at\n" } else { "" };
    if entries.is_empty() {
        return format!("no decisions\n{more}");
    }
    let header = ["AT", "OPERATION", "ROUTE", "BY", "DECISION", "REASON", "REFERENCE"];
    let rows = entries.into_iter().map(|entry| {
        let Entry { at, operation, route, by, decision, reason, reference } = entry;
        vec![at, operation, route, by, decision, reason, reference.unwrap_or_default()]
    });
    format!("{}{more}", table(&header, rows))
}

fn entries_of(operation: &Operation, policies: bool) -> impl Iterator<Item = Entry> {
    // The admin API writes `operator` or `operator: NAME`. A policy is named by its setting.
    let is_of_operator = |decision: &&Decision| {
        let rest = decision.by.strip_prefix(OPERATOR);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(':'))
    };
    let decisions = operation.decisions.iter();
    let decisions = decisions.filter(move |decision| policies || is_of_operator(decision));
    decisions.cloned().map(|decision| {
        let Decision { at, by, decision, reason, reference } = decision;
        let route = operation.route.clone();
        let operation = operation.operation.clone();
        Entry { at, operation, route, by, decision, reason, reference }
    })
}

fn keep_newest(entries: &mut Vec<Entry>, limit: usize) {
    let at = |entry: &Entry| entry.at.parse::<jiff::Timestamp>().unwrap_or_default();
    entries.sort_by_key(|entry| std::cmp::Reverse(at(entry)));
    entries.truncate(limit);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn people_and_programs_learn_that_older_operations_were_not_read() {
        let one = "{\"at\":\"a\",\"operation\":\"o\",\"route\":\"r\",\"by\":\"b\",\
                   \"decision\":\"d\",\"reason\":\"w\",\"reference\":null}\n";
        let word = |word: &str| word.to_owned();
        let entry = || Entry {
            at: word("a"),
            operation: word("o"),
            route: word("r"),
            by: word("b"),
            decision: word("d"),
            reason: word("w"),
            reference: None,
        };
        assert_eq!(lines(&[entry()], false), one);
        assert_eq!(lines(&[entry()], true), format!("{one}{{\"older_not_looked_at\":true}}\n"));
        assert!(text(vec![entry()], true).ends_with("\nolder operations were not looked at\n"));
        assert_eq!(text(vec![], false), "no decisions\n");
    }
}
