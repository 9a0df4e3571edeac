//! Routes and requests for the tests of identification.

mod fingerprint;
mod key;
mod places;

use std::collections::HashSet;

use http::{HeaderMap, HeaderName, HeaderValue};

use super::*;
use crate::json::Document;
use crate::operation::RequestMode;
use crate::provider::signature::Carried;

/// A route with the built-in rules: the key is in `x-idempotency-key` or `idempotency-key`,
/// otherwise in `/id` and `/type?`.
struct Route {
    name: Arc<str>,
    prefix: bool,
    methods: Vec<Method>,
    key: KeyRule,
    fingerprint: FingerprintRule,
    when_key_missing: WhenKeyMissing,
}

fn route(name: &str) -> Route {
    let headers = ["x-idempotency-key", "idempotency-key"].map(HeaderName::from_static).to_vec();
    let [id, kind] = ["json:/id", "json:/type?"].map(|text| text.parse().unwrap());
    Route {
        name: name.into(),
        prefix: false,
        methods: vec![Method::POST, Method::PUT, Method::PATCH, Method::DELETE],
        key: KeyRule {
            headers,
            event: EventRule { source: name.to_owned(), id, kind },
            scope: Vec::new(),
        },
        fingerprint: FingerprintRule {
            over: FingerprintOver::Auto { untyped_events: false },
            ignore: Vec::new(),
        },
        when_key_missing: WhenKeyMissing::Refuse,
    }
}

impl Route {
    fn prefix(self) -> Self {
        Self { prefix: true, ..self }
    }

    fn without_key(self, when_key_missing: WhenKeyMissing) -> Self {
        Self { when_key_missing, ..self }
    }

    fn id(mut self, selector: &str) -> Self {
        self.key.event.id = selector.parse().unwrap();
        self
    }

    fn kind(mut self, selector: &str) -> Self {
        self.key.event.kind = selector.parse().unwrap();
        self
    }

    fn scope(mut self, selectors: &[&str]) -> Self {
        self.key.scope = selectors.iter().map(|text| text.parse().unwrap()).collect();
        self
    }

    fn over(mut self, over: FingerprintOver) -> Self {
        self.fingerprint.over = over;
        self
    }

    fn over_parts(self, selectors: &[&str]) -> Self {
        let parts = selectors.iter().map(|text| text.parse().unwrap()).collect();
        self.over(FingerprintOver::Parts(parts))
    }

    fn ignore(mut self, pointers: &[&str]) -> Self {
        self.fingerprint.ignore = pointers.iter().map(|text| text.parse().unwrap()).collect();
        self
    }

    /// The sender is not known.
    fn of_nobody(self) -> Self {
        self.over(FingerprintOver::Auto { untyped_events: true })
    }

    fn identifies(&self, sent: &Sent) -> Result<Identity, Unread> {
        self.tells(sent).map_err(|error| error.why)
    }

    fn tells(&self, sent: &Sent) -> Result<Identity, IdentifyError> {
        let rules = Rules {
            mode: RequestMode::Enforce,
            route: &self.name,
            prefix: self.prefix.then_some("/orders"),
            methods: &self.methods,
            key: &self.key,
            fingerprint: &self.fingerprint,
            when_key_missing: self.when_key_missing,
        };
        let request = RequestView {
            method: &sent.method,
            path: &sent.path,
            query: None,
            headers: &sent.headers,
            body: Document::new(&sent.body),
            carried: &Carried::default(),
        };
        identify(&rules, &request)
    }

    fn keys(&self, sent: &Sent) -> Identified {
        match self.identifies(sent) {
            Ok(Identity::Keyed(identified)) => identified,
            other => panic!("no operation: {other:?}"),
        }
    }

    fn subject(&self, sent: &Sent) -> Arc<Subject> {
        self.keys(sent).subject
    }

    fn ids<'a>(&self, all: impl IntoIterator<Item = &'a Sent>) -> HashSet<OperationId> {
        all.into_iter().map(|sent| self.subject(sent).id).collect()
    }

    fn compares_equal(&self, one: &Sent, other: &Sent) -> bool {
        self.subject(one).fingerprint.matches(&self.subject(other).fingerprint)
    }
}

struct Sent {
    method: Method,
    path: String,
    headers: HeaderMap,
    body: Vec<u8>,
}

fn post(body: impl AsRef<[u8]>) -> Sent {
    let body = body.as_ref().to_vec();
    Sent { method: Method::POST, path: "/orders".to_owned(), headers: HeaderMap::new(), body }
}

impl Sent {
    fn key(self, key: &str) -> Self {
        self.header("x-idempotency-key", key)
    }

    fn header(mut self, name: &'static str, value: &str) -> Self {
        self.headers.append(name, HeaderValue::from_bytes(value.as_bytes()).unwrap());
        self
    }

    fn to(self, method: Method, path: &str) -> Self {
        Self { method, path: path.to_owned(), ..self }
    }
}

const EVENT: &str = r#"{"id":"evt_1","type":"paid"}"#;

fn missing(reason: MissingReason) -> Result<Identity, Unread> {
    Err(reason.into())
}

fn invalid(reason: InvalidReason) -> Result<Identity, Unread> {
    Err(reason.into())
}
