//! Secrets as keys. They are decoded as the sender means them, and every signature is tried with
//! every key in constant time, so that the time an answer takes tells nothing about a secret.

use ring::{hmac, signature};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{SignatureVerificationAlgorithm, SubjectPublicKeyInfoDer};
use subtle::ConstantTimeEq;
use webpki::RawPublicKeyEntity;

use super::encoding::{Encoding, base64_key};
use crate::secret::Secret;

/// The algorithm with which a signature is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Algorithm {
    Hmac(Hash),
    Ed25519,
    EcdsaP256,
    /// RSASSA-PKCS1-v1_5 (RFC 8017, 8.2), with keys of 2048 to 8192 bits.
    Rsa(Hash),
}

/// The hash of an HMAC or of an RSA signature.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Hash {
    Sha1,
    #[default]
    Sha256,
    Sha512,
}

/// How the bytes of a secret are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SecretForm {
    Text,
    Hex,
    Base64,
    /// Both are tried: for senders whose pages contradict each other.
    TextOrHex,
}

/// A secret that cannot be what the sender gave out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("secret {} is not {expected}", .index + 1)]
pub struct SecretError {
    /// The index of the secret in the configuration, counted from 0.
    pub index: usize,
    /// What the secret should be.
    pub expected: &'static str,
}

/// A secret with its index in the configuration, counted from 0.
#[derive(Debug, Clone, Copy)]
pub(super) struct NumberedSecret<'a> {
    pub(super) index: usize,
    pub(super) secret: &'a Secret,
}

/// A key of one of the secrets.
#[derive(Debug)]
pub(super) enum Key {
    Hmac(hmac::Key),
    Public(signature::UnparsedPublicKey<Vec<u8>>),
    Info(PublicKeyInfo),
}

/// A public key that names its own kind (`SubjectPublicKeyInfo`, RFC 5280, 4.1.2.7).
#[derive(Debug)]
pub(super) struct PublicKeyInfo {
    der: SubjectPublicKeyInfoDer<'static>,
    algorithm: &'static dyn SignatureVerificationAlgorithm,
}

/// The keys of all secrets, each with the index of its secret.
#[derive(Debug, Default)]
pub(super) struct Keyring(Vec<(usize, Key)>);

impl Algorithm {
    /// How senders with this algorithm usually write their secrets.
    pub(super) const fn usual_secret(self) -> SecretForm {
        match self {
            Self::Hmac(_) => SecretForm::Text,
            Self::Ed25519 => SecretForm::Hex,
            Self::EcdsaP256 | Self::Rsa(_) => SecretForm::Base64,
        }
    }

    /// How senders with this algorithm usually write their signatures.
    pub(super) const fn usual_encoding(self) -> Encoding {
        match self {
            Self::Hmac(_) | Self::Ed25519 | Self::EcdsaP256 => Encoding::Hex,
            Self::Rsa(_) => Encoding::Base64,
        }
    }

    /// Whether the keys are public.
    pub(super) const fn is_public(self) -> bool {
        !matches!(self, Self::Hmac(_))
    }
}

impl Hash {
    pub(super) const EXPECTED: &'static str = "`sha256`, `sha1` or `sha512`";

    pub(super) fn read(text: &str) -> Option<Self> {
        match text {
            "sha1" => Some(Self::Sha1),
            "sha256" => Some(Self::Sha256),
            "sha512" => Some(Self::Sha512),
            _ => None,
        }
    }

    pub(super) const OF_RSA: &'static str = "`sha256` or `sha512`";

    /// SHA-1 is refused for RSA: two texts with one SHA-1 can be made, and a signature of one would
    /// be that of the other. An HMAC with SHA-1 is not affected, because its key is secret.
    pub(super) fn read_of_rsa(text: &str) -> Option<Self> {
        Self::read(text).filter(|hash| !matches!(hash, Self::Sha1))
    }

    fn rsa(self) -> &'static dyn SignatureVerificationAlgorithm {
        match self {
            Self::Sha1 | Self::Sha256 => webpki::ring::RSA_PKCS1_2048_8192_SHA256,
            Self::Sha512 => webpki::ring::RSA_PKCS1_2048_8192_SHA512,
        }
    }

    const fn algorithm(self) -> hmac::Algorithm {
        match self {
            Self::Sha1 => hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY,
            Self::Sha256 => hmac::HMAC_SHA256,
            Self::Sha512 => hmac::HMAC_SHA512,
        }
    }
}

impl SecretForm {
    pub(super) const EXPECTED: &'static str = "`text`, `hex`, `base64` or `text-or-hex`";

    pub(super) fn read(text: &str) -> Option<Self> {
        match text {
            "text" => Some(Self::Text),
            "hex" => Some(Self::Hex),
            "base64" => Some(Self::Base64),
            "text-or-hex" => Some(Self::TextOrHex),
            _ => None,
        }
    }

    /// The bytes that a secret may mean. Empty if the text is not in this form.
    fn decode(self, secret: &str) -> Vec<Vec<u8>> {
        let text = || Some(secret.as_bytes().to_vec());
        let hex = || Encoding::Hex.decode(secret.as_bytes());
        let meanings = match self {
            Self::Text => [text(), None],
            Self::Hex => [hex(), None],
            Self::Base64 => [base64_key(secret), None],
            Self::TextOrHex => [text(), hex()],
        };
        meanings.into_iter().flatten().filter(|bytes| !bytes.is_empty()).collect()
    }

    const fn expected(self) -> &'static str {
        match self {
            Self::Text | Self::TextOrHex => "a text that is not empty",
            Self::Hex => "hexadecimal",
            Self::Base64 => "base64",
        }
    }
}

