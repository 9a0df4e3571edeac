//! `onceward operations list`.

use super::client::Client;
use super::error::Error;
use super::shown::{Page, Shown};
use super::text::{json, more_rows, table};
use crate::cli::output::say;
use crate::clock::Clock;

/// What one page holds at most.
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
    /// At most so many
    #[arg(long, value_name = "N", default_value_t = 50, conflicts_with = "all")]
    #[arg(value_parser = at_least_one)]
    limit: usize,
    /// All there are
    #[arg(long)]
    all: bool,
}

/// Which operations.
#[derive(Debug, clap::Args)]
pub(super) struct Filter {
    /// Those of this route
    #[arg(long, value_name = "NAME")]
    pub(super) route: Option<String>,
    /// Those in this state
    #[arg(long)]
    #[arg(value_parser = ["in_flight", "uncertain", "succeeded", "failed", "forgotten"])]
    pub(super) state: Option<String>,
    /// Those with exactly this key: the value of a key header, an event's id, or a body's digest
    #[arg(long, value_name = "KEY")]
    pub(super) key: Option<String>,
    /// Those created before this time, or so long ago: `2026-11-29T12:00:00Z`, `90m`, `48h`
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub(super) before: Option<jiff::Timestamp>,
}

fn at_least_one(text: &str) -> Result<usize, String> {
    let number = text.parse().ok().filter(|number| *number > 0);
    number.ok_or_else(|| "expected a number of at least 1".to_owned())
}

/// A point in time, or how long ago it was.
pub(super) fn time(text: &str) -> Result<jiff::Timestamp, String> {
    let expected = || "expected a time such as `2026-11-29T12:00:00Z`, or `48h` for so long ago";
    if let Ok(time) = text.parse() {
        return Ok(time);
    }
    let ago: jiff::SignedDuration = text.parse().map_err(|_| expected())?;
    let now = i64::try_from(Clock::system().wall().0).unwrap_or(i64::MAX);
    let now = jiff::Timestamp::from_millisecond(now).map_err(|_| expected())?;
    now.checked_sub(ago).map_err(|_| expected().to_owned())
}

/// `show` has the whole key.
const KEY_CHARS_MAX: usize = 80;
const HEADER: [&str; 6] = ["OPERATION", "ROUTE", "STATE", "ATTEMPTS", "CREATED", "KEY"];

pub(super) async fn run(args: &Args, client: &Client, as_json: bool) -> Result<String, Error> {
    let mut pages = Pages::new(&args.filter, (!args.all).then_some(args.limit));
    let mut first = true;
    while let Some(operations) = pages.next(client).await? {
        let text = if as_json {
            operations.iter().map(|told| json(told, false)).collect()
        } else {
            let rows = operations.iter().map(|told| Shown::read(told).map(|shown| row(&shown)));
            let rows = rows.collect::<Result<Vec<_>, _>>()?;
            if first && !rows.is_empty() { table(&HEADER, rows) } else { more_rows(rows) }
        };
        first &= operations.is_empty();
        // page by page, so that a list of any length needs no more than a page of memory
        if !say(&text) {
            return Ok(String::new());
        }
    }
    let last_words = match (first, pages.has_more()) {
        (true, false) => "no operations\n",
        (_, true) => "there are more: `--limit N` or `--all`\n",
        (false, false) => "",
    };
    Ok(if as_json { String::new() } else { last_words.to_owned() })
}

fn row(shown: &Shown) -> Vec<String> {
    let attempts = shown.attempts_total.to_string();
    let (operation, route) = (shown.operation.clone(), shown.route.clone());
    let key = shown.key.parts.join(" ");
    let short: String = key.chars().take(KEY_CHARS_MAX).collect();
    let key = if short == key { key } else { format!("{short}...") };
    vec![operation, route, shown.state.clone(), attempts, shown.created_at.clone(), key]
}

/// A list, page by page.
#[derive(Debug)]
pub(super) struct Pages {
    query: Vec<(&'static str, String)>,
    cursor: Option<String>,
    left: Option<usize>,
    begun: bool,
    ended: bool,
}

impl Pages {
    pub(super) fn new(filter: &Filter, limit: Option<usize>) -> Self {
        let mut query = Vec::new();
        query.extend(filter.route.clone().map(|route| ("route", route)));
        query.extend(filter.state.clone().map(|state| ("state", state)));
        query.extend(filter.key.clone().map(|key| ("key", key)));
        query.extend(filter.before.map(|before| ("before", before.to_string())));
        Self { query, cursor: None, left: limit, begun: false, ended: false }
    }

    /// Whether the limit has cut it off.
    pub(super) fn has_more(&self) -> bool {
        self.cursor.is_some()
    }

    /// The next operations, as they were told; it may be none of them, and there are more.
    pub(super) async fn next(
        &mut self,
        client: &Client,
    ) -> Result<Option<Vec<serde_json::Value>>, Error> {
        if self.ended {
            return Ok(None);
        }
        let limit = self.left.unwrap_or(PAGE).min(PAGE).to_string();
        let mut query: Vec<_> = self.query.iter().map(|(name, value)| (*name, &**value)).collect();
        query.push(("limit", &limit));
        query.extend(self.cursor.as_deref().map(|cursor| ("cursor", cursor)));
        let told = client.list(&query).await?;
        let page: Page = serde_json::from_value(told).map_err(|_| Error::NotUnderstood)?;
        if let Some(routes) = page.routes.filter(|_| page.next.is_none() && !self.begun) {
            return Err(Error::NoRoute(routes));
        }
        self.begun = true;
        self.left = self.left.map(|left| left.saturating_sub(page.operations.len()));
        self.ended = page.next.is_none() || self.left == Some(0);
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
        let ago = time("0s").unwrap().duration_since(time("48h").unwrap());
        assert_eq!(ago.as_hours(), 48);
        for text in ["", "yesterday", "48", "2026-11-29"] {
            assert!(time(text).is_err(), "{text}");
        }
    }
}
