//! What a sender got, and what it must be.

use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use serde_json::Value;

/// An answer of the proxy.
#[derive(Debug, Clone)]
pub struct Reply {
    pub status: u16,
    pub headers: HeaderMap,
    pub body: Vec<u8>,
}

impl Reply {
    pub async fn of(response: reqwest::Response) -> Self {
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        let body = response.bytes().await.expect("a whole body").to_vec();
        Self { status, headers, body }
    }

    /// An answer as it stands on the wire, without a body.
    pub fn head(bytes: &[u8]) -> Self {
        let mut headers = [httparse::EMPTY_HEADER; 100];
        let mut response = httparse::Response::new(&mut headers);
        assert!(response.parse(bytes).unwrap().is_complete(), "{bytes:?}");
        let pairs = response.headers.iter().map(|header| {
            let name = HeaderName::from_bytes(header.name.as_bytes()).unwrap();
            (name, HeaderValue::from_bytes(header.value).unwrap())
        });
        Self { status: response.code.unwrap(), headers: pairs.collect(), body: Vec::new() }
    }

    /// All values of a header, in order.
    pub fn values(&self, name: &str) -> Vec<&[u8]> {
        self.headers.get_all(name).iter().map(HeaderValue::as_bytes).collect()
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().expect("visible ASCII"))
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub fn operation(&self) -> String {
        self.header("onceward-operation").expect("an operation").to_owned()
    }

    pub fn problem(&self) -> Value {
        assert_eq!(self.header("content-type"), Some("application/problem+json"), "{self:?}");
        serde_json::from_slice(&self.body).expect("JSON")
    }

    /// It was forwarded, and this is the upstream's answer.
    #[track_caller]
    pub fn is_executed(&self, status: u16) -> &Self {
        assert_eq!(self.disposition(), "executed", "{self:?}");
        assert_eq!(self.status, status, "{self:?}");
        assert_eq!(self.header("idempotent-replayed"), None, "{self:?}");
        self
    }

    #[track_caller]
    pub fn is_replayed(&self, status: u16) -> &Self {
        assert_eq!(self.disposition(), "replayed", "{self:?}");
        assert_eq!(self.header("idempotent-replayed"), Some("true"), "{self:?}");
        assert_eq!(self.status, status, "{self:?}");
        self
    }

    #[track_caller]
    pub fn is_passed(&self, status: u16) -> &Self {
        assert_eq!(self.disposition(), "passed", "{self:?}");
        assert_eq!(self.status, status, "{self:?}");
        assert_eq!(self.header("onceward-operation"), None, "{self:?}");
        self
    }

    #[track_caller]
    pub fn is_in_flight(&self, status: u16) -> &Self {
        self.is_problem("in-flight", status, "in-flight");
        self.comes_back()
    }

    #[track_caller]
    pub fn is_uncertain(&self) -> &Self {
        self.is_problem("uncertain", 503, "uncertain");
        self.comes_back()
    }

    #[track_caller]
    pub fn is_mismatched(&self) -> &Self {
        self.is_problem("mismatched", 422, "key-reused")
    }

    /// Forwarded, without a complete answer: `upstream-unreachable` and its like.
    #[track_caller]
    pub fn is_executed_as(&self, code: &str, status: u16) -> &Self {
        self.is_problem("executed", status, code)
    }

    #[track_caller]
    pub fn is_refused(&self, status: u16, code: &str) -> &Self {
        self.is_problem("refused", status, code)
    }

    #[track_caller]
    fn is_problem(&self, disposition: &str, status: u16, code: &str) -> &Self {
        assert_eq!(self.disposition(), disposition, "{self:?}");
        assert_eq!(self.status, status, "{self:?}");
        let problem = self.problem();
        assert_eq!(problem["type"], format!("urn:onceward:problem:{code}"), "{self:?}");
        assert_eq!(problem["status"], status, "{self:?}");
        self
    }

    /// After how many seconds to come back.
    #[track_caller]
    pub fn retry_after(&self) -> u64 {
        self.header("retry-after").expect("Retry-After").parse().unwrap()
    }

    /// It says when to come back: 1 to 30 seconds.
    #[track_caller]
    pub fn comes_back(&self) -> &Self {
        assert!((1..=30).contains(&self.retry_after()), "{self:?}");
        self
    }

    #[track_caller]
    pub fn disposition(&self) -> &str {
        self.header("onceward-disposition").expect("a disposition")
    }
}
