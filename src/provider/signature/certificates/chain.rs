//! A certificate: whose it is, who signed it, and what was signed with it.

use std::time::Duration;

use ring::signature::{RSA_PKCS1_2048_8192_SHA1_FOR_LEGACY_USE_ONLY, UnparsedPublicKey};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{
    AlgorithmIdentifier, CertificateDer, InvalidSignature, SignatureVerificationAlgorithm,
    TrustAnchor, UnixTime, alg_id,
};
use webpki::{ALL_VERIFICATION_ALGS, EndEntityCert, KeyUsage};
use x509_cert::der::Decode;

use super::CertificateError;
use super::rule::Rule;
use crate::operation::Timestamp;

/// How a message was signed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) enum Rsa {
    /// SNS still uses it where nobody chose the newer one.
    Sha1,
    Sha256,
}

/// A certificate, and those between it and a root if they came with it.
#[derive(Debug)]
pub(in super::super) struct Certificate {
    own: CertificateDer<'static>,
    between: Vec<CertificateDer<'static>>,
    /// Since 1970.
    from: Duration,
    until: Duration,
}

/// webpki knows no SHA-1, and is right not to: it is accepted for messages only, never in a chain.
#[derive(Debug)]
struct RsaSha1;

impl SignatureVerificationAlgorithm for RsaSha1 {
    fn verify_signature(
        &self,
        public_key: &[u8],
        message: &[u8],
        signature: &[u8],
    ) -> Result<(), InvalidSignature> {
        UnparsedPublicKey::new(&RSA_PKCS1_2048_8192_SHA1_FOR_LEGACY_USE_ONLY, public_key)
            .verify(message, signature)
            .map_err(|_| InvalidSignature)
    }

    fn public_key_alg_id(&self) -> AlgorithmIdentifier {
        alg_id::RSA_ENCRYPTION
    }

    /// Not asked for: the message says how it is signed.
    fn signature_alg_id(&self) -> AlgorithmIdentifier {
        alg_id::RSA_PKCS1_SHA256
    }
}

impl Certificate {
    /// Reads the first certificate as the sender's own.
    pub(super) fn from_pem(pem: &[u8]) -> Result<Self, CertificateError> {
        let not = CertificateError::NotACertificate;
        let all: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
        let mut all = all.map_err(|_| not("not PEM"))?.into_iter();
        let own = all.next().ok_or(not("no certificate"))?;
        let unreadable = not("a certificate that cannot be read");
        EndEntityCert::try_from(&own).map_err(|_| unreadable.clone())?;
        let read = x509_cert::Certificate::from_der(&own).map_err(|_| unreadable)?;
        let validity = read.tbs_certificate.validity;
        let from = validity.not_before.to_unix_duration();
        Ok(Self { from, until: validity.not_after.to_unix_duration(), own, between: all.collect() })
    }

    /// How long it is in force from now on.
    pub(super) fn ends_in(&self, now: Timestamp) -> Duration {
        self.until.saturating_sub(Duration::from_millis(now.0))
    }

    /// Whether it is in force at this time of day.
    pub(super) fn require_in_force(&self, now: Timestamp) -> Result<(), CertificateError> {
        let now = Duration::from_millis(now.0);
        if now > self.until {
            Err(CertificateError::Untrusted("it has expired"))
        } else if now < self.from {
            Err(CertificateError::Untrusted("it is not valid yet"))
        } else {
            Ok(())
        }
    }

    /// Whether it is what the rule asks for, at this time of day.
    pub(super) fn check(
        &self,
        rule: &Rule,
        anchors: &[TrustAnchor<'static>],
        now: Timestamp,
    ) -> Result<(), CertificateError> {
        let Some(suffix) = rule.names else {
            return self.require_in_force(now);
        };
        let own = EndEntityCert::try_from(&self.own)
            .map_err(|_| CertificateError::NotACertificate("a certificate that cannot be read"))?;
        let is_theirs = |name: &str| {
            name.strip_suffix(suffix).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
        };
        let mut names = own.valid_dns_names().peekable();
        if names.peek().is_none() || !names.all(is_theirs) {
            return Err(CertificateError::Untrusted("it is not for the sender's name"));
        }
        let time = UnixTime::since_unix_epoch(Duration::from_millis(now.0));
        let chain = own.verify_for_usage(
            ALL_VERIFICATION_ALGS,
            anchors,
            &self.between,
            time,
            KeyUsage::server_auth(),
            None,
            None,
        );
        match chain {
            Ok(_) => Ok(()),
            // Its time and use are looked at first. Without a chain that is all that can be said,
            // beside that it came from the sender's own host.
            Err(webpki::Error::UnknownIssuer) if self.between.is_empty() => Ok(()),
            Err(error) => Err(CertificateError::Untrusted(distrust(&error))),
        }
    }

    /// Whether the message was signed with the key of this certificate.
    pub(in super::super) fn made(&self, method: Rsa, message: &[u8], signature: &[u8]) -> bool {
        let algorithm: &dyn SignatureVerificationAlgorithm = match method {
            Rsa::Sha1 => &RsaSha1,
            Rsa::Sha256 => webpki::ring::RSA_PKCS1_2048_8192_SHA256,
        };
        EndEntityCert::try_from(&self.own)
            .is_ok_and(|own| own.verify_signature(algorithm, message, signature).is_ok())
    }
}

fn distrust(error: &webpki::Error) -> &'static str {
    if matches!(error, webpki::Error::CertExpired { .. }) {
        "it has expired"
    } else if matches!(error, webpki::Error::CertNotValidYet { .. }) {
        "it is not valid yet"
    } else if matches!(error, webpki::Error::UnknownIssuer) {
        "nobody we trust has signed it"
    } else {
        "its chain does not hold"
    }
}
