//! The query of a list, and its pages, with bounded memory however many operations there are.

use std::fmt::Display;
use std::sync::Arc;

use form_urlencoded::parse;

use super::body::MISTAKE_CHARS_MAX;
use super::control::Admin;
use super::problem::Problem;
use crate::operation::{Key, Operation, OperationId, StateName, Timestamp};
use crate::store::{ListPosition, ListQuery};

/// The most operations on one page.
pub(super) const LIMIT_MAX: usize = 500;
const LIMIT_DEFAULT: usize = 50;
/// How many operations are read from the store at a time. Each has its stored answer with it, so
/// this times the longest answer is the memory that a page needs.
const PART: usize = 25;
/// How many calls to the store for one page may find less than was asked for. A store looks at a
/// limited number of records for one call, so a rare state would take very many calls. After this
/// many the page ends early: it may be short or empty and still have a next page.
const SHORT_PARTS_MAX: usize = 5;

/// Reads `route=&state=&key=&before=&limit=&cursor=`. A parameter without a value counts as absent.
pub(super) fn listing(query: &str) -> Result<ListQuery, Problem> {
    let mut values = [const { None }; 6];
    let names = ["route", "state", "key", "before", "limit", "cursor"];
    for (name, value) in parse(query.as_bytes()) {
        let found = names.iter().zip(&mut values).find(|(known, _)| **known == name);
        let Some((_, slot)) = found else {
            let names = "`route`, `state`, `key`, `before`, `limit` and `cursor`";
            return Err(wrong(format_args!("unknown parameter {name:?}; there are {names}")));
        };
        // Which of two values counts is a guess that differs from server to server.
        if slot.replace(value.into_owned()).is_some() {
            return Err(wrong(format_args!("`{name}` is there twice")));
        }
    }
    let [route, state, key, before, limit, cursor] =
        values.map(|value| value.filter(|value| !value.is_empty()));
    let before = before.map(|text| parse_time(&text).map_err(wrong)).transpose()?;
    let after = cursor.map(|text| parse_cursor(&text).ok_or_else(|| wrong(CURSOR))).transpose()?;
    Ok(ListQuery {
        route: route.map(Arc::from),
        state: state.map(|text| parse_state(&text)).transpose()?,
        key: key.map(|text| parse_key(&text)).transpose()?,
        after: start(before, after),
        limit: limit
            .map_or(Ok(LIMIT_DEFAULT), |text| check_limit(text.parse().ok()).map_err(wrong))?,
    })
}

const CURSOR: &str = "`cursor` must be the `next` of an earlier page";

fn wrong(what: impl Display) -> Problem {
    Problem::Query(what.to_string().chars().take(MISTAKE_CHARS_MAX).collect())
}

fn parse_state(text: &str) -> Result<StateName, Problem> {
    let names = StateName::ALL.map(|state| format!("`{}`", state.as_str())).join(", ");
    StateName::parse(text).ok_or_else(|| wrong(format_args!("`state` must be one of {names}")))
}

/// The longest key that is searched for: as long as the longest part of a key.
const KEY_BYTES_MAX: usize = 4096;

/// Reads an idempotency key or an event id, as the store searches for it.
fn parse_key(text: &str) -> Result<Arc<str>, Problem> {
    if text.len() > KEY_BYTES_MAX {
        return Err(wrong(format_args!("`key` has more than {KEY_BYTES_MAX} bytes")));
    }
    Ok(Key::searchable(text).into())
}

/// Checks how many operations a call is about.
pub(super) fn check_limit(given: Option<usize>) -> Result<usize, String> {
    given
        .filter(|limit| (1..=LIMIT_MAX).contains(limit))
        .ok_or_else(|| format!("`limit` must be a number from 1 to {LIMIT_MAX}"))
}

/// Reads a time such as `2026-11-29T12:00:00Z`. A time before 1970 counts as 1970.
pub(super) fn parse_time(text: &str) -> Result<Timestamp, String> {
    let time: jiff::Timestamp = text.parse().map_err(|_| {
        "`before` must be a time such as `2026-11-29T12:00:00Z` (a `+` is written `%2B` in a query)"
            .to_owned()
    })?;
    Ok(Timestamp(u64::try_from(time.as_millisecond()).unwrap_or(0)))
}

/// The place after which a list begins: before this time, and after the last operation of an
/// earlier page. A list goes from the newest operation to the oldest, so the lesser place is the
/// later one.
pub(super) fn start(
    before: Option<Timestamp>,
    after: Option<ListPosition>,
) -> Option<ListPosition> {
    // Of operations that were created at one time, the one with the lowest id is the last. So
    // nothing that was created at this time is listed.
    let lowest = OperationId::from_bytes([0; 16]);
    let before = before.map(|created_at| ListPosition { created_at, id: lowest });
    match (before, after) {
        (Some(before), Some(after)) => Some(before.min(after)),
        (before, after) => before.or(after),
    }
}

