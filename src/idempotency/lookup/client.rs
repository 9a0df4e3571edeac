//! The client of a receiver that can be asked whether it has done an uncertain operation.
//!
//! It asks the receiver once. A complete 404 means that the operation was not done. A complete 2xx
//! answer that meets all conditions means that it was done. Anything else leaves the operation
//! held, such as a redirect, or an answer that is late, too long or unreadable.

use std::time::Duration;

use http::{HeaderMap, StatusCode};
use reqwest::{Client, Response, Url};
use tokio::time::timeout;

use super::template::{LookupValues, UrlTemplate};
use crate::idempotency::reference::Reference;
use crate::json::{self, Found, Pointer};
use crate::operation::state::Finding;
use crate::telemetry::chain;
use crate::upstream::TrustStore;

/// The longest answer, in bytes, that is read.
const ANSWER_BYTES_MAX: usize = 64 * 1024;

/// How a receiver is asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LookupSettings {
    /// The URL to ask.
    pub url: UrlTemplate,
    /// The longest time that a look-up may take, from the resolution of the name to the last byte.
    pub timeout: Duration,
    /// The conditions that a 2xx answer must meet to mean that the operation was done.
    pub done_when: Vec<Condition>,
    /// Headers of the request, such as `Authorization`. Their values are marked as sensitive.
    pub headers: HeaderMap,
    /// Where the answer has the receiver's reference for the operation.
    pub reference: Option<Reference>,
}

/// The value that a member of a JSON answer must have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Condition {
    /// Where the member stands in the answer.
    pub member: Pointer,
    /// The value that it must have.
    pub value: Scalar,
}

/// A value with which a member can be compared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Scalar {
    /// A text, however its characters are escaped.
    Text(String),
    /// A number or a boolean, as JSON writes it.
    Literal(String),
}

/// The result of a look-up.
#[derive(Debug)]
pub(in crate::idempotency) struct LookupResult {
    pub(in crate::idempotency) finding: Finding,
    /// How the receiver answered. This text holds nothing of the answer but the status, because it
    /// is logged and shown.
    pub(in crate::idempotency) reason: String,
    /// The receiver's reference for the operation.
    pub(in crate::idempotency) reference: Option<String>,
}

/// Asks a receiver.
#[derive(Debug)]
pub(in crate::idempotency) struct LookupClient {
    settings: LookupSettings,
    client: Option<Client>,
}

impl LookupClient {
    /// Makes a client. The receiver's certificate is checked like that of an upstream.
    pub(in crate::idempotency) fn new(settings: LookupSettings, trust: &TrustStore) -> Self {
        let client = Client::builder()
            .tls_backend_preconfigured(trust.client_config())
            .http1_only()
            .no_proxy()
            .redirect(reqwest::redirect::Policy::none())
            .retry(reqwest::retry::never())
            .referer(false)
            // The receiver may close an idle connection while a request is sent. That would look
            // like a missing answer.
            .pool_max_idle_per_host(0)
            .user_agent(concat!("onceward/", env!("CARGO_PKG_VERSION")))
            .build()
            .inspect_err(|error| tracing::error!(error = %chain(error), "no look-ups can be made"))
            .ok();
        Self { settings, client }
    }

    /// Asks the receiver. Dropping the future closes the connection.
    pub(super) async fn ask(&self, values: &LookupValues<'_>) -> LookupResult {
        let Some(client) = &self.client else {
            return LookupResult::unknown("no look-ups can be made");
        };
        if values.event_id.is_empty() && self.settings.url.names_the_event() {
            return LookupResult::unknown("not asked: the key is not the id of an event");
        }
        let Some(url) = self.settings.url.of(values) else {
            return LookupResult::unknown("not asked: the key cannot be a part of the URL");
        };
        let asked = timeout(self.settings.timeout, self.exchange(client, url)).await;
        asked.unwrap_or_else(|_| LookupResult::unknown("no answer in time"))
    }

