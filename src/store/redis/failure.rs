//! What a server's or a connection's failure means: whether a call may have taken effect.

use redis::{ErrorKind, RedisError};

use crate::store::Error;
use crate::telemetry::chain;

const TLS_FAILED: &str = "TLS with the server failed: one does not accept the other's certificate";
/// The user may not do it.
pub(super) const NOT_PERMITTED: &str = "the server does not permit its user what is needed";
const USER_REFUSED: &str = "the server refuses the user or the password";
const NO_CONNECTION: &str = "no connection to the server can be made";

/// No connection was there in time.
pub(super) const NOT_CONNECTED_IN_TIME: &str = "no connection to the server was made in time";
/// Keys went from node to node faster than they could be followed.
pub(super) const MOVED_TOO_OFTEN: &str = "the cluster's keys move too often";
/// The server knows nothing of a part of the keys for now.
pub(super) const KEYS_MOVE: &str = "the cluster is moving the keys to another node";

/// Answers by which a server turns a command away before it does anything.
const REFUSALS: [(&str, &str); 14] = [
    ("OOM", "the server has no memory left"),
    ("READONLY", "the server is a replica, which takes no writes"),
    ("MISCONF", "the server cannot save to disk, and takes no writes"),
    ("NOREPLICAS", "the server has too few replicas, and takes no writes"),
    ("LOADING", "the server is loading its data"),
    ("MASTERDOWN", "the server is a replica that has lost its master"),
    ("CLUSTERDOWN", "the cluster is down"),
    ("TRYAGAIN", KEYS_MOVE),
    ("MOVED", "the server is a node of a cluster; `mode` must be \"cluster\""),
    ("ASK", "the server is a node of a cluster; `mode` must be \"cluster\""),
    ("NOPERM", NOT_PERMITTED),
    ("NOAUTH", USER_REFUSED),
    ("WRONGPASS", USER_REFUSED),
    ("BUSY", "a script keeps the server busy"),
];

/// A server's answer by which a command was turned away, if it is one.
pub(super) fn refusal(answer: &str) -> Option<&'static str> {
    let code = answer.trim_start_matches('-').split_whitespace().next()?;
    let known = REFUSALS.iter().find(|(known, _)| *known == code).map(|(_, text)| *text);
    // inside a script, a server says so without a code of its own
    known.or_else(|| answer.contains("The user executing the script").then_some(NOT_PERMITTED))
}

/// Whether a server says by this answer that it is not the one to be asked (any more).
pub(super) fn is_no_master(answer: &str) -> bool {
    let signs = ["READONLY", "MASTERDOWN", "CLUSTERDOWN", "LOADING"];
    let code = answer.trim_start_matches('-').split_whitespace().next();
    code.is_some_and(|code| signs.contains(&code))
}

/// A script says that its first write was turned away, with this answer.
pub(super) fn denied(answer: String) -> Error {
    match refusal(&answer) {
        Some(text) => Error::Unavailable(text),
        None => Error::Failed(answer.into()),
    }
}

/// A command was sent, and this came back.
pub(super) fn answered(error: RedisError) -> Error {
    match error.code().and_then(refusal) {
        Some(text) => Error::Unavailable(text),
        None => Error::Failed(Box::new(error)),
    }
}

/// Whether it is the server that has answered so.
pub(super) fn is_answer(error: &RedisError) -> bool {
    error.code().is_some()
}

/// A connection could not be made.
pub(super) fn not_connected(error: &RedisError) -> &'static str {
    tracing::debug!(error = %chain(error), "a store's server cannot be connected to");
    if let Some(text) = error.code().and_then(refusal) {
        return text;
    }
    if error.kind() == ErrorKind::AuthenticationFailed {
        return USER_REFUSED;
    }
    if error.is_timeout() {
        return NOT_CONNECTED_IN_TIME;
    }
    // the library keeps the error of TLS where only its text can be reached
    let text = error.to_string();
    let is_tls = ["peer certificate", "fatal alert", "corrupt message"];
    if is_tls.iter().any(|sign| text.contains(sign)) { TLS_FAILED } else { NO_CONNECTION }
}

/// The server's reply is not of the shape that the script gives.
#[derive(Debug, thiserror::Error)]
#[error("a reply of the server has another shape than was expected")]
pub(super) struct Shape;

pub(super) fn shape() -> Error {
    Error::Failed(Box::new(Shape))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_turned_away_is_known_not_to_have_happened() {
        for refused in ["OOM command not allowed", "-READONLY You can't write", "LOADING"] {
            assert!(!denied(refused.to_owned()).may_have_applied(), "{refused}");
        }
        for other in ["ERR value is not a float", "", "OOMPH"] {
            assert!(denied(other.to_owned()).may_have_applied(), "{other}");
        }
    }
}