impl Key {
    pub(super) fn hmac(hash: Hash, secret: &[u8]) -> Self {
        Self::Hmac(hmac::Key::new(hash.algorithm(), secret))
    }

    /// None if the bytes are not as long as such a key.
    pub(super) fn ed25519(bytes: Vec<u8>) -> Option<Self> {
        (bytes.len() == 32)
            .then(|| Self::Public(signature::UnparsedPublicKey::new(&signature::ED25519, bytes)))
    }

    /// None if the bytes are no key of this kind.
    fn info(der: Vec<u8>, algorithm: &'static dyn SignatureVerificationAlgorithm) -> Option<Self> {
        let der = SubjectPublicKeyInfoDer::from(der);
        // The library offers no other way to ask for the kind of a key. An empty signature is never
        // right: a key of this kind says so, and a key of another kind is another error.
        let verified = RawPublicKeyEntity::try_from(&der)
            .and_then(|key| key.verify_signature(algorithm, b"", b""));
        let is_of_kind = matches!(verified, Err(webpki::Error::InvalidSignatureForPublicKey));
        is_of_kind.then_some(Self::Info(PublicKeyInfo { der, algorithm }))
    }

    /// Whether one of the signatures was made with this key. All of them are looked at.
    fn made(&self, message: &[&[u8]], signatures: &[Vec<u8>]) -> bool {
        let matches: u8 = match self {
            Self::Hmac(key) => {
                let mut context = hmac::Context::with_key(key);
                for part in message {
                    context.update(part);
                }
                let tag = context.sign();
                let equal = |signature: &Vec<u8>| tag.as_ref().ct_eq(signature).unwrap_u8();
                signatures.iter().map(equal).fold(0, |all, one| all | one)
            }
            Self::Public(key) => {
                let message = message.concat();
                let right = |signature: &Vec<u8>| u8::from(key.verify(&message, signature).is_ok());
                signatures.iter().map(right).fold(0, |all, one| all | one)
            }
            Self::Info(key) => {
                let message = message.concat();
                let right = |signature: &Vec<u8>| u8::from(key.made(&message, signature));
                signatures.iter().map(right).fold(0, |all, one| all | one)
            }
        };
        matches == 1
    }
}

impl PublicKeyInfo {
    fn made(&self, message: &[u8], signature: &[u8]) -> bool {
        RawPublicKeyEntity::try_from(&self.der)
            .is_ok_and(|key| key.verify_signature(self.algorithm, message, signature).is_ok())
    }
}

/// The bytes of a public key: from PEM as a file has it, or from its base64 alone.
fn public_key(text: &str) -> Vec<Vec<u8>> {
    if text.contains("-----BEGIN") {
        let der = SubjectPublicKeyInfoDer::from_pem_slice(text.as_bytes()).ok();
        return der.map(|der| der.as_ref().to_vec()).into_iter().collect();
    }
    let text: String = text.split_ascii_whitespace().collect();
    base64_key(&text).into_iter().collect()
}

impl Keyring {
    /// The keys of all secrets.
    ///
    /// # Errors
    /// The first secret that cannot be what the sender gives out.
    pub(super) fn new(
        algorithm: Algorithm,
        form: SecretForm,
        secrets: &[NumberedSecret<'_>],
    ) -> Result<Self, SecretError> {
        let expected = match algorithm {
            Algorithm::Hmac(_) => form.expected(),
            Algorithm::Ed25519 => "an Ed25519 public key of 32 bytes",
            Algorithm::EcdsaP256 => "a P-256 public key (PEM, or SubjectPublicKeyInfo in base64)",
            Algorithm::Rsa(_) => "an RSA public key (PEM, or SubjectPublicKeyInfo in base64)",
        };
        let key = |bytes: Vec<u8>| match algorithm {
            Algorithm::Hmac(hash) => Some(Key::hmac(hash, &bytes)),
            Algorithm::Ed25519 => Key::ed25519(bytes),
            Algorithm::EcdsaP256 => Key::info(bytes, webpki::ring::ECDSA_P256_SHA256),
            Algorithm::Rsa(hash) => Key::info(bytes, hash.rsa()),
        };
        let is_info = matches!(algorithm, Algorithm::EcdsaP256 | Algorithm::Rsa(_));
        Self::from_secrets(secrets, expected, |secret| {
            let meanings = if is_info { public_key(secret) } else { form.decode(secret) };
            meanings.into_iter().filter_map(key).collect()
        })
    }

    /// The keys that `read` makes of each secret.
    ///
    /// # Errors
    /// The first secret of which it makes none.
    pub(super) fn from_secrets(
        secrets: &[NumberedSecret<'_>],
        expected: &'static str,
        read: impl Fn(&str) -> Vec<Key>,
    ) -> Result<Self, SecretError> {
        let mut keys = Vec::with_capacity(secrets.len());
        for &NumberedSecret { index, secret } in secrets {
            let read = read(secret.reveal());
            if read.is_empty() {
                return Err(SecretError { index, expected });
            }
            keys.extend(read.into_iter().map(|key| (index, key)));
        }
        Ok(Self(keys))
    }

    /// The index of the secret with which one of the signatures was made. Every key is tried with
    /// every signature, even after one has matched, so that the time does not depend on which one
    /// it was.
    pub(super) fn find(&self, message: &[&[u8]], signatures: &[Vec<u8>]) -> Option<usize> {
        let mut found = None;
        for (secret, key) in &self.0 {
            if key.made(message, signatures) && found.is_none() {
                found = Some(*secret);
            }
        }
        found
    }
}