    async fn exchange(&self, client: &Client, url: Url) -> LookupResult {
        let request = client.get(url).headers(self.settings.headers.clone());
        let response = match request.send().await {
            Ok(response) => response,
            Err(error) if error.is_connect() => return LookupResult::unknown("no connection"),
            Err(_) => return LookupResult::unknown("no answer"),
        };
        let status = response.status();
        if status != StatusCode::NOT_FOUND && !status.is_success() {
            return LookupResult::unknown(&format!("answered {}", status.as_u16()));
        }
        let headers = response.headers().clone();
        // The failure that cuts an answer off may also have made its status, so only a complete
        // answer counts.
        match read(response).await {
            Ok(body) => self.judge(status, &headers, &body),
            Err(why) => LookupResult::unknown(why),
        }
    }

    /// Judges a complete answer with status 404 or 2xx.
    fn judge(&self, status: StatusCode, headers: &HeaderMap, body: &[u8]) -> LookupResult {
        // RFC 9110, section 15.5.5: the receiver has no resource for the operation. Only 404 says
        // so. Other statuses may come from an error, a missing permission or a wrong route of the
        // receiver.
        if status == StatusCode::NOT_FOUND {
            let reason = "answered 404".to_owned();
            return LookupResult { finding: Finding::NotDone, reason, reference: None };
        }
        let reference = self.settings.reference.as_ref();
        let reference = reference.and_then(|reference| reference.read(headers, Some(body)));
        let reason = format!("answered {}", status.as_u16());
        if self.settings.done_when.iter().all(|condition| condition.holds(body)) {
            return LookupResult { finding: Finding::Done, reason, reference };
        }
        let reason = format!("{reason}, and not that it is done");
        LookupResult { finding: Finding::Unknown, reason, reference }
    }
}

impl LookupResult {
    /// The result if the receiver did not say whether the operation was done.
    pub(super) fn unknown(reason: &str) -> Self {
        Self { finding: Finding::Unknown, reason: reason.to_owned(), reference: None }
    }
}

impl Condition {
    fn holds(&self, body: &[u8]) -> bool {
        // A member that is there twice has no single value, so the condition does not hold.
        let Found::Values(values) = json::find(body, &self.member) else { return false };
        let [value] = values.as_slice() else { return false };
        match &self.value {
            Scalar::Text(text) => {
                serde_json::from_str::<String>(value).is_ok_and(|value| value == *text)
            }
            Scalar::Literal(literal) => value.trim() == literal,
        }
    }
}

/// Reads the whole body, if it is not too long.
async fn read(mut response: Response) -> Result<Vec<u8>, &'static str> {
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(|_| "its answer broke off")? {
        if body.len() + chunk.len() > ANSWER_BYTES_MAX {
            return Err("its answer is too long");
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn condition(member: &str, value: Scalar) -> Condition {
        Condition { member: member.parse().unwrap(), value }
    }

    #[test]
    fn a_condition_holds_for_one_member_of_that_value_alone() {
        let done = condition("/status", Scalar::Text("done".to_owned()));
        for held in [r#"{"status":"done"}"#, r#"{"status":"d\u006fne"}"#] {
            assert!(done.holds(held.as_bytes()), "{held}");
        }
        for refused in [
            "",
            "done",
            "{",
            r#"{"status":"Done"}"#,
            r#"{"status":["done"]}"#,
            r#"{"status":"done"} x"#,
            r#"{"status":"done","status":"done"}"#,
            r#"{"state":"done"}"#,
        ] {
            assert!(!done.holds(refused.as_bytes()), "{refused}");
        }
    }

    #[test]
    fn a_number_is_not_the_text_of_its_digits() {
        let one = condition("/n", Scalar::Literal("1".to_owned()));
        assert!(one.holds(br#"{"n": 1 }"#));
        assert!(!one.holds(br#"{"n":"1"}"#) && !one.holds(br#"{"n":1.0}"#));
        let yes = condition("/n", Scalar::Literal("true".to_owned()));
        assert!(yes.holds(br#"{"n":true}"#) && !yes.holds(br#"{"n":"true"}"#));
    }
}
