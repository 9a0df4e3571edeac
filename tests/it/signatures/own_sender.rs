//! A sender that nobody has a preset for, in the form of one.

use super::CLAIMS;
use crate::support::{Event, Onceward, Receiver, signing};

const SECRET: &str = "5ec4e7";

/// It signs its name, the time and the body, in upper-case words of its own.
const ACME: &str = r#"
provider = "acme"
secrets = [{ env = "THE_SECRET" }]

[providers.acme]
title = "Acme"
key = { event = { id = "json:/delivery", type = "header:x-acme-kind?" } }

[providers.acme.signature]
scheme = "hmac"
header = "X-Acme-Signature"
hash = "sha512"
encoding = "base64"
separator = ","
prefix = "v2="
signed = ["text:acme|", "timestamp", "text:|", "header:X-Acme-Kind", "text:|", "body"]
timestamp = "header:X-Acme-Time"
tolerance = "10m"
secret = "hex"

[[providers.acme.handshakes]]
name = "hello"
method = "POST"
json = { hello = "*" }
signed = false
"#;

fn sent(body: &str, kind: &str, at: u64) -> Event {
    let message = format!("acme|{at}|{kind}|{body}");
    let signature = signing::sha512(&hex::decode(SECRET).unwrap(), message.as_bytes());
    let event = Event::bytes(body).header("x-acme-kind", kind);
    let event = event.header("x-acme-time", &at.to_string());
    event.header("x-acme-signature", &format!("v1=00, v2={}", signing::base64(&signature)))
}

#[tokio::test]
async fn a_sender_of_ones_own_is_checked_as_its_table_says() {
    let receiver = Receiver::that_answers(200, "ok").await;
    let builder = Onceward::in_front_of(&receiver).variable("THE_SECRET", SECRET);
    let onceward = builder.routes(ACME).start().await;
    let now = signing::now();

    let hello = Event::bytes("{\"hello\":\"world\"}");
    onceward.sends(hello).await.is_passed(200);
    assert_eq!(receiver.seen()[0].header("onceward-verified"), None);

    let body = "{\"delivery\":\"d1\"}";
    for (forged, code) in [
        (sent(body, "a", now).with("x-acme-kind", "b"), "signature-invalid"),
        (sent(body, "a", now).with("x-acme-time", &(now - 1).to_string()), "signature-invalid"),
        (sent(body, "a", now).without("x-acme-time"), "signature-invalid"),
        (sent(body, "a", now).without("x-acme-signature"), "signature-missing"),
        (sent(body, "a", now - 700), "signature-stale"),
        (sent(body, "a", now + 700), "signature-stale"),
        (Event { body: b"{}".to_vec(), ..sent(body, "a", now) }, "signature-invalid"),
    ] {
        onceward.sends(forged).await.is_refused(401, code);
    }
    receiver.was_called(1);
    assert_eq!(onceward.metric(CLAIMS).await, 0.0);

    onceward.sends(sent(body, "a", now)).await.is_executed(200);
    assert_eq!(receiver.seen()[1].header("onceward-verified"), Some("acme"));
    onceward.sends(sent(body, "a", now - 5)).await.is_replayed(200);
    onceward.sends(sent(body, "b", now)).await.is_executed(200);
    receiver.was_called(3);
}

/// Some senders sign nothing, and can send a secret along: here as `user:password`.
const WITH_PASSWORD: &str = r#"
provider = "billing"
secrets = [{ env = "THE_SECRET" }]

[providers.billing]
title = "Billing"
key = { event = { id = "json:/id", type = "json:/event_type?" } }
signature = { scheme = "token", header = "Authorization", prefix = "Basic ", encoding = "base64" }
"#;

#[tokio::test]
async fn a_secret_that_is_sent_along_is_compared() {
    let receiver = Receiver::that_answers(200, "ok").await;
    let builder = Onceward::in_front_of(&receiver).variable("THE_SECRET", "user:password");
    let onceward = builder.routes(WITH_PASSWORD).start().await;
    let with = |header: &str| Event::bytes("{\"id\":\"ev_1\"}").header("authorization", header);
    let basic = |text: &str| format!("Basic {}", signing::base64(text.as_bytes()));
    for (wrong, code) in [
        (with(&basic("user:passwore")), "signature-invalid"),
        (with(&basic("user:password ")), "signature-invalid"),
        (with(&basic("user")), "signature-invalid"),
        (with(&basic("")), "signature-invalid"),
        (with("Basic ****"), "signature-invalid"),
        (with("Bearer user:password"), "signature-invalid"),
        (with(""), "signature-missing"),
        (with("").without("authorization"), "signature-missing"),
        (with(&basic("user:password")).header("authorization", "Basic x"), "signature-invalid"),
    ] {
        let sent = format!("{:?}", wrong.headers);
        let reply = onceward.sends(wrong).await;
        assert_eq!(reply.status, 401, "{sent}: {}", reply.text());
        reply.is_refused(401, code);
    }
    receiver.was_called(0);
    assert_eq!(onceward.metric(CLAIMS).await, 0.0);
    onceward.sends(with(&basic("user:password"))).await.is_executed(200);
    onceward.sends(with(&basic("user:password"))).await.is_replayed(200);
    // It is the upstream's too.
    let seen = receiver.seen().pop().unwrap();
    assert_eq!(seen.header("authorization"), Some(&*basic("user:password")));
    assert_eq!(seen.header("onceward-verified"), Some("billing"));
    receiver.was_called(1);
}
