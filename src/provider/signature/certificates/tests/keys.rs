//! Keys that an API of the sender gives out.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::json;

use super::*;
use crate::provider::signature::certificates::{Jwk, KeyRequest};
use crate::secret::Secret;

const KEYS_URL: &str = "https://production.plaid.com/webhook_verification_key/get";

/// An answer with a key that has this coordinate. Nothing is signed with it here.
fn key(coordinate: u8) -> String {
    let coordinate = URL_SAFE_NO_PAD.encode([coordinate; 32]);
    let key = json!({ "key": {
        "alg": "ES256", "crv": "P-256", "kid": "k1", "kty": "EC", "use": "sig",
        "x": coordinate, "y": coordinate, "expired_at": null,
    } });
    ok(&key.to_string())
}

fn unknown() -> String {
    let body = json!({ "error_code": "INVALID_WEBHOOK_VERIFICATION_KEY_ID" });
    format!("HTTP/1.1 400 Bad Request\r\nconnection: close\r\n\r\n{body}")
}

/// A server that gives out a key, and certificates that ask it.
struct Asker {
    server: Server,
    certificates: Certificates,
    clock: Clock,
    account: Secret,
}

impl Asker {
    async fn of(answer: String) -> Self {
        let authority = Authority::new();
        let server = Server::start(&authority, answer).await;
        let clock = Clock::manual(NOW);
        let certificates = server.certificates(&authority, clock.clone());
        let account = Secret::new("client:secret".to_owned());
        Self { server, certificates, clock, account }
    }

    fn wanted(&self) -> KeyRequest<'_> {
        KeyRequest { url: KEYS_URL, account: &self.account, id: "k1" }
    }

    async fn key(&self) -> Result<Jwk, CertificateError> {
        self.certificates.key(self.wanted(), NOW).await
    }

    /// One question more for the key that is kept, with this answer.
    async fn renewed(&self, answer: String) {
        self.server.now_answers(answer);
        self.certificates.renewed(self.wanted()).await;
    }
}

#[tokio::test]
async fn a_key_is_asked_for_again_after_a_day_while_the_old_one_is_used() {
    let asker = Asker::of(key(7)).await;
    let first = asker.key().await.unwrap();
    asker.clock.advance(FRESH_FOR.saturating_sub(Duration::from_millis(1)));
    assert_eq!(asker.key().await, Ok(first.clone()));
    assert_eq!(asker.server.served(), 1);

    asker.server.now_answers(key(8));
    asker.clock.advance(Duration::from_millis(1));
    assert_eq!(asker.key().await, Ok(first.clone()));
    asked(&asker.server, 2).await;
    let replaced = async {
        while asker.key().await.unwrap() == first {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, replaced).await.expect("the next key is used");
    // And is asked for a day later.
    assert_eq!(asker.server.served(), 2);
    asker.clock.advance(FRESH_FOR);
    assert!(asker.key().await.is_ok());
    asked(&asker.server, 3).await;
}

#[tokio::test]
async fn an_api_that_does_not_answer_leaves_the_key_and_is_asked_again_a_minute_later() {
    let asker = Asker::of(key(7)).await;
    assert!(asker.key().await.is_ok());
    asker.server.let_through.forget_permits(Semaphore::MAX_PERMITS);
    asker.clock.advance(FRESH_FOR);
    for _ in 0..10 {
        assert!(asker.key().await.is_ok());
    }
    asked(&asker.server, 2).await;
    asker.clock.advance(AGAIN_AFTER);
    assert!(asker.key().await.is_ok());
    asked(&asker.server, 3).await;
}

#[tokio::test]
async fn a_key_is_given_up_when_the_api_has_denied_it_twice() {
    let asker = Asker::of(key(7)).await;
    assert!(asker.key().await.is_ok());
    asker.renewed(unknown()).await;
    assert!(asker.key().await.is_ok());
    // An account that is not taken says nothing of the key.
    asker.renewed("HTTP/1.1 400 Bad Request\r\nconnection: close\r\n\r\n{}".to_owned()).await;
    assert!(asker.key().await.is_ok());
    asker.renewed(key(7)).await;
    for _ in 0..2 {
        assert!(asker.key().await.is_ok());
        asker.renewed(unknown()).await;
    }
    assert_eq!(asker.key().await, Err(CertificateError::KeyUnknown));
}

/// The end of a key that the API gives out with it holds at once.
#[tokio::test]
async fn a_key_that_has_ended_is_not_used_from_the_next_answer_on() {
    let asker = Asker::of(key(7)).await;
    assert!(asker.key().await.is_ok());
    asker.renewed(key(7).replace("null", "1")).await;
    assert_eq!(asker.key().await, Err(CertificateError::KeyExpired));
}