/// Writes a place as a cursor. Callers pass it back as it is.
pub(super) fn cursor(place: ListPosition) -> String {
    let created_at = place.created_at.0.to_be_bytes();
    format!("{}{}", hex::encode(created_at), hex::encode(place.id.as_bytes()))
}

/// Reads a place that [`cursor`] wrote.
pub(super) fn parse_cursor(cursor: &str) -> Option<ListPosition> {
    let mut bytes = [0; 24];
    hex::decode_to_slice(cursor, &mut bytes).ok()?;
    let (created_at, id) = bytes.split_first_chunk::<8>()?;
    let created_at = Timestamp(u64::from_be_bytes(*created_at));
    Some(ListPosition { created_at, id: OperationId::from_bytes(id.try_into().ok()?) })
}

/// Reads one page, and the place after which the next one begins. Only a `T` is kept of each
/// operation, so that no more than one part of the page is in memory with its answers.
pub(super) async fn page<T: for<'a> From<&'a Operation>>(
    admin: &Admin,
    listing: &ListQuery,
) -> Result<(Vec<T>, Option<ListPosition>), Problem> {
    let mut kept = Vec::new();
    let mut after = listing.after;
    let mut short_parts = 0;
    loop {
        let limit = PART.min(listing.limit - kept.len());
        let part = ListQuery { after, limit, ..listing.clone() };
        let part = admin.0.store.list(&part).await;
        let part = part.map_err(|error| Problem::of_reading(&error))?;
        kept.extend(part.operations.iter().map(T::from));
        after = part.next;
        short_parts += usize::from(part.operations.len() < limit);
        if after.is_none() || kept.len() >= listing.limit || short_parts == SHORT_PARTS_MAX {
            return Ok((kept, after));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(query: &str) -> String {
        match listing(query) {
            Err(Problem::Query(what)) => what,
            other => panic!("{query}: {other:?}"),
        }
    }

    #[test]
    fn a_cursor_reads_back_as_the_place_it_was() {
        let place = ListPosition {
            created_at: Timestamp(u64::MAX - 7),
            id: OperationId::from_bytes(*b"0123456789abcdef"),
        };
        assert_eq!(parse_cursor(&cursor(place)), Some(place));
        for text in ["", "00", &"0".repeat(46), &"0".repeat(50), &"g".repeat(48)] {
            assert_eq!(parse_cursor(text), None, "{text}");
        }
    }

    #[test]
    fn an_empty_parameter_counts_as_absent() {
        let all =
            ListQuery { route: None, state: None, key: None, after: None, limit: LIMIT_DEFAULT };
        assert_eq!(listing("").unwrap(), all);
        assert_eq!(listing("route=&state=&key=&limit=&cursor=&before=").unwrap(), all);
        let some = listing("state=in_flight&route=a%20b&limit=500").unwrap();
        let route = Some("a b".into());
        let state = Some(StateName::InFlight);
        assert_eq!(some, ListQuery { route, state, key: None, after: None, limit: 500 });
    }

    #[test]
    fn a_key_is_taken_with_its_quotes_or_without() {
        for query in ["key=evt%206", "key=%22evt%206%22"] {
            assert_eq!(listing(query).unwrap().key.as_deref(), Some("evt 6"));
        }
        let long = format!("key={}", "x".repeat(5000));
        assert_eq!(refused(&long), "`key` has more than 4096 bytes");
    }

    #[test]
    fn a_wrong_parameter_is_named() {
        for query in ["limit=0", "limit=501", "limit=-1", "limit=x"] {
            assert_eq!(refused(query), "`limit` must be a number from 1 to 500");
        }
        assert!(refused("state=held").starts_with("`state` must be one of `in_flight`"));
        assert_eq!(refused("cursor=abc"), CURSOR);
        assert_eq!(refused("route=a&route=a"), "`route` is there twice");
        assert!(refused("routes=a").starts_with("unknown parameter \"routes\""));
        assert!(refused("before=yesterday").starts_with("`before` must be a time such as"));
        assert!(refused(&format!("{}=1", "\u{1b}".repeat(1000))).len() < 300);
    }

    #[test]
    fn with_a_time_and_a_cursor_the_older_place_counts() {
        let place =
            |at| ListPosition { created_at: Timestamp(at), id: OperationId::from_bytes([7; 16]) };
        let earlier = start(Some(Timestamp(5)), Some(place(9))).unwrap();
        assert!(earlier < place(5) && earlier > place(4));
        assert_eq!(start(Some(Timestamp(9)), Some(place(5))), Some(place(5)));
        assert_eq!(start(None, Some(place(5))), Some(place(5)));
        assert_eq!(parse_time("1970-01-01T00:00:01+00:00"), Ok(Timestamp(1000)));
        assert_eq!(parse_time("1969-01-01T00:00:00Z"), Ok(Timestamp(0)));
    }
}
