//! Vectors from the senders' own tests and documents, each through a running proxy and through
//! `onceward explain`.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::sync::LazyLock;

use onceward::clock::Clock;
use onceward::operation::Timestamp;
use onceward::provider::signature::Certificates;
use serde::Deserialize;
use serde_json::Value;

use super::CLAIMS;
use crate::support::{Event, Inside, Receiver, signing};

#[derive(Deserialize)]
struct File {
    vectors: Vec<Vector>,
}

#[derive(Deserialize)]
struct Vector {
    id: String,
    scheme: String,
    secret: Option<String>,
    webhook_id: Option<String>,
    certificate_pem: Option<String>,
    method: String,
    url: Option<String>,
    headers: BTreeMap<String, String>,
    body_utf8: Option<String>,
    body_repeat: Option<Repeat>,
    now: Option<u64>,
    expect: String,
    expected_digest: Option<String>,
    expected_response: Option<String>,
}

#[derive(Deserialize)]
struct Repeat {
    text: String,
    count: usize,
}

static VECTORS: LazyLock<Vec<Vector>> = LazyLock::new(|| {
    let text = include_str!("../../fixtures/signature_vectors.json");
    serde_json::from_str::<File>(text).unwrap().vectors
});

/// Those whose signature is not there, and those whose time is another one. All the other invalid
/// ones are `invalid`.
const MISSING: [&str; 1] = ["stdwh-v1-missing-signature"];
const STALE: [&str; 2] = ["stdwh-v1-too-new-301s", "slack-expired"];

impl Vector {
    fn provider(&self) -> &str {
        match self.scheme.as_str() {
            "adyen-item" => "adyen",
            "adyen-raw" => "adyen-platform",
            "braintree-digest" | "braintree-challenge" => "braintree",
            // The preset takes the third version alone.
            "hubspot" if !self.headers.contains_key("X-HubSpot-Signature-v3") => "hubspot-old",
            other => other,
        }
    }

    fn verdict(&self) -> &'static str {
        match self.expect.as_str() {
            "valid" => "valid",
            _ if MISSING.contains(&&*self.id) => "missing",
            _ if STALE.contains(&&*self.id) => "stale",
            _ => "invalid",
        }
    }

    /// As it comes to the proxy: the start of the URL is in the configuration.
    fn event(&self) -> Event {
        let body = match (&self.body_utf8, &self.body_repeat) {
            (Some(text), None) => text.clone(),
            (None, Some(Repeat { text, count })) => text.repeat(*count),
            _ => panic!("{}: one body", self.id),
        };
        let mut event = Event::bytes(self.as_sent(body)).to(self.split_url().1);
        if self.method == "GET" && self.expected_response.is_none() {
            event = event.by("GET");
        }
        for (name, value) in &self.headers {
            event = event.header(name, value);
        }
        event.header("x-test-key", &self.id)
    }

    fn split_url(&self) -> (&str, &str) {
        let url = self.url.as_deref().filter(|_| self.expected_response.is_none());
        let url = url.unwrap_or("https://hooks.example/hook");
        let host = url.find("://").unwrap() + 3;
        let path = host + url[host..].find('/').unwrap();
        url.split_at(path)
    }

    /// Some vectors are only the innermost part of what is sent.
    fn as_sent(&self, body: String) -> String {
        let form = |payload: &str, signature: &str| {
            form_urlencoded::Serializer::new(String::new())
                .append_pair("bt_signature", signature)
                .append_pair("bt_payload", payload)
                .finish()
        };
        if self.scheme == "adyen-item" && !body.contains("notificationItems") {
            format!("{{\"notificationItems\":[{{\"NotificationRequestItem\":{body}}}]}}")
        } else if let Some(digest) = &self.expected_digest {
            form(&body, &format!("public|{digest}"))
        } else if let Some(response) = &self.expected_response {
            // The answer to a challenge is made as a signature is.
            let (_, challenge) = self.url.as_ref().unwrap().split_once("bt_challenge=").unwrap();
            form(challenge, response)
        } else {
            body
        }
    }

    /// Their bodies are no events, so the key is in a header. A vector that does not say when it
    /// came may be of any time.
    fn toml(&self, upstream: &str) -> String {
        let tolerance = if self.now.is_some() { "" } else { "tolerance = \"3650d\"" };
        let signs_url = ["square", "twilio", "hubspot", "hubspot-old"].contains(&self.provider());
        let (public_url, _) = self.split_url();
        let public_url =
            if signs_url { format!("public_url = \"{public_url}\"") } else { String::new() };
        format!(
            "[store.memory]\n[routes.vector]\npath = \"/*\"\nupstream = \"{upstream}\"\n\
             provider = \"{}\"\nsecrets = [{{ env = \"THE_SECRET\" }}]\n{tolerance}\n{public_url}\n\
             methods = [\"GET\", \"POST\"]\nkey = {{ header = [\"x-test-key\"] }}\n\
             [providers.{}]\nkey.scope = []\n\
             [providers.hubspot-old.signature]\nscheme = \"hubspot\"\naccept = [\"v2\", \"v1\"]\n",
            self.provider(),
            self.provider(),
        )
    }

    fn now(&self) -> u64 {
        self.now.unwrap_or(1_700_000_000)
    }

    fn secret(&self) -> &str {
        self.secret.as_deref().or(self.webhook_id.as_deref()).unwrap()
    }

    fn certificates(&self) -> Certificates {
        let trusted = self
            .certificate_pem
            .as_ref()
            .map(|pem| (self.headers["PAYPAL-CERT-URL"].clone(), pem.clone().into_bytes()));
        Certificates::with_trusted(Clock::system(), trusted).unwrap()
    }

    fn explained(&self, directory: &Path) -> Value {
        let config = directory.join("onceward.toml");
        let request = directory.join("captured.http");
        std::fs::write(&config, self.toml("http://127.0.0.1:1")).unwrap();
        std::fs::write(&request, self.event().raw()).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_onceward"));
        command.arg("explain").arg("--config").arg(&config).arg("--request").arg(&request);
        command.arg("--json").env("THE_SECRET", self.secret());
        command.arg("--at").arg(signing::rfc3339(self.now()));
        if let Some(pem) = &self.certificate_pem {
            let file = directory.join("certificate.pem");
            std::fs::write(&file, pem).unwrap();
            let url = &self.headers["PAYPAL-CERT-URL"];
            command.arg("--certificate").arg(format!("{url}={}", file.display()));
        }
        let output = command.output().unwrap();
        assert!(output.status.success(), "{}: {output:?}", self.id);
        serde_json::from_slice(&output.stdout).unwrap()
    }
}

