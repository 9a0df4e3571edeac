//! What senders send.

use std::fmt::Write as _;

use serde_json::{Value, json};

/// A request of a sender.
#[derive(Debug, Clone)]
pub struct Event {
    pub method: &'static str,
    pub path: String,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

/// An event with this id and the type `payment.paid`, for the route `hooks`.
pub fn event(id: &str) -> Event {
    Event::json(&json!({ "id": id, "type": "payment.paid", "data": { "amount": 1000 } }))
}

impl Event {
    pub fn json(body: &Value) -> Self {
        Self::bytes(body.to_string()).header("content-type", "application/json")
    }

    pub fn bytes(body: impl Into<Vec<u8>>) -> Self {
        Self { method: "POST", path: "/hooks".into(), headers: Vec::new(), body: body.into() }
    }

    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// Sets a header in place of whatever it has of this name.
    pub fn with(mut self, name: &str, value: &str) -> Self {
        self.headers.retain(|(other, _)| !other.eq_ignore_ascii_case(name));
        self.header(name, value)
    }

    pub fn without(mut self, name: &str) -> Self {
        self.headers.retain(|(other, _)| !other.eq_ignore_ascii_case(name));
        self
    }

    /// The value of a header that it has.
    pub fn value(&self, name: &str) -> String {
        let found = self.headers.iter().find(|(other, _)| other.eq_ignore_ascii_case(name));
        found.expect("the header is there").1.clone()
    }

    /// The value of a field of its form.
    pub fn field(&self, name: &str) -> String {
        let mut fields = form_urlencoded::parse(&self.body);
        fields.find(|(other, _)| other == name).expect("the field is there").1.into_owned()
    }

    /// The same with its JSON changed.
    pub fn rewritten(mut self, change: impl FnOnce(&mut Value)) -> Self {
        let mut body = serde_json::from_slice(&self.body).unwrap();
        change(&mut body);
        self.body = body.to_string().into_bytes();
        self
    }

    /// Lines of headers, a blank line and the body.
    pub fn written(text: &str) -> Self {
        let (head, body) = text
            .split_once("\n\n")
            .unwrap_or_else(|| text.strip_prefix('\n').map_or((text, ""), |body| ("", body)));
        let lines = head.lines().map(|line| line.split_once(": ").unwrap());
        lines.fold(Self::bytes(body), |event, (name, value)| event.header(name, value))
    }

    pub fn keyed(self, key: &str) -> Self {
        self.header("x-idempotency-key", key)
    }

    pub fn to(mut self, path: &str) -> Self {
        self.path = path.into();
        self
    }

    pub fn by(mut self, method: &'static str) -> Self {
        self.method = method;
        self
    }

    /// The bytes of the request as HTTP/1.1, for a raw connection.
    pub fn raw(&self) -> Vec<u8> {
        let mut head = format!("{} {} HTTP/1.1\r\nhost: hooks.example\r\n", self.method, self.path);
        for (name, value) in &self.headers {
            write!(head, "{name}: {value}\r\n").unwrap();
        }
        write!(head, "content-length: {}\r\n\r\n", self.body.len()).unwrap();
        let mut bytes = head.into_bytes();
        bytes.extend_from_slice(&self.body);
        bytes
    }
}
