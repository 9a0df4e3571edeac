//! `onceward operations resolve --all-of-route`: resolves many operations at once, after it has
//! shown them.

use std::collections::BTreeMap;

use super::client::Client;
use super::error::Error;
use super::list::operation;
use super::resolve::Args;
use super::summary;
use super::text::{self, plain, table};
use crate::admin::api::{Outcome, ResolvableState, ResolveMany, ResolveResult, ResolvedMany, Seen};
use crate::cli::output::Exit;
use crate::operation::StateName;

/// How many operations one call is about at most.
const LIMIT: usize = 500;

/// Resolves many operations.
pub(super) async fn run(args: &Args, client: &Client, as_json: bool) -> Result<Exit, Error> {
    if !args.many.dry_run {
        args.decider.check_can_agree()?;
    }
    let found = dry_run(args, client).await?;
    let is_empty = found.operations.is_empty();
    if args.many.dry_run || is_empty {
        let shown = match (as_json, is_empty) {
            (true, _) => text::json(&found, true),
            (false, true) => why_none(args, client).await?,
            (false, false) => preview(args, &found),
        };
        return Ok(Exit::done(shown));
    }
    args.decider.agree(&preview(args, &found))?;
    // The operations that were shown: another one may have become uncertain while the operator
    // thought, and nobody has looked at that one.
    let seen = found.operations.iter();
    let seen = seen
        .map(|each| Seen { operation: each.operation.clone(), attempt: each.attempt })
        .collect();
    let resolve = ResolveMany { operations: Some(seen), ..resolve_many(args, false) };
    let mut done = client.resolve_many(&resolve).await?;
    done.left |= found.left;
    let status = u8::from(!is_success(&done));
    let report = if as_json { text::json(&done, true) } else { report(args, &done) };
    Ok(Exit { status, ..Exit::done(report) })
}

/// Asks which operations would be resolved, for as many pages as it takes.
async fn dry_run(args: &Args, client: &Client) -> Result<ResolvedMany, Error> {
    let limit = args.many.limit.map_or(LIMIT, usize::from);
    let mut found = ResolvedMany { dry_run: true, ..ResolvedMany::default() };
    // A page may be empty and still have a next one: the process looks at a limited number of
    // records for one call.
    loop {
        let page = ResolveMany {
            limit: Some(limit - found.operations.len()),
            cursor: found.next.take(),
            ..resolve_many(args, true)
        };
        let page = client.resolve_many(&page).await?;
        found.operations.extend(page.operations);
        found.left = page.left;
        found.next = page.next;
        // Only an empty list means that the route has no such operations: a page may be empty and
        // have a next one.
        if let Some(routes) = page.routes
            && found.next.is_none()
            && found.operations.is_empty()
        {
            return Err(Error::NoRoute(routes));
        }
        if found.next.is_none() || found.operations.len() >= limit {
            return Ok(found);
        }
    }
}

fn resolve_many(args: &Args, dry_run: bool) -> ResolveMany {
    ResolveMany {
        // The command line requires the route, the state and the time together.
        route: args.many.route.clone().unwrap_or_default(),
        state: args.many.state.unwrap_or(ResolvableState::Uncertain),
        before: args.many.before.map(|before| before.to_string()).unwrap_or_default(),
        outcome: args.outcome,
        reason: args.decider.reason.clone(),
        reference: args.reference.clone(),
        by: args.decider.name(),
        dry_run,
        limit: None,
        cursor: None,
        operations: None,
    }
}

/// Whether anything was resolved, and the store failed for no operation. A script has to hear if
/// nobody knows whether a decision was made.
fn is_success(done: &ResolvedMany) -> bool {
    let is_unknown = |result| result == ResolveResult::Unknown;
    done.done > 0 && !done.operations.iter().any(|each| is_unknown(each.result))
}

