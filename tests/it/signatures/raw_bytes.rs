//! The signature is over the bytes that came, and the upstream can check it again.

use super::verifying;
use crate::support::{Event, Onceward, Receiver, Seen, signing};

const SECRET: &str = "shpss_0123";

fn delivery(id: &str, body: &[u8]) -> Event {
    let event = Event::bytes(body).header("x-shopify-webhook-id", id);
    let event = event.header("x-shopify-shop-domain", "a.example");
    let event = event.header("x-shopify-topic", "orders/create");
    event.header("x-shopify-hmac-sha256", &signing::shopify(SECRET, body))
}

/// The check that an upstream makes.
fn is_genuine(seen: &Seen) -> bool {
    let signature = signing::shopify(SECRET, &seen.body);
    seen.header("x-shopify-hmac-sha256") == Some(&signature)
}

async fn shop(receiver: &Receiver) -> Onceward {
    verifying(receiver, "shopify", SECRET).start().await
}

/// Nothing is parsed and written again on the way.
#[tokio::test]
async fn an_upstream_can_check_the_same_bytes_again() {
    let receiver = Receiver::that_answers(200, "ok").await;
    let onceward = shop(&receiver).await;
    let bodies: [&[u8]; 8] = [
        b"{\"key\": \"v\",  \"n\": 1.0, \"u\": \"\\u2028\", \"s\": \"a\\/b\", \"e\": 1E5}\n",
        b"{\r\n  \"a\" : 1,\r\n  \"a\" : 2\r\n}\r\n",
        b"\xef\xbb\xbf{\"bom\":true}",
        b"{\"tail\":1}\0",
        b"not json at all",
        b"\xff\xfe\x00\x01",
        b"",
        b"\r\n\r\nGET / HTTP/1.1\r\n\r\n",
    ];
    for (number, body) in bodies.into_iter().enumerate() {
        let reply = onceward.sends(delivery(&format!("w{number}"), body)).await;
        reply.is_executed(200);
        let seen = receiver.seen().pop().unwrap();
        assert_eq!(seen.body, body);
        assert!(is_genuine(&seen), "{body:?}");
        assert_eq!(seen.header("content-length"), Some(&*body.len().to_string()));
    }
    receiver.was_called(bodies.len());
    for (number, body) in bodies.into_iter().enumerate() {
        onceward.sends(delivery(&format!("w{number}"), body)).await.is_replayed(200);
    }
    receiver.was_called(bodies.len());
}

/// What is compressed is checked, keyed and forwarded as it came; nothing is inflated.
#[tokio::test]
async fn a_compressed_body_is_signed_as_it_is_on_the_wire() {
    let receiver = Receiver::that_answers(200, "ok").await;
    let onceward = shop(&receiver).await;
    let plain = b"{\"id\":\"evt_50\"}";
    let zipped = hex::decode(ZIPPED).unwrap();
    for (number, coding) in ["GZIP", "br", "gzip, gzip"].into_iter().enumerate() {
        let event = delivery(&format!("w{number}"), &zipped).header("content-encoding", coding);
        onceward.sends(event).await.is_executed(200);
        let seen = receiver.seen().pop().unwrap();
        assert_eq!(seen.body, zipped);
        assert_eq!(seen.header("content-encoding"), Some(coding));
        assert!(is_genuine(&seen));
    }
    let of_the_plain =
        Event { body: zipped.clone(), ..delivery("w9", plain).header("content-encoding", "gzip") };
    onceward.sends(of_the_plain).await.is_refused(401, "signature-invalid");
    receiver.was_called(3);
}

/// A key that would have to be inflated first is none.
#[tokio::test]
async fn a_key_inside_a_compressed_body_is_missing() {
    let receiver = Receiver::that_answers(200, "ok").await;
    let secret = "whsec_x";
    let onceward = verifying(&receiver, "stripe", secret).start().await;
    let zipped = hex::decode(ZIPPED).unwrap();
    let signature = signing::stripe(secret, signing::now(), &zipped);
    let event = Event::bytes(zipped).header("content-encoding", "gzip");
    let reply = onceward.sends(event.header("stripe-signature", &signature)).await;
    reply.is_refused(400, "key-missing");
    receiver.was_called(0);
}

/// `{"id":"evt_50"}`, compressed.
const ZIPPED: &str = "1f8b0800000000000203ab56ca4c51b2524a2d2b89373550aa05006230bedb0f000000";
