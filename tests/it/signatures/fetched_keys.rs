//! Keys that a running process asks a real server over TLS for, as Plaid's API gives them out.

use std::sync::Arc;

use futures_util::future::join_all;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::verifying;
use crate::support::{Asked, Authority, Es256, Event, Onceward, Receiver, TlsHost, signing};

const SECRET: &str = "5c0client:5ec4e7of5c0client";
/// As many questions for ids of which nobody knows are open at a time.
const QUESTIONS_MAX: u32 = 4;

/// An event, signed now with the key of this id.
fn signed(signer: &Es256, event: &str, id: &str) -> Event {
    let event = Event::json(&json!({
        "webhook_type": "PAYMENT_INITIATION", "webhook_code": "PAYMENT_STATUS_UPDATE",
        "payment_id": event, "new_payment_status": "PAYMENT_STATUS_EXECUTED",
        "timestamp": "2026-11-05T10:00:05.350Z",
    }));
    let header = json!({ "alg": "ES256", "kid": id, "typ": "JWT" });
    let digest = hex::encode(Sha256::digest(&event.body));
    let claims = json!({ "iat": signing::now(), "request_body_sha256": digest });
    let token = signer.token(&header.to_string(), &claims.to_string());
    event.header("plaid-verification", &token)
}

/// Stands in for the API. Its keys are those whose ids begin with `key-`.
async fn api(signer: &Arc<Es256>, authority: &Authority) -> TlsHost {
    let signer = Arc::clone(signer);
    TlsHost::that_answers(authority, "127.0.0.1", move |asked| answer(&signer, asked)).await
}

/// A proxy with the preset that asks this API, and trusts whom this authority vouches for.
async fn proxy(api: &TlsHost, receiver: &Receiver, trusted: &Authority) -> Onceward {
    let url = format!("https://{}/webhook_verification_key/get", api.address);
    verifying(receiver, "plaid", SECRET)
        .variable("SSL_CERT_FILE", &trusted.file().display().to_string())
        .routes(&format!("[providers.plaid.signature]\nurl = \"{url}\""))
        .start()
        .await
}

/// None: there is no answer to ids that begin with `slow-`.
fn answer(signer: &Es256, asked: &Asked) -> Option<String> {
    let head = &asked.head;
    assert!(head.starts_with("post /webhook_verification_key/get http/1.1\r\n"), "{head}");
    assert!(head.contains("content-type: application/json\r\n"), "{head}");
    let question: Value = serde_json::from_slice(&asked.body).unwrap();
    assert_eq!(question["client_id"], "5c0client");
    assert_eq!(question["secret"], "5ec4e7of5c0client");
    let id = question["key_id"].as_str().unwrap();
    if id.starts_with("slow-") {
        return None;
    }
    let known = id.starts_with("key-");
    let status = if known { "200 OK" } else { "400 Bad Request" };
    let unknown = json!({ "error_code": "INVALID_WEBHOOK_VERIFICATION_KEY_ID" });
    let body = if known { signer.answer(id, &Value::Null) } else { unknown }.to_string();
    let length = body.len();
    Some(format!(
        "HTTP/1.1 {status}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}"
    ))
}

#[tokio::test]
async fn a_key_is_asked_for_once_and_made_up_ids_do_not_come_in_between() {
    let signer = Arc::new(Es256::new());
    let authority = Authority::new();
    let receiver = Receiver::that_answers(200, "ok").await;
    let api = api(&signer, &authority).await;
    let onceward = proxy(&api, &receiver, &authority).await;

    onceward.sends(signed(&signer, "d1", "key-1")).await.is_executed(200);
    onceward.sends(signed(&signer, "d1", "key-1")).await.is_replayed(200);
    let forged = signed(&Es256::new(), "d2", "key-1");
    onceward.sends(forged).await.is_refused(401, "signature-invalid");
    api.was_asked(1);
    for _ in 0..3 {
        let unknown = signed(&signer, "d2", "made-up");
        onceward.sends(unknown).await.is_refused(401, "signature-invalid");
    }
    api.was_asked(2);

    // More than may wait, each for another key that nobody gives out.
    let slow = (0..48).map(|number| signed(&signer, "d2", &format!("slow-{number}")));
    let flood = join_all(slow.map(|event| onceward.sends(event)));
    let genuine = async {
        api.left_open.acquire_many(QUESTIONS_MAX).await.unwrap().forget();
        onceward.sends(signed(&signer, "d3", "key-1")).await
    };
    let (refused, executed) = tokio::join!(flood, genuine);
    executed.is_executed(200);
    for reply in refused {
        reply.is_refused(503, "signature-undecided").comes_back();
    }
    // The next key is asked for as if nothing had been.
    onceward.sends(signed(&signer, "d4", "key-2")).await.is_executed(200);
    receiver.was_called(3);
    let log = format!("{:?}", onceward.log());
    assert!(!log.contains("5ec4e7of5c0client") && !log.contains("eyJ"), "{log}");
}

#[tokio::test]
async fn without_the_api_nothing_is_decided() {
    let signer = Arc::new(Es256::new());
    let authority = Authority::new();
    let receiver = Receiver::that_answers(200, "ok").await;
    let api = api(&signer, &authority).await;
    // Nobody vouches for the server: it is not given the secret.
    let onceward = proxy(&api, &receiver, &Authority::new()).await;
    for _ in 0..2 {
        let reply = onceward.sends(signed(&signer, "d1", "key-1")).await;
        reply.is_refused(503, "signature-undecided").comes_back();
    }
    // What is wrong without a key is refused without one.
    let other = Event { body: b"{}".to_vec(), ..signed(&signer, "d1", "key-1") };
    onceward.sends(other).await.is_refused(401, "signature-invalid");
    api.was_asked(0);
    receiver.was_called(0);
}
