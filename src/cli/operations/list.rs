//! `onceward operations list`.

use clap::builder::{PossibleValue, PossibleValuesParser};
use serde::Deserialize as _;
use serde_json::Value;

use super::client::Client;
use super::error::Error;
use super::summary;
use super::text::{json, more_rows, table};
use crate::admin::api::Operation;
use crate::cli::output::say;
use crate::clock::Clock;
use crate::operation::StateName;

/// The most operations on one page of the admin API.
const PAGE: usize = 500;

/// List operations, newest first
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  onceward operations list --state uncertain --before 1h
  onceward operations list --route stripe --all --json
  onceward operations list --key evt_1NG8Du2eZvKYlo2CUI79vXWy")]
pub(super) struct Args {
    #[command(flatten)]
    filter: Filter,
    /// The most operations to list
    #[arg(long, value_name = "N", default_value_t = 50, conflicts_with = "all")]
    #[arg(value_parser = at_least_one)]
    limit: usize,
    /// List all of them
    #[arg(long)]
    all: bool,
}

/// Which operations to list.
#[derive(Debug, clap::Args)]
pub(super) struct Filter {
    /// Only operations of this route
    #[arg(long, value_name = "NAME")]
    pub(super) route: Option<String>,
    /// Only operations in this state
    #[arg(long)]
    #[arg(value_parser = states())]
    pub(super) state: Option<String>,
    /// Only operations with exactly this key: the value of a key header, an event's id, or a body's
    /// digest
    #[arg(long, value_name = "KEY")]
    pub(super) key: Option<String>,
    /// Only operations created before this time, or so long ago: `2026-11-29T12:00:00Z`, `90m`,
    /// `48h`
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub(super) before: Option<jiff::Timestamp>,
}

/// The names of the states. Headers of answers say `in-flight`, so that is understood too.
fn states() -> PossibleValuesParser {
    let value = |state: StateName| {
        let value = PossibleValue::new(state.as_str());
        if state == StateName::InFlight { value.alias("in-flight") } else { value }
    };
    PossibleValuesParser::new(StateName::ALL.map(value))
}

fn at_least_one(text: &str) -> Result<usize, String> {
    let number = text.parse().ok().filter(|number| *number > 0);
    number.ok_or_else(|| "expected a number of at least 1".to_owned())
}

/// Reads a point in time, or a duration that says how long ago it was.
pub(super) fn time(text: &str) -> Result<jiff::Timestamp, String> {
    let expected = || "expected a time such as `2026-11-29T12:00:00Z`, or `48h` for so long ago";
    if let Ok(time) = text.parse() {
        return Ok(time);
    }
    // `48h` is easier to type than the time of 48 hours ago, and a script needs no calendar for it.
    let ago: jiff::SignedDuration = text.parse().map_err(|_| expected())?;
    let now = i64::try_from(Clock::system().wall().0).unwrap_or(i64::MAX);
    let now = jiff::Timestamp::from_millisecond(now).map_err(|_| expected())?;
    now.checked_sub(ago).map_err(|_| expected().to_owned())
}

const HEADER: [&str; 6] = ["OPERATION", "ROUTE", "STATE", "ATTEMPTS", "CREATED", "KEY"];

pub(super) async fn run(args: &Args, client: &Client, as_json: bool) -> Result<String, Error> {
    let mut pages = Pages::new(&args.filter, (!args.all).then_some(args.limit));
    let mut is_empty = true;
    while let Some(operations) = pages.next(client).await? {
        let text = if as_json {
            operations.iter().map(|operation| json(operation, false)).collect()
        } else {
            let rows: Vec<_> = operations.iter().map(row).collect::<Result<_, _>>()?;
            if is_empty && !rows.is_empty() { table(&HEADER, rows) } else { more_rows(rows) }
        };
        is_empty &= operations.is_empty();
        // Printed page by page, so that a list of any length needs the memory of one page. Nobody
        // reads any more if `head`, say, has seen enough.
        if !say(&text) {
            return Ok(String::new());
        }
    }
    let last_line = match (is_empty, pages.has_more()) {
        (true, false) => "no operations\n",
        (_, true) => "there are more: `--limit N` or `--all`\n",
        (false, false) => "",
    };
    Ok(if as_json { String::new() } else { last_line.to_owned() })
}

fn row(json: &Value) -> Result<Vec<String>, Error> {
    let operation = operation(json)?;
    let attempts = operation.attempts_total.to_string();
    let key = summary::short_key(&operation.key);
    let state = summary::state_name(&operation);
    let Operation { operation, route, created_at, .. } = operation;
    Ok(vec![operation, route, state, attempts, created_at, key])
}

/// Reads an operation of a page.
pub(super) fn operation(json: &Value) -> Result<Operation, Error> {
    Operation::deserialize(json).map_err(|_| Error::NotUnderstood)
}

/// A list that is read page by page.
#[derive(Debug)]
pub(super) struct Pages {
    query: Vec<(&'static str, String)>,
    cursor: Option<String>,
    /// How many operations are still wanted. None if there is no limit.
    left: Option<usize>,
    has_begun: bool,
    has_ended: bool,
}

impl Pages {
    pub(super) fn new(filter: &Filter, limit: Option<usize>) -> Self {
        let mut query = Vec::new();
        query.extend(filter.route.clone().map(|route| ("route", route)));
        query.extend(filter.state.clone().map(|state| ("state", state)));
        query.extend(filter.key.clone().map(|key| ("key", key)));
        query.extend(filter.before.map(|before| ("before", before.to_string())));
        Self { query, cursor: None, left: limit, has_begun: false, has_ended: false }
    }

    /// Whether there are more operations than the limit.
    pub(super) fn has_more(&self) -> bool {
        self.cursor.is_some()
    }

    /// Reads the next page: its operations as JSON, or none after the last page. A page may be
    /// empty and still have a next one.
    pub(super) async fn next(&mut self, client: &Client) -> Result<Option<Vec<Value>>, Error> {
        if self.has_ended {
            return Ok(None);
        }
        let limit = self.left.unwrap_or(PAGE).min(PAGE).to_string();
        let mut query: Vec<_> = self.query.iter().map(|(name, value)| (*name, &**value)).collect();
        query.push(("limit", &limit));
        query.extend(self.cursor.as_deref().map(|cursor| ("cursor", cursor)));
        let page = client.list(&query).await?;
        // Only an empty list means that the route has no operations: a page may be empty and have a
        // next one.
        if let Some(routes) = page.routes.filter(|_| page.next.is_none() && !self.has_begun) {
            return Err(Error::NoRoute(routes));
        }
        self.has_begun = true;
        self.left = self.left.map(|left| left.saturating_sub(page.operations.len()));
        self.has_ended = page.next.is_none() || self.left == Some(0);
        self.cursor = page.next;
        Ok(Some(page.operations))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_a_point_or_so_long_ago() {
        assert_eq!(time("2026-11-29T12:00:00Z").unwrap().to_string(), "2026-11-29T12:00:00Z");
        assert_eq!(time("2026-11-29T12:00:00+02:00").unwrap().to_string(), "2026-11-29T10:00:00Z");
        // The clock goes on between the two readings, so that the earlier point is read first.
        let earlier = time("48h").unwrap();
        let now = time("0s").unwrap();
        assert_eq!(now.duration_since(earlier).as_hours(), 48);
        for text in ["", "yesterday", "48", "2026-11-29"] {
            assert!(time(text).is_err(), "{text}");
        }
    }
}
