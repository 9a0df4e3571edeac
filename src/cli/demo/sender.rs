//! A sender of webhooks, and the answers that it gets.

use std::fmt;
use std::net::SocketAddr;
use std::time::Duration;

use reqwest::redirect::Policy;

use super::event::Event;

/// Sends copies of events to the proxy.
#[derive(Debug, Clone)]
pub(super) struct Sender {
    client: reqwest::Client,
    proxy: SocketAddr,
}

/// What a sender gets for one copy.
#[derive(Debug)]
pub(super) struct Reply {
    pub(super) answer: Answer,
    /// The operation id, from the header `Onceward-Operation`.
    pub(super) operation: Option<String>,
}

/// The kind of answer to one copy, with its status.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Answer {
    /// The upstream's answer to this copy.
    Executed(u16),
    /// The proxy's answer in place of the upstream, which gave none.
    Unanswered(u16),
    /// The upstream's answer to an earlier copy, or the one that an operator gave.
    Replayed(u16),
    /// An attempt of this operation is in flight.
    InFlight(u16),
    /// Nobody knows whether the operation was done.
    Uncertain(u16),
    /// No answer within this time. The sender hung up.
    GaveUp(Duration),
    /// An answer that the demo does not expect.
    Other(String),
}

impl Sender {
    pub(super) fn new(proxy: SocketAddr) -> reqwest::Result<Self> {
        let client = reqwest::Client::builder()
            .no_proxy()
            .redirect(Policy::none())
            // A copy that the client sent by itself would not be counted as sent.
            .retry(reqwest::retry::never())
            .build()?;
        Ok(Self { client, proxy })
    }

    /// Sends one copy and waits for the answer, however long it takes.
    pub(super) async fn send(&self, event: &Event) -> Reply {
        let url = format!("http://{}{}", self.proxy, event.path);
        let mut request = self.client.post(url).header("content-type", "application/json");
        for (name, value) in event.headers {
            request = request.header(*name, *value);
        }
        match request.body(event.body).send().await {
            Ok(response) => Reply::of(&response),
            Err(error) => Reply { answer: Answer::Other(error.to_string()), operation: None },
        }
    }

    /// Sends one copy, and hangs up if there is no answer within this time.
    pub(super) async fn send_within(&self, patience: Duration, event: &Event) -> Answer {
        let reply = tokio::time::timeout(patience, self.send(event)).await;
        reply.map_or(Answer::GaveUp(patience), |reply| reply.answer)
    }
}

impl Reply {
    fn of(response: &reqwest::Response) -> Self {
        let header = |name| response.headers().get(name).and_then(|value| value.to_str().ok());
        let operation = header("onceward-operation").map(str::to_owned);
        let status = response.status().as_u16();
        let is_replayed = header("idempotent-replayed") == Some("true");
        // The proxy writes problem documents, and the sample upstream writes none.
        let is_problem = header("content-type") == Some("application/problem+json");
        let answer = match (header("onceward-disposition"), is_replayed, is_problem) {
            (Some("executed"), false, false) => Answer::Executed(status),
            (Some("executed"), false, true) => Answer::Unanswered(status),
            (Some("replayed"), true, false) => Answer::Replayed(status),
            (Some("in-flight"), false, true) => Answer::InFlight(status),
            (Some("uncertain"), false, true) => Answer::Uncertain(status),
            (disposition, _, _) => Answer::Other(format!("{status} {disposition:?}")),
        };
        Self { answer, operation }
    }
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Executed(status) => write!(f, "{status} from the upstream"),
            Self::Unanswered(status) => write!(f, "{status}, no answer from the upstream in time"),
            Self::Replayed(status) => write!(f, "{status} with Idempotent-Replayed: true"),
            Self::InFlight(status) => write!(f, "{status} in flight, with Retry-After"),
            Self::Uncertain(status) => write!(f, "{status} uncertain, with Retry-After"),
            Self::GaveUp(patience) => {
                write!(f, "no answer for {} s: the sender gives up", patience.as_secs())
            }
            Self::Other(what) => f.write_str(what),
        }
    }
}
