//! Why a command that calls the admin API fails, and what may help.

use std::io;
use std::path::PathBuf;

use reqwest::StatusCode;

use super::text::plain;
use crate::admin::ADDRESS;
use crate::cli::output::Exit;
use crate::operation::OperationId;
use crate::problem::Document;

/// Why a command fails.
#[derive(Debug, thiserror::Error)]
pub(in crate::cli) enum Error {
    /// `--admin` is no URL that can be called. The message does not repeat it: it may have a
    /// password in it.
    #[error("`--admin` or `ONCEWARD_ADMIN_URL` is no URL such as `http://{ADDRESS}`")]
    Url,
    /// The file with the token cannot be read.
    #[error("cannot read `{}`", .0.display())]
    TokenFile(PathBuf, #[source] io::Error),
    /// The token cannot be sent.
    #[error("the token is empty, or not visible ASCII in one line")]
    Token,
    /// There is neither a terminal to ask on nor `--yes`.
    #[error("this changes something, and there is no terminal to ask on")]
    CannotAsk,
    /// The operator did not agree.
    #[error("nothing was changed")]
    Declined,
    /// The runtime cannot start.
    #[error("cannot start")]
    Runtime(#[source] io::Error),
    /// There is no connection to the process.
    #[error("cannot connect to `{url}`")]
    Connect {
        /// The URL that was called.
        url: String,
        /// The cause.
        source: Cause,
    },
    /// The process was called and gave no complete answer.
    #[error("`{url}` gave no answer")]
    NoAnswer {
        /// The URL that was called.
        url: String,
        /// The cause.
        source: Cause,
        /// Whether the call may have changed something.
        may_have_changed: bool,
    },
    /// Another server listens at the address.
    #[error("`{url}` is no admin listener of Onceward: it answered with status {status}")]
    NotAdmin {
        /// The URL that was called.
        url: String,
        /// The status of its answer.
        status: u16,
    },
    /// This version of the command does not understand the answer.
    #[error("the answer is not understood")]
    NotUnderstood,
    /// The store remembers no operation with this id.
    #[error("nothing is remembered of `{0}`")]
    Unknown(OperationId),
    /// No route has the name that was given, and the store remembers no operation of such a route.
    /// The names are those of the configured routes.
    #[error("no route has this name, and nothing is remembered of one that had it")]
    NoRoute(Vec<String>),
    /// The operation's state does not allow the decision.
    #[error("nothing was decided: the operation's state is `{state}`, at attempt {attempt}")]
    WrongState {
        /// Its state.
        state: String,
        /// The number of its latest attempt.
        attempt: u32,
    },
    /// The admin API refused the call for another reason.
    #[error("{}", .0.sentence())]
    Refused(Box<Refusal>),
}

/// The innermost cause of a failed call. The errors around it only repeat what the message says.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(in crate::cli) struct Cause(String);

impl Cause {
    pub(super) fn of(error: &reqwest::Error) -> Self {
        let mut cause: &dyn std::error::Error = error;
        while let Some(inner) = cause.source() {
            cause = inner;
        }
        Self(plain(&cause.to_string()))
    }
}

/// A refusal of the admin API.
#[derive(Debug)]
pub(in crate::cli) struct Refusal {
    /// The problem document.
    pub(super) document: Document<'static>,
    /// The seconds until another try makes sense, from the header `Retry-After`.
    pub(super) retry_after: Option<u64>,
}

impl Refusal {
    fn sentence(&self) -> String {
        let title = plain(&self.document.title);
        match &self.document.detail {
            Some(detail) => format!("{title}: {}", plain(detail)),
            None => title,
        }
    }

    fn hint(&self) -> Option<String> {
        if self.document.status == StatusCode::UNAUTHORIZED.as_u16() {
            return Some(
                "`ONCEWARD_ADMIN_TOKEN` or `--token-file` must give the `admin.token` of the proxy"
                    .to_owned(),
            );
        }
        if self.document.code == "no-reply" {
            return Some("`onceward operations show` says how it stands now".to_owned());
        }
        // The address has sent too many wrong tokens, or the store is unavailable.
        self.retry_after.map(|seconds| format!("try again in {seconds} s"))
    }
}

impl Error {
    /// The error of a call about this operation.
    pub(super) fn about(self, id: OperationId) -> Self {
        let is_unknown = matches!(
            &self,
            Self::Refused(refusal) if refusal.document.code == "no-such-operation"
        );
        if is_unknown { Self::Unknown(id) } else { self }
    }

    fn hint(&self) -> Option<String> {
        match self {
            Self::CannotAsk => Some("`--yes` goes on without a question".to_owned()),
            Self::Connect { .. } => Some(
                "is `onceward serve` running, with this `admin.listen`? `--admin URL` or \
                 `ONCEWARD_ADMIN_URL` names another one"
                    .to_owned(),
            ),
            Self::NoAnswer { may_have_changed: true, .. } => Some(
                "it may have been done all the same: `onceward operations show` says how it stands"
                    .to_owned(),
            ),
            Self::NotUnderstood => Some(
                "`onceward --version` should be that of the process; `--json` shows what it says"
                    .to_owned(),
            ),
            Self::NotAdmin { .. } => {
                Some("`admin.listen` of the proxy says where that is".to_owned())
            }
            Self::Unknown(_) => Some(
                "its retention has passed, another store remembers it, or it is the id of a step, \
                 which `show` says of the step's event; `onceward operations list` shows what is there"
                    .to_owned(),
            ),
            Self::NoRoute(routes) => {
                let names = routes.iter().map(|name| format!("`{}`", plain(name)));
                Some(format!("the routes are {}", names.collect::<Vec<_>>().join(", ")))
            }
            Self::WrongState { state, .. } => hint_of(state),
            Self::Refused(refusal) => refusal.hint(),
            Self::Url
            | Self::TokenFile(..)
            | Self::Token
            | Self::Declined
            | Self::Runtime(_)
            | Self::NoAnswer { may_have_changed: false, .. } => None,
        }
    }

    /// The exit status.
    const fn status(&self) -> u8 {
        match self {
            // Wrong usage: the same call would fail again.
            Self::Url | Self::TokenFile(..) | Self::Token | Self::CannotAsk => 2,
            Self::Declined
            | Self::Runtime(_)
            | Self::Connect { .. }
            | Self::NoAnswer { .. }
            | Self::NotAdmin { .. }
            | Self::NotUnderstood
            | Self::Unknown(_)
            | Self::NoRoute(_)
            | Self::WrongState { .. }
            | Self::Refused(_) => 1,
        }
    }
}

/// What helps if an operation's state does not allow the decision.
fn hint_of(state: &str) -> Option<String> {
    let hint = match state {
        "in_flight" => "wait for the attempt's end, at its `ends_at` at the latest",
        "succeeded" => "`onceward operations forget` lets the next copy run again",
        "forgotten" => "the next copy runs again",
        "uncertain" | "failed" => {
            "it has changed since it was looked at: look again, then decide again"
        }
        _ => return None,
    };
    Some(hint.to_owned())
}

impl From<Error> for Exit {
    fn from(error: Error) -> Self {
        let failed = Self { status: error.status(), ..Self::failed(&error) };
        match error.hint() {
            Some(hint) => failed.with_hint(&hint),
            None => failed,
        }
    }
}
