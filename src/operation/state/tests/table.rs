//! The rules do what the table on the front page of the module says.

use super::lookup::looking;
use super::*;

const STATES: [&str; 6] = ["none", "in flight", "uncertain", "succeeded", "failed", "forgotten"];

fn found(state: &str) -> Option<Operation> {
    match state {
        "none" => None,
        "in flight" => in_flight(),
        // A look-up is under way, so that it can be concluded too.
        "uncertain" => claim(uncertain(), &looking(2), at(1)).operation,
        "succeeded" => succeeded(),
        "failed" => failed(),
        "forgotten" => forgotten(),
        other => panic!("{other}"),
    }
}

/// The records that a rule may leave, for a record in this state.
fn reached(rule: &str, state: &str) -> Vec<Option<Operation>> {
    let outcomes = [Outcome::Succeeded, Outcome::Failed, Outcome::Uncertain];
    let verdicts = [Verdict::Succeeded(None), Verdict::Failed];
    // Late enough for each policy, early enough for every retention.
    let later = at(ATTEMPT_TIMEOUT);
    match rule {
        "claim" => {
            let retried = IfUncertain::Retry { attempts_max: 9 };
            let request = ClaimRequest { if_uncertain: retried, ..request(3) };
            vec![claim(unasked(found(state)), &request, in_its_lease(state, later)).operation]
        }
        "settle" => outcomes
            .map(|outcome| settle(found(state), &settlement(1, outcome), at(2)).operation)
            .into(),
        "conclude" => Finding::ALL
            .map(|finding| {
                let reason = String::new();
                let request = looking(2);
                let end = LookupReport { request, step: None, finding, reason, reference: None };
                conclude(found(state), &end, in_its_lease(state, later)).operation
            })
            .into(),
        "withdraw" => vec![withdraw(found(state), claim_of(1), at(2)).operation],
        "resolve" => verdicts
            .map(|verdict| resolve(found(state), &resolution(verdict), at(2)).operation)
            .into(),
        "forget" => vec![forget(found(state), "again", at(2)).operation],
        "time" => {
            let end = if state == "in flight" { LEASE } else { HOLD_FOR * 2 };
            vec![expire(found(state), at(end)).operation]
        }
        other => panic!("the table has a rule `{other}`"),
    }
}

/// The record without the look-up that was begun for `conclude`.
fn unasked(found: Option<Operation>) -> Option<Operation> {
    let mut found = found?;
    if let State::Uncertain(held) = &mut found.state {
        held.lookup = None;
    }
    Some(found)
}

/// A time within the lease, because an operation whose lease has run out is in another state.
fn in_its_lease(state: &str, later: Timestamp) -> Timestamp {
    if state == "in flight" { at(1) } else { later }
}

fn name(operation: Option<&Operation>) -> String {
    state_of(operation).replace('_', " ")
}

/// The cells of a line of the table.
fn cells(line: &str) -> Vec<&str> {
    line.trim_start_matches("//! |").trim_end_matches('|').split('|').map(str::trim).collect()
}

#[test]
fn each_rule_leaves_the_states_that_the_table_says() {
    let page = include_str!("../mod.rs");
    let table: Vec<&str> = page.lines().filter(|line| line.starts_with("//! |")).collect();
    let rules = cells(table[0]);
    let mut states = Vec::new();
    for line in &table[2..] {
        let line = cells(line);
        states.push(line[0]);
        for (rule, cell) in rules.iter().zip(&line).skip(1) {
            let reached = reached(rule, line[0]);
            let mut reached: Vec<_> = reached.iter().map(|it| name(it.as_ref())).collect();
            reached.retain(|state| state != line[0]);
            reached.dedup();
            let expected: Vec<&str> = match *cell {
                "-" => Vec::new(),
                "its outcome" => vec!["succeeded", "failed", "uncertain"],
                cell => cell.split(", ").collect(),
            };
            let expected: Vec<_> = expected.into_iter().filter(|state| *state != line[0]).collect();
            assert_eq!(reached, expected, "{rule} of {}", line[0]);
        }
    }
    assert_eq!(states, STATES);
}
