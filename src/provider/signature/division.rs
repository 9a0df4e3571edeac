//! Refuses a request of which the signed text could be divided into parts in a second way.
//!
//! Some senders sign parts one after the other with nothing between them. Bytes could then be moved
//! from the end of one part to the start of the next, and one captured signature would fit another
//! request. A timestamp has a fixed number of digits, so nothing can be moved into or out of it. A
//! URL has no such end: a route may take more than one path, and any query.
//!
//! Where every body is a JSON object or array, only one division is left. A URL holds none of the
//! brackets of JSON, because RFC 3986 has them percent-encoded in a path and in a query. So the
//! body begins with the first bracket of the signed text, or ends with the last one. Whether the
//! text between them is JSON is for its reader to find out.

use super::part::Part;
use super::verdict::{InvalidReason, Location};

/// White space of JSON (RFC 8259, section 2). It may stand around a body, and not in a URL.
const BLANKS: [char; 4] = [' ', '\t', '\n', '\r'];
const BRACKETS: [char; 4] = ['[', ']', '{', '}'];

/// Refuses a body that does not begin and end as a JSON object or array. An empty body passes:
/// there is nothing that could be divided.
pub(super) fn require_enclosed(body: &[u8]) -> Result<(), InvalidReason> {
    let text = std::str::from_utf8(body).map(|text| text.trim_matches(BLANKS));
    let is_enclosed =
        text.is_ok_and(|text| text.starts_with(['{', '[']) && text.ends_with(['}', ']']));
    let is_right = body.is_empty() || is_enclosed;
    is_right.then_some(()).ok_or(InvalidReason::Body("a JSON object or array"))
}

/// Refuses a URL that could be divided from a body at another point as well.
pub(super) fn require_plain(target: &str) -> Result<(), InvalidReason> {
    let bracket = target.chars().find(|c| BRACKETS.contains(c));
    bracket.map_or(Ok(()), |bracket| Err(InvalidReason::Ambiguous(Location::Url, bracket)))
}

/// Refuses a part that could be divided from a body at another point as well.
pub(super) fn require_apart(part: &Part, piece: &[u8], target: &str) -> Result<(), InvalidReason> {
    match part {
        Part::Url | Part::Path => require_plain(target),
        Part::Value(selector) => {
            let bracket = BRACKETS.into_iter().find(|c| piece.contains(&(*c as u8)));
            let outer = [piece.first(), piece.last()].into_iter().flatten();
            let blank = BLANKS.into_iter().find(|c| outer.clone().any(|byte| *byte == *c as u8));
            let found = bracket.or(blank);
            found.map_or(Ok(()), |found| Err(InvalidReason::Ambiguous(selector.location(), found)))
        }
        Part::Body | Part::Timestamp | Part::Method | Part::Text(_) => Ok(()),
    }
}
