//! `onceward operations audit`: who decided what.

use serde::Serialize;

use super::client::Client;
use super::error::Error;
use super::list::{Filter, Pages};
use super::shown::{Decision, Shown};
use super::text::{json, table};

/// Operations that are looked at for one report.
const OPERATIONS_MAX: usize = 100_000;
/// Who decides through the admin API, alone or followed by a name.
const OPERATOR: &str = "operator";

/// List what people decided, newest first
///
/// Decisions are remembered as long as their operations. Of a list that is too long the newest
/// operations are looked at; then the last line of the JSON is `{"older_not_looked_at":true}`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example: onceward operations audit --route stripe --json")]
pub(super) struct Args {
    #[command(flatten)]
    filter: Filter,
    /// What policies such as `when_uncertain` decided, too
    #[arg(long)]
    policies: bool,
    /// At most so many
    #[arg(long, value_name = "N", default_value_t = 50)]
    limit: usize,
}

/// A decision, and what it is about.
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
        for told in &operations {
            entries.extend(of(&Shown::read(told)?, args.policies));
        }
        // so that memory stays bounded
        newest(&mut entries, args.limit);
    }
    Ok(if as_json { lines(&entries, pages.has_more()) } else { text(entries, pages.has_more()) })
}

/// A line for each decision, and one more if older operations were not looked at.
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

fn of(shown: &Shown, policies: bool) -> impl Iterator<Item = Entry> {
    let is_of_a_person = |decision: &&Decision| {
        let rest = decision.by.strip_prefix(OPERATOR);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(':'))
    };
    let decisions = shown.decisions.iter().filter(move |found| policies || is_of_a_person(found));
    decisions.cloned().map(|decision| {
        let Decision { at, by, kind: decision, reason, reference } = decision;
        let (operation, route) = (shown.operation.clone(), shown.route.clone());
        Entry { at, operation, route, by, decision, reason, reference }
    })
}

fn newest(entries: &mut Vec<Entry>, limit: usize) {
    let at = |entry: &Entry| entry.at.parse::<jiff::Timestamp>().unwrap_or_default();
    entries.sort_by_key(|entry| std::cmp::Reverse(at(entry)));
    entries.truncate(limit);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_looked_at_is_said_to_people_and_programs() {
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
