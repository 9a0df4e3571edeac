//! Tells after a failure of a server or of a connection whether a command may have taken effect.

use redis::{ErrorKind, RedisError};

use crate::store::Error;
use crate::telemetry::chain;
use crate::words::enum_of_words;

/// The reason why a command brought no result.
#[derive(Debug)]
pub(super) enum CommandError {
    /// The command was not run, so it took no effect.
    NotRun(NotRun),
    /// The server failed, or the connection to it did. The command may have taken effect.
    Failed(RedisError),
}

enum_of_words! {
    /// The reason why a command was not run.
    pub(super) enum NotRun {
        // A server answered with one of these.
        OutOfMemory = "the server has no memory left",
        ReadOnlyReplica = "the server is a replica, which takes no writes",
        CannotSave = "the server cannot save to disk, and takes no writes",
        TooFewReplicas = "the server has too few replicas, and takes no writes",
        Loading = "the server is loading its data",
        ReplicaWithoutMaster = "the server is a replica that has lost its master",
        ClusterDown = "the cluster is down",
        /// A slot is moving from one node to another. Each of the two nodes has a part of the slot's
        /// keys.
        KeysMoving = "the cluster is moving the keys to another node",
        NotInClusterMode = "the server is a node of a cluster; `mode` must be \"cluster\"",
        NotPermitted = "the server does not permit its user what is needed",
        LoginRefused = "the server refuses the user or the password",
        BusyWithScript = "a script keeps the server busy",
        // The command was not sent, or a script stopped before its first write.
        NotConnected = "no connection to the server can be made",
        NotConnectedInTime = "no connection to the server was made in time",
        /// The connection works, and has as many calls as it takes at a time.
        TooManyCalls = "too many calls wait for the server",
        TlsFailed = "TLS with the server failed: one does not accept the other's certificate",
        NoMaster = "no sentinel names a master that can be reached",
        NotAMaster = "the server that the sentinels name is not a master",
        /// The keys moved from node to node faster than the command could follow them.
        MovedTooOften = "the cluster's keys move too often",
    }
}

impl NotRun {
    /// Returns the reason that a server's error stands for, if the error says that nothing was run.
    pub(super) fn of(error: &str) -> Option<Self> {
        let code = code(error).unwrap_or_default();
        let known = Self::ALL.into_iter().find(|reason| reason.codes().contains(&code));
        // Redis up to 7.0 has only this text, and no code, for a command that is not permitted
        // inside a script (`scriptVerifyACL` in `src/script.c` of redis/redis). The error comes to
        // us through the script, which can pass on only its text.
        let in_script =
            || error.contains("The user executing the script").then_some(Self::NotPermitted);
        known.or_else(in_script)
    }

    /// The codes with which a server says that it did not run a command for this reason.
    const fn codes(self) -> &'static [&'static str] {
        match self {
            Self::OutOfMemory => &["OOM"],
            Self::ReadOnlyReplica => &["READONLY"],
            Self::CannotSave => &["MISCONF"],
            Self::TooFewReplicas => &["NOREPLICAS"],
            Self::Loading => &["LOADING"],
            Self::ReplicaWithoutMaster => &["MASTERDOWN"],
            Self::ClusterDown => &["CLUSTERDOWN"],
            Self::KeysMoving => &["TRYAGAIN"],
            // A node of a cluster answers so, but in this mode the settings name no cluster.
            Self::NotInClusterMode => &["MOVED", "ASK"],
            Self::NotPermitted => &["NOPERM"],
            Self::LoginRefused => &["NOAUTH", "WRONGPASS"],
            Self::BusyWithScript => &["BUSY"],
            Self::NotConnected
            | Self::NotConnectedInTime
            | Self::TooManyCalls
            | Self::TlsFailed
            | Self::NoMaster
            | Self::NotAMaster
            | Self::MovedTooOften => &[],
        }
    }
}

impl CommandError {
    /// Turns an error of the server into the reason why nothing was run, or into a failure.
    pub(super) fn answered(error: RedisError) -> Self {
        match error.code().and_then(NotRun::of) {
            Some(reason) => Self::NotRun(reason),
            None => Self::Failed(error),
        }
    }
}

impl From<NotRun> for CommandError {
    fn from(reason: NotRun) -> Self {
        Self::NotRun(reason)
    }
}

impl From<NotRun> for Error {
    fn from(reason: NotRun) -> Self {
        Self::Unavailable(reason.as_str())
    }
}

impl From<CommandError> for Error {
    fn from(error: CommandError) -> Self {
        match error {
            CommandError::NotRun(reason) => reason.into(),
            CommandError::Failed(error) => Self::Failed(Box::new(error)),
        }
    }
}

/// Returns the first word of a server's error. In a script, that word begins with a hyphen.
fn code(error: &str) -> Option<&str> {
    error.trim_start_matches('-').split_whitespace().next()
}

/// Whether a server says by this error that it cannot take writes at present, for example because
/// it is not a master any more.
pub(super) fn is_no_master(error: &str) -> bool {
    let reasons = [
        NotRun::ReadOnlyReplica,
        NotRun::ReplicaWithoutMaster,
        NotRun::ClusterDown,
        NotRun::Loading,
    ];
    NotRun::of(error).is_some_and(|reason| reasons.contains(&reason))
}

/// Turns the error with which a server turned away the first write of a script into an error of the
/// call.
pub(super) fn denied(error: String) -> Error {
    match NotRun::of(&error) {
        Some(reason) => reason.into(),
        None => Error::Failed(error.into()),
    }
}

/// Whether the server sent this error. Otherwise it is an error of the connection.
pub(super) fn is_from_server(error: &RedisError) -> bool {
    error.code().is_some()
}

/// Returns the reason why a connection could not be made.
pub(super) fn not_connected(error: &RedisError) -> NotRun {
    tracing::debug!(error = %chain(error), "no connection to a store's server can be made");
    if let Some(reason) = error.code().and_then(NotRun::of) {
        return reason;
    }
    if error.kind() == ErrorKind::AuthenticationFailed {
        return NotRun::LoginRefused;
    }
    if error.is_timeout() {
        return NotRun::NotConnectedInTime;
    }
    // The error of TLS is inside an `io::Error`, which `RedisError` does not give away: its
    // `source` is the pointer that it shares the error by. Only the text leads there.
    let text = error.to_string();
    let is_tls = ["peer certificate", "fatal alert", "corrupt message"];
    if is_tls.iter().any(|sign| text.contains(sign)) {
        NotRun::TlsFailed
    } else {
        NotRun::NotConnected
    }
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
