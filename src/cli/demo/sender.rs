//! A sender of webhooks: patient or not, and what it gets to hear.

use std::fmt;
use std::net::SocketAddr;
use std::time::Duration;

use reqwest::redirect::Policy;

use super::event::Event;

/// Sends copies. Never twice what it was asked to send once.
#[derive(Debug, Clone)]
pub(super) struct Sender {
    client: reqwest::Client,
    proxy: SocketAddr,
}

/// What a sender got for one copy.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Answer {
    /// The receiver's answer to this copy.
    Executed(u16),
    /// Its answer to an earlier one.
    Replayed(u16),
    /// An earlier copy is still being worked on.
    InFlight(u16),
    /// It waited for this long, and hung up.
    GaveUp(Duration),
    /// Nothing that the demo expects.
    Other(String),
}

impl Sender {
    pub(super) fn new(proxy: SocketAddr) -> reqwest::Result<Self> {
        let client = reqwest::Client::builder()
            .no_proxy()
            .redirect(Policy::none())
            .retry(reqwest::retry::never())
            .build()?;
        Ok(Self { client, proxy })
    }

    /// Sends one copy and waits for the answer, however long it takes.
    pub(super) async fn send(&self, event: &Event) -> Answer {
        let url = format!("http://{}{}", self.proxy, event.path);
        let mut request = self.client.post(url).header("content-type", "application/json");
        for (name, value) in event.headers {
            request = request.header(*name, *value);
        }
        match request.body(event.body).send().await {
            Ok(response) => Answer::of(&response),
            Err(error) => Answer::Other(error.to_string()),
        }
    }

    /// Sends one copy, and hangs up if the answer takes too long.
    pub(super) async fn send_within(&self, patience: Duration, event: &Event) -> Answer {
        let answer = tokio::time::timeout(patience, self.send(event)).await;
        answer.unwrap_or(Answer::GaveUp(patience))
    }
}

impl Answer {
    fn of(response: &reqwest::Response) -> Self {
        let status = response.status().as_u16();
        let header = |name| response.headers().get(name).and_then(|value| value.to_str().ok());
        match (header("onceward-disposition"), header("idempotent-replayed")) {
            (Some("executed"), None) => Self::Executed(status),
            (Some("replayed"), Some("true")) => Self::Replayed(status),
            (Some("in-flight"), None) => Self::InFlight(status),
            (disposition, _) => Self::Other(format!("{status} {disposition:?}")),
        }
    }
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Executed(status) => write!(f, "{status} from the receiver"),
            Self::Replayed(status) => write!(f, "{status} with Idempotent-Replayed: true"),
            Self::InFlight(status) => write!(f, "{status} in flight, with Retry-After"),
            Self::GaveUp(patience) => {
                write!(f, "no answer for {} s: the sender gives up", patience.as_secs())
            }
            Self::Other(what) => f.write_str(what),
        }
    }
}
