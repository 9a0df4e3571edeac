//! Reads from the head of an answer where its body ends and whether its connection stays open.

use std::time::Duration;

use http::response::Parts;
use http::{HeaderMap, HeaderName, StatusCode, Version, header};
use http_body::Body as _;
use hyper::body::Incoming;

use crate::operation::Reason;

const KEEP_ALIVE: HeaderName = HeaderName::from_static("keep-alive");

/// Why the end of an answer cannot be known. Either the answer switches protocols, or it has a
/// transfer coding other than `chunked`.
pub(super) fn flaw(head: &Parts) -> Option<Reason> {
    // hyper decodes `chunked` if it is the last coding, and no other coding (RFC 9112, 6.1). A body
    // in another coding would be stored and replayed in that coding.
    let mut codings = head.headers.get_all(header::TRANSFER_ENCODING).iter();
    let chunked = codings.next().is_none_or(|coding| {
        coding.as_bytes().eq_ignore_ascii_case(b"chunked") && codings.next().is_none()
    });
    if !chunked {
        return Some(Reason::AnswerLengthUnclear);
    }
    // `Upgrade` is never forwarded, and a server must not switch unasked (RFC 9110, 7.8).
    (head.status == StatusCode::SWITCHING_PROTOCOLS).then_some(Reason::ProtocolSwitched)
}

/// Whether the server says that the connection stays open after the answer (RFC 9112, 9.3).
pub(super) fn stays_open(head: &Parts, body: &Incoming) -> bool {
    let persistent = match head.version {
        Version::HTTP_11 => !lists(&head.headers, "close"),
        // An HTTP/1.0 server closes the connection unless it says otherwise.
        _ => lists(&head.headers, "keep-alive") && !lists(&head.headers, "close"),
    };
    // A body with neither length nor chunks ends with its connection (RFC 9112, 6.3).
    let ends_by_itself =
        head.headers.contains_key(header::TRANSFER_ENCODING) || body.size_hint().exact().is_some();
    persistent && ends_by_itself
}

/// Whether `Connection` lists an option.
fn lists(headers: &HeaderMap, option: &str) -> bool {
    let values = headers.get_all(header::CONNECTION).iter();
    values
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .any(|listed| listed.trim().eq_ignore_ascii_case(option))
}

/// How long the server keeps an idle connection open, if it says so with `Keep-Alive: timeout=5`.
/// RFC 2068, 19.7.1.1 defines the syntax of the header. By convention the number is in seconds.
pub(super) fn promised_idle(headers: &HeaderMap) -> Option<Duration> {
    let value = headers.get(KEEP_ALIVE)?.to_str().ok()?;
    let timeout = value.split(',').find_map(|parameter| {
        let (name, value) = parameter.split_once('=')?;
        name.trim().eq_ignore_ascii_case("timeout").then(|| value.trim())
    })?;
    timeout.parse().ok().map(Duration::from_secs)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn promised(value: &'static str) -> Option<u64> {
        let headers = HeaderMap::from_iter([(KEEP_ALIVE, value.parse().unwrap())]);
        promised_idle(&headers).map(|idle| idle.as_secs())
    }

    #[test]
    fn the_time_of_a_keep_alive_header_is_read() {
        assert_eq!(promised("timeout=5"), Some(5));
        assert_eq!(promised("max=100, Timeout = 15"), Some(15));
        for none in ["", "max=100", "timeout", "timeout=", "timeout=-1", "timeout=soon"] {
            assert_eq!(promised(none), None, "{none}");
        }
    }
}