/// What is valid is forwarded and vouched for; what is not reaches neither the
/// receiver nor the store.
#[tokio::test]
async fn every_vector_gets_its_verdict_from_the_running_proxy() {
    assert_eq!(VECTORS.len(), 100);
    let receiver = Receiver::that_answers(200, "ok").await;
    for vector in VECTORS.iter() {
        let clock = Clock::manual(Timestamp(vector.now() * 1000));
        let toml = vector.toml(&receiver.url());
        let secret = [("THE_SECRET", vector.secret())];
        let proxy = Inside::with(&toml, &secret, clock, vector.certificates());
        let event = vector.event();
        let before = receiver.count();
        let reply = proxy.sends(event.clone()).await;
        let id = &vector.id;
        if vector.expect == "valid" {
            assert_eq!(reply.disposition(), "executed", "{id}: {}", reply.text());
            assert_eq!(receiver.count(), before + 1, "{id}");
            let seen = receiver.seen().pop().unwrap();
            assert_eq!(seen.header("onceward-verified"), Some(vector.provider()), "{id}");
            assert_eq!((seen.target, seen.body), (event.path, event.body), "{id}");
            assert_eq!(proxy.metric(CLAIMS), 1.0, "{id}");
        } else {
            let code = format!("urn:onceward:problem:signature-{}", vector.verdict());
            assert_eq!((reply.status, &reply.problem()["type"]), (401, &Value::from(code)), "{id}");
            assert_eq!(receiver.count(), before, "{id}");
            assert_eq!(proxy.metric(CLAIMS), 0.0, "{id}");
        }
    }
}

#[test]
fn every_vector_gets_its_verdict_from_explain() {
    let directory = tempfile::tempdir().unwrap();
    for vector in VECTORS.iter() {
        let explained = vector.explained(directory.path());
        let id = &vector.id;
        let signature = &explained["signature"];
        assert_eq!(signature["verdict"], vector.verdict(), "{id}: {explained}");
        assert_eq!(signature["reason"].is_null(), vector.expect == "valid", "{id}: {explained}");
        let disposition = if vector.expect == "valid" { "executed" } else { "refused" };
        assert_eq!(explained["disposition"], disposition, "{id}: {explained}");
        assert_eq!(explained["provider"], vector.provider(), "{id}");
        // Who asks here may know what it would have been.
        assert_eq!(explained["key"]["parts"], serde_json::json!([id]), "{explained}");
    }
}
