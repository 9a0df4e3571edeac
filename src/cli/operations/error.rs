//! Why a command came to nothing, and what may help.

use std::io;
use std::path::PathBuf;

use reqwest::StatusCode;
use serde::Deserialize;

use super::text::plain;
use crate::cli::output::Ended;
use crate::operation::OperationId;

/// A command came to nothing.
#[derive(Debug, thiserror::Error)]
pub(in crate::cli) enum Error {
    /// `--admin` is no URL that can be called. It is not repeated: it may hold a password.
    #[error("`--admin` or `ONCEWARD_ADMIN_URL` is no URL such as `http://127.0.0.1:8081`")]
    Url,
    /// The file with the token cannot be read.
    #[error("cannot read `{}`", .0.display())]
    TokenFile(PathBuf, #[source] io::Error),
    /// The token cannot be sent.
    #[error("the token is empty, or not visible ASCII in one line")]
    Token,
    /// Nobody can be asked, and nothing says to go on without.
    #[error("this changes something, and there is no terminal to ask on")]
    CannotAsk,
    /// The person said no.
    #[error("nothing was changed")]
    Declined,
    /// There is nothing to run on.
    #[error("cannot start")]
    Runtime(#[source] io::Error),
    /// Nobody answers there.
    #[error("cannot connect to `{url}`")]
    Connect {
        /// Where.
        url: String,
        /// Why.
        source: Cause,
    },
    /// The connection was made, and then there was no whole answer.
    #[error("`{url}` gave no answer")]
    NoAnswer {
        /// Who.
        url: String,
        /// Why.
        source: Cause,
        /// Whether something may have changed.
        may_have_changed: bool,
    },
    /// What answered is something else.
    #[error("`{url}` is no admin listener of Onceward: it answered with status {status}")]
    Stranger {
        /// Who.
        url: String,
        /// With what.
        status: u16,
    },
    /// It answered with something that this version does not know.
    #[error("the answer is not understood")]
    NotUnderstood,
    /// It is not as it was asked for.
    #[error("nothing is remembered of `{0}`")]
    Unknown(OperationId),
    /// No route has this name, and nothing is remembered of one that had it.
    #[error("no route has this name, and nothing is remembered of one that had it")]
    NoRoute(Vec<String>),
    /// Nothing is decided about it as it stands.
    #[error("nothing was decided: the operation's state is `{state}`, at attempt {attempt}")]
    Stands {
        /// How it stands.
        state: String,
        /// Its latest attempt.
        attempt: u32,
    },
    /// The admin API said no for another reason.
    #[error("{}", .0.sentence())]
    Refused(Box<Problem>),
}

/// The innermost cause of a failed call; the others only repeat it.
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

/// What the type of every problem starts with.
const CODES: &str = "urn:onceward:problem:";

/// A refusal of the admin API (RFC 9457), with the words that matter here.
#[derive(Debug, Deserialize)]
pub(in crate::cli) struct Problem {
    #[serde(rename = "type")]
    pub(super) kind: String,
    title: String,
    pub(super) status: u16,
    detail: Option<String>,
    pub(super) state: Option<String>,
    pub(super) attempt: Option<u32>,
    /// Seconds until another try makes sense: from the header.
    #[serde(skip)]
    pub(super) retry_after: Option<u64>,
}

impl Problem {
    fn sentence(&self) -> String {
        let detail = self.detail.iter().map(|detail| format!(": {}", plain(detail)));
        format!("{}{}", plain(&self.title), detail.collect::<String>())
    }

    /// Whether it is one that the admin API makes, and not the listener for senders, say.
    pub(super) fn is_of_admin(&self) -> bool {
        self.kind.starts_with(CODES) && !self.is("no-route")
    }

    fn is(&self, code: &str) -> bool {
        self.kind.strip_prefix(CODES) == Some(code)
    }

    fn hint(&self) -> Option<String> {
        if self.status == StatusCode::UNAUTHORIZED.as_u16() {
            return Some(
                "`ONCEWARD_ADMIN_TOKEN` or `--token-file` must give the `admin.token` of the proxy"
                    .to_owned(),
            );
        }
        if self.is("no-reply") {
            return Some("`onceward operations show` says how it stands now".to_owned());
        }
        self.retry_after.map(|seconds| format!("try again in {seconds} s"))
    }
}

impl Error {
    /// What became of a call about one operation, that nothing may be remembered of.
    pub(super) fn about(self, id: OperationId) -> Self {
        let is_unknown = matches!(&self, Self::Refused(problem) if problem.is("no-such-operation"));
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
            Self::Stranger { .. } => {
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
            Self::Stands { state, .. } => hint_of(state),
            Self::Refused(problem) => problem.hint(),
            Self::Url
            | Self::TokenFile(..)
            | Self::Token
            | Self::Declined
            | Self::Runtime(_)
            | Self::NoAnswer { may_have_changed: false, .. } => None,
        }
    }

    const fn status(&self) -> u8 {
        match self {
            Self::Url | Self::TokenFile(..) | Self::Token | Self::CannotAsk => 2,
            Self::Declined
            | Self::Runtime(_)
            | Self::Connect { .. }
            | Self::NoAnswer { .. }
            | Self::Stranger { .. }
            | Self::NotUnderstood
            | Self::Unknown(_)
            | Self::NoRoute(_)
            | Self::Stands { .. }
            | Self::Refused(_) => 1,
        }
    }
}

/// What to do about an operation that cannot be decided about.
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

impl From<Error> for Ended {
    fn from(error: Error) -> Self {
        let failed = Self { status: error.status(), ..Self::failed(&error) };
        match error.hint() {
            Some(hint) => failed.with_hint(&hint),
            None => failed,
        }
    }
}
