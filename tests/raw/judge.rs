//! Whether what happened is what must happen.

use crate::case::{Case, Expect};
use crate::sender::Exchange;
use crate::template::{Values, bytes};
use crate::upstream::Seen;

/// Judges a case by what its sender got and what the upstream saw of it, the requests before it
/// included.
pub(crate) fn judge(
    case: &Case,
    values: &Values<'_>,
    exchange: &Exchange,
    seen: &[Seen],
) -> Result<(), String> {
    if seen.iter().any(|seen| seen.case.starts_with("SMUGGLED-")) {
        return Err("a request was smuggled".to_owned());
    }
    if case.must_close && !exchange.closed {
        return Err("the connection was not closed".to_owned());
    }
    for seen in seen {
        clean(case, values, seen)?;
    }
    let problem = || {
        let (status, rest) = (exchange.status(), exchange.rest.escape_ascii());
        format!(
            "expected {:?}, found {} upstream, {} answers, the first {status}, and `{rest}`",
            case.expect,
            seen.len(),
            exchange.answers.len(),
        )
    };
    if as_expected(case, exchange, seen.len()) { Ok(()) } else { Err(problem()) }
}

fn as_expected(case: &Case, exchange: &Exchange, upstream: usize) -> bool {
    let status = exchange.status();
    let success = (200..300).contains(&status);
    let refused = status >= 400 || status == 0;
    let whole = exchange.answers.len() == 1 && exchange.rest.is_empty();
    match case.expect {
        Expect::Reject400 => {
            let named = if case.status.is_empty() { &[400][..] } else { &case.status };
            upstream == 0 && named.contains(&status)
        }
        Expect::RejectOrClose => upstream == 0 && refused,
        Expect::SingleOrReject => upstream == 1 || (upstream == 0 && refused),
        Expect::AcceptSingleRequest => upstream == 1 && success,
        Expect::AcceptTwoRequests => {
            let mut statuses = exchange.answers.iter().map(|answer| answer.status);
            upstream == 2 && statuses.len() == 2 && statuses.all(|status| status == 200)
        }
        Expect::NoDispatch => upstream == 0,
        Expect::ReplayOnce => upstream == 1 && (success || status == 409),
        Expect::TwoDispatches => upstream == 2,
        Expect::NoSecondDispatch => upstream == 1,
        Expect::Resp502 => status == 502 || exchange.answers.is_empty(),
        Expect::RespCleanOr502 => whole,
    }
}

/// Whether a request that the upstream saw is the one that was meant.
fn clean(case: &Case, values: &Values<'_>, seen: &Seen) -> Result<(), String> {
    if let Some(body) = &case.body {
        let body = bytes(body, values);
        if body != seen.body {
            let seen = seen.body.escape_ascii();
            return Err(format!("the upstream got the body `{seen}`"));
        }
    }
    let absent = case.absent.iter().map(|text| bytes(text, values));
    for text in absent.map(|text| String::from_utf8(text).expect("a text")) {
        if seen.head.contains(&text) {
            return Err(format!("the upstream got `{}`", text.escape_debug()));
        }
    }
    Ok(())
}
