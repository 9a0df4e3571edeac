//! What a list is asked for, and its pages, with bounded memory however many operations there are.

use std::fmt::Display;
use std::sync::Arc;

use form_urlencoded::parse;

use super::Admin;
use super::body::MISTAKE_CHARS_MAX;
use super::problem::Problem;
use crate::operation::{Key, Operation, OperationId, StateName, Timestamp};
use crate::store::{ListPosition, ListQuery};

/// Operations of one page.
pub(super) const LIMIT_MAX: usize = 500;
const LIMIT_DEFAULT: usize = 50;
/// Operations that are in memory with their answers at a time.
const PART: usize = 25;
/// How often the store may look at as many records as it does for one call and find less than was
/// asked for. So a page may hold fewer operations, or none, and still have a next one.
const SHORT_PARTS_MAX: usize = 5;

/// Reads `route=&state=&key=&before=&limit=&cursor=`. A parameter without a value counts as absent.
pub(super) fn listing(query: &str) -> Result<ListQuery, Problem> {
    let mut asked = [const { None }; 6];
    let names = ["route", "state", "key", "before", "limit", "cursor"];
    for (name, value) in parse(query.as_bytes()) {
        let found = names.iter().zip(&mut asked).find(|(known, _)| **known == name);
        let Some((_, slot)) = found else {
            let names = "`route`, `state`, `key`, `before`, `limit` and `cursor`";
            return Err(wrong(format_args!("unknown parameter {name:?}; there are {names}")));
        };
        if slot.replace(value.into_owned()).is_some() {
            return Err(wrong(format_args!("`{name}` is there twice")));
        }
    }
    let [route, state, key, before, limit, cursor] =
        asked.map(|given| given.filter(|given| !given.is_empty()));
    let before = before.map(|text| time(&text).map_err(wrong)).transpose()?;
    let after = cursor.map(|text| place(&text).ok_or_else(|| wrong(CURSOR))).transpose()?;
    Ok(ListQuery {
        route: route.map(Arc::from),
        state: state.map(|text| state_of(&text)).transpose()?,
        key: key.map(|text| key_of(&text)).transpose()?,
        after: behind(before, after),
        limit: limit
            .map_or(Ok(LIMIT_DEFAULT), |text| limit_of(text.parse().ok()).map_err(wrong))?,
    })
}

const CURSOR: &str = "`cursor` must be the `next` of an earlier page";

fn wrong(what: impl Display) -> Problem {
    Problem::Query(what.to_string().chars().take(MISTAKE_CHARS_MAX).collect())
}

fn state_of(text: &str) -> Result<StateName, Problem> {
    let found = StateName::ALL.into_iter().find(|state| state.as_str() == text);
    let names = StateName::ALL.map(|state| format!("`{}`", state.as_str())).join(", ");
    found.ok_or_else(|| wrong(format_args!("`state` must be one of {names}")))
}

/// The longest key that is searched for, in bytes: that of the longest part of a key.
const KEY_BYTES_MAX: usize = 4096;

/// A key or event id.
fn key_of(text: &str) -> Result<Arc<str>, Problem> {
    if text.len() > KEY_BYTES_MAX {
        return Err(wrong(format_args!("`key` has more than {KEY_BYTES_MAX} bytes")));
    }
    Ok(Key::searchable(text).into())
}

/// How many operations one call may be about.
pub(super) fn limit_of(given: Option<usize>) -> Result<usize, String> {
    given
        .filter(|limit| (1..=LIMIT_MAX).contains(limit))
        .ok_or_else(|| format!("`limit` must be a number from 1 to {LIMIT_MAX}"))
}

/// A point in time, such as `2026-11-29T12:00:00Z`.
pub(super) fn time(text: &str) -> Result<Timestamp, String> {
    let time: jiff::Timestamp = text.parse().map_err(|_| {
        "`before` must be a time such as `2026-11-29T12:00:00Z` (a `+` is written `%2B` in a query)"
            .to_owned()
    })?;
    Ok(Timestamp(u64::try_from(time.as_millisecond()).unwrap_or(0)))
}

/// The place where a list begins of what was created before a time, behind an earlier page.
pub(super) fn behind(
    before: Option<Timestamp>,
    after: Option<ListPosition>,
) -> Option<ListPosition> {
    let lowest = OperationId::from_bytes([0; 16]);
    let before = before.map(|created_at| ListPosition { created_at, id: lowest });
    match (before, after) {
        (Some(before), Some(after)) => Some(before.min(after)),
        (before, after) => before.or(after),
    }
}

/// A place as a text that means nothing to others.
pub(super) fn cursor(place: ListPosition) -> String {
    let created_at = place.created_at.0.to_be_bytes();
    format!("{}{}", hex::encode(created_at), hex::encode(place.id.as_bytes()))
}

/// The place that [`cursor`] wrote down.
pub(super) fn place(cursor: &str) -> Option<ListPosition> {
    let mut bytes = [0; 24];
    hex::decode_to_slice(cursor, &mut bytes).ok()?;
    let (created_at, id) = bytes.split_first_chunk::<8>()?;
    let created_at = Timestamp(u64::from_be_bytes(*created_at));
    Some(ListPosition { created_at, id: OperationId::from_bytes(id.try_into().ok()?) })
}

/// One page, of each operation only a `T`; and where the list goes on.
pub(super) async fn page<T: for<'a> From<&'a Operation>>(
    admin: &Admin,
    listing: &ListQuery,
) -> Result<(Vec<T>, Option<ListPosition>), Problem> {
    let (mut kept, mut after, mut short_parts) = (Vec::new(), listing.after, 0);
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
        assert_eq!(super::place(&cursor(place)), Some(place));
        for text in ["", "00", &"0".repeat(46), &"0".repeat(50), &"g".repeat(48)] {
            assert_eq!(super::place(text), None, "{text}");
        }
    }

    #[test]
    fn what_is_left_empty_counts_as_absent() {
        let all =
            ListQuery { route: None, state: None, key: None, after: None, limit: LIMIT_DEFAULT };
        assert_eq!(listing("").unwrap(), all);
        assert_eq!(listing("route=&state=&key=&limit=&cursor=&before=").unwrap(), all);
        let some = listing("state=in_flight&route=a%20b&limit=500").unwrap();
        let (route, state) = (Some("a b".into()), Some(StateName::InFlight));
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
    fn of_a_time_and_a_cursor_the_older_one_counts() {
        let place =
            |at| ListPosition { created_at: Timestamp(at), id: OperationId::from_bytes([7; 16]) };
        let earlier = behind(Some(Timestamp(5)), Some(place(9))).unwrap();
        assert!(earlier < place(5) && earlier > place(4));
        assert_eq!(behind(Some(Timestamp(9)), Some(place(5))), Some(place(5)));
        assert_eq!(behind(None, Some(place(5))), Some(place(5)));
        assert_eq!(time("1970-01-01T00:00:01+00:00"), Ok(Timestamp(1000)));
        assert_eq!(time("1969-01-01T00:00:00Z"), Ok(Timestamp(0)));
    }
}
