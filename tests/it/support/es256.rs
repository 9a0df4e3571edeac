//! Who signs JWTs with ES256 (RFC 7518, 3.4), and how the key is given out.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _};
use serde_json::{Value, json};

/// Whoever signs, and whoever gives the key out.
#[derive(Debug)]
pub struct Es256 {
    pair: EcdsaKeyPair,
    random: SystemRandom,
}

impl Es256 {
    pub fn new() -> Self {
        let random = SystemRandom::new();
        let algorithm = &ECDSA_P256_SHA256_FIXED_SIGNING;
        let pkcs8 = EcdsaKeyPair::generate_pkcs8(algorithm, &random).unwrap();
        let pair = EcdsaKeyPair::from_pkcs8(algorithm, pkcs8.as_ref(), &random).unwrap();
        Self { pair, random }
    }

    /// What Plaid's API answers for this id.
    pub fn answer(&self, id: &str, expired_at: &Value) -> Value {
        let point = self.pair.public_key().as_ref();
        let coordinate = |bytes: &[u8]| URL_SAFE_NO_PAD.encode(bytes);
        json!({ "request_id": "r", "key": {
            "alg": "ES256", "crv": "P-256", "kid": id, "kty": "EC", "use": "sig",
            "x": coordinate(&point[1..33]), "y": coordinate(&point[33..]),
            "created_at": 1, "expired_at": expired_at,
        } })
    }

    /// A token of these two parts, whatever they are.
    pub fn token(&self, header: &str, claims: &str) -> String {
        let part = |text: &str| URL_SAFE_NO_PAD.encode(text);
        let signed = format!("{}.{}", part(header), part(claims));
        let signature = self.pair.sign(&self.random, signed.as_bytes()).unwrap();
        format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature))
    }
}
