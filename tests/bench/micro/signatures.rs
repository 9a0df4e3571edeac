//! The check of signatures, by the published requests with which the presets are tested.

#[path = "../../presets/samples.rs"]
#[expect(dead_code, reason = "only what the check of the signature needs is read here")]
mod samples;

use std::collections::BTreeMap;
use std::hint::black_box;

use criterion::Criterion;
use futures_util::FutureExt as _;
use http::Request;
use http::request::Parts;
use onceward::clock::Clock;
use onceward::config::Config;
use onceward::operation::Timestamp;
use onceward::provider::signature::Certificates;
use onceward::proxy::Sender;
use onceward::secret::Secret;
use serde::Deserialize;

use samples::{Sample, folder, samples};

/// Each scheme but ECDSA, with a request that is signed by it. HubSpot's is of its third version.
const SCHEMES: [(&str, &str); 17] = [
    ("hmac-sha1", "trello-event.http"),
    ("hmac-sha256", "stripe-event.http"),
    ("hmac-sha512", "paystack-event.http"),
    ("ed25519", "discord-event.http"),
    ("rsa-sha256", "wise-event.http"),
    ("token", "telegram-event.http"),
    ("standard-webhooks", "standard-webhooks-event.http"),
    ("adyen-items", "adyen-event.http"),
    ("braintree", "braintree-event.http"),
    ("hubspot", "hubspot-batch.http"),
    ("mailgun", "mailgun-delivered.http"),
    ("mailgun-form", "mailgun-form-mail.http"),
    ("paypal", "paypal-simulator.http"),
    ("plaid", "plaid-event.http"),
    ("sns", "sns-notification.http"),
    ("twilio", "twilio-sms.http"),
    ("hmac-over-json-parts", "mercadopago-event.http"),
];

pub(crate) fn measure(criterion: &mut Criterion) {
    let samples = samples();
    let sample = |file| samples.iter().find(|sample| sample.file == file).unwrap();
    let signed = |(scheme, file)| (scheme, Signed::of_sample(sample(file)));
    let mut group = criterion.benchmark_group("signatures");
    for (scheme, signed) in
        SCHEMES.into_iter().map(signed).chain([("ecdsa-p256", Signed::of_sendgrid())])
    {
        group.bench_function(scheme, |bencher| bencher.iter(|| black_box(&signed).check()));
    }
}

/// The vectors of senders' own tests.
#[derive(Deserialize)]
struct Vectors {
    vectors: Vec<Vector>,
}

#[derive(Deserialize)]
struct Vector {
    id: String,
    secret: Option<String>,
    headers: BTreeMap<String, String>,
    body_utf8: Option<String>,
}

/// A signed request, and the sender that it comes from.
struct Signed {
    sender: Sender,
    head: Parts,
    body: Vec<u8>,
    arrived_at: Timestamp,
}

impl Signed {
    fn of_sample(sample: &Sample) -> Self {
        let mut route = Config::of_preset(&sample.provider).unwrap().unwrap();
        route.secrets = sample.secrets.iter().cloned().map(Secret::new).collect();
        route.public_url = sample.public_url.parse().ok();
        let read = |(url, file): (&String, &String)| {
            (url.clone(), std::fs::read(folder().join(file)).unwrap())
        };
        let trusted = sample.certificates.iter().map(read);
        let certificates = Certificates::with_trusted(Clock::system(), trusted).unwrap();
        let sender = Sender::of(&route, &certificates).unwrap().unwrap();
        let (head, body) = parts(&sample.request());
        let at: jiff::Timestamp = sample.at.parse().unwrap();
        let arrived_at = Timestamp(at.as_millisecond().try_into().unwrap());
        Self { sender, head, body, arrived_at }
    }

    /// The request that `SendGrid`'s own library is tested with. The samples of `SendGrid` are not
    /// signed.
    fn of_sendgrid() -> Self {
        let file = include_str!("../../fixtures/signature_vectors.json");
        let Vectors { vectors } = serde_json::from_str(file).unwrap();
        let vector = vectors.into_iter().find(|vector| vector.id == "sendgrid-valid").unwrap();
        let mut route = Config::of_preset("sendgrid").unwrap().unwrap();
        route.secrets = vector.secret.into_iter().map(Secret::new).collect();
        let certificates = Certificates::new(Clock::system()).unwrap();
        let sender = Sender::of(&route, &certificates).unwrap().unwrap();
        let mut head = Request::post("/");
        for (name, value) in &vector.headers {
            head = head.header(name, value);
        }
        let seconds = vector.headers.get("X-Twilio-Email-Event-Webhook-Timestamp").unwrap();
        let arrived_at = Timestamp(seconds.parse::<u64>().unwrap() * 1000);
        let head = head.body(()).unwrap().into_parts().0;
        Self { sender, head, body: vector.body_utf8.unwrap().into_bytes(), arrived_at }
    }

    /// Nothing has to be fetched, so the check never waits.
    fn check(&self) {
        let checked = self.sender.verify(&self.head, &self.body, self.arrived_at);
        let verified = checked.now_or_never().unwrap().unwrap();
        assert!(verified.provider().is_some());
    }
}

/// The head and the body of a request as a file has them.
fn parts(request: &[u8]) -> (Parts, Vec<u8>) {
    let mut lines = [httparse::EMPTY_HEADER; 64];
    let mut head = httparse::Request::new(&mut lines);
    let body_at = head.parse(request).unwrap().unwrap();
    let mut built = Request::builder().method(head.method.unwrap()).uri(head.path.unwrap());
    for line in head.headers.iter() {
        built = built.header(line.name, line.value);
    }
    (built.body(()).unwrap().into_parts().0, request.split_at(body_at).1.to_vec())
}