/// Says why there is nothing to resolve: what the route has instead. Only the newest operations of
/// the route are counted.
async fn why_none(args: &Args, client: &Client) -> Result<String, Error> {
    let route = args.many.route.as_deref().unwrap_or_default();
    let limit = LIMIT.to_string();
    let page = client.list(&[("route", route), ("limit", &limit)]).await?;
    let mut counts = BTreeMap::<String, usize>::new();
    for json in &page.operations {
        *counts.entry(operation(json)?.state).or_default() += 1;
    }
    let wanted = StateName::from(args.many.state.unwrap_or(ResolvableState::Uncertain)).as_str();
    let later = counts.remove(wanted).map(|count| format!("{count} {wanted} created later"));
    let others = counts.iter().map(|(state, count)| format!("{count} {}", plain(state)));
    let instead: Vec<String> = later.into_iter().chain(others).collect();
    let instead =
        if instead.is_empty() { "none in other states".to_owned() } else { instead.join(", ") };
    let newest =
        if page.next.is_some() { format!(" among its newest {LIMIT}") } else { String::new() };
    Ok(format!("no {wanted} operations of route `{}`: it has {instead}{newest}\n", plain(route)))
}

fn preview(args: &Args, found: &ResolvedMany) -> String {
    let rows = found.operations.iter().map(|each| {
        let key = each.key.as_ref().map(summary::short_key).unwrap_or_default();
        vec![each.operation.clone(), each.attempt.to_string(), each.created_at.clone(), key]
    });
    let table = table(&["OPERATION", "ATTEMPT", "CREATED", "KEY"], rows);
    let count = counted(found.operations.len());
    let outcome = args.outcome.as_str();
    let reason = plain(&args.decider.reason);
    let left = if found.left { "more are left for another time\n" } else { "" };
    let danger = match args.outcome {
        Outcome::Failed => {
            "danger: what the upstream has done all the same, the next copies do again\n"
        }
        Outcome::Succeeded => "",
    };
    format!("{table}\n{count} to be resolved as {outcome}\n{danger}{left}reason: {reason}\n")
}

fn report(args: &Args, done: &ResolvedMany) -> String {
    let others = done.operations.iter().filter(|each| each.result != ResolveResult::Done);
    let others: Vec<String> = others
        .map(|each| format!("{}: {}\n", plain(&each.operation), each.result.as_str()))
        .collect();
    let others = others.concat();
    let count = counted(done.done);
    let outcome = args.outcome.as_str();
    let refused = match done.refused {
        0 => String::new(),
        refused => format!(", {refused} refused: changed since"),
    };
    let left = if done.left { "; more are left: try again" } else { "" };
    format!("{others}{count} resolved as {outcome}{refused}{left}\n")
}

fn counted(count: usize) -> String {
    if count == 1 { "1 operation".to_owned() } else { format!("{count} operations") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::admin::api::Resolved;

    #[test]
    fn it_is_a_failure_if_nothing_was_done_or_the_store_failed_for_one() {
        use ResolveResult::{Done, Refused, Unknown};
        for (results, success) in [
            (&[Done, Done][..], true),
            (&[Done, Refused], true),
            (&[Refused, Refused], false),
            (&[Done, Unknown], false),
            (&[Unknown], false),
            (&[], false),
        ] {
            let operations = results.iter().map(|result| Resolved {
                operation: "op".to_owned(),
                key: None,
                attempt: 1,
                created_at: "now".to_owned(),
                result: *result,
            });
            let count = |word| results.iter().filter(|result| **result == word).count();
            let many = ResolvedMany {
                operations: operations.collect(),
                done: count(Done),
                refused: count(Refused),
                ..ResolvedMany::default()
            };
            assert_eq!(is_success(&many), success, "{results:?}");
        }
    }

    /// A process that is newer than the command may answer with a word that the command does not
    /// know.
    #[test]
    fn a_result_that_is_not_known_is_no_success() {
        let json = r#"{"operation":"op","attempt":1,"created_at":"now","result":"deferred"}"#;
        let resolved: Resolved = serde_json::from_str(json).unwrap();
        assert_eq!(resolved.result, ResolveResult::Unknown);
    }
}
