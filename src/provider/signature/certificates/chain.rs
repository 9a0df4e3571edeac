//! A certificate: whether it is the sender's and trusted, and whether it signed a message.

use std::time::Duration;

use ring::signature::{RSA_PKCS1_2048_8192_SHA1_FOR_LEGACY_USE_ONLY, UnparsedPublicKey};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{
    AlgorithmIdentifier, CertificateDer, InvalidSignature, SignatureVerificationAlgorithm,
    TrustAnchor, UnixTime, alg_id,
};
use webpki::{ALL_VERIFICATION_ALGS, EndEntityCert, KeyUsage};
use x509_cert::der::Decode;

use super::error::CertificateError;
use super::policy::CertificatePolicy;
use crate::operation::Timestamp;

/// The hash of an RSA signature.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) enum RsaDigest {
    /// SNS still signs with it unless a topic is set to the newer one.
    Sha1,
    Sha256,
}

/// A certificate, with the intermediate ones that came with it.
#[derive(Debug)]
pub(in super::super) struct Certificate {
    own: CertificateDer<'static>,
    intermediates: Vec<CertificateDer<'static>>,
    /// Since 1970, as `until`.
    from: Duration,
    until: Duration,
}

/// RSA with SHA-1, which webpki does not offer, because certificates must not be signed with it.
/// Here it is accepted for messages of SNS only, never in a chain.
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

    /// Nothing reads this: it is for certificates, and this algorithm checks messages.
    fn signature_alg_id(&self) -> AlgorithmIdentifier {
        alg_id::RSA_PKCS1_SHA256
    }
}

impl Certificate {
    /// Reads PEM. The first certificate is the sender's own, others are intermediate ones.
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
        Ok(Self {
            from,
            until: validity.not_after.to_unix_duration(),
            own,
            intermediates: all.collect(),
        })
    }

    /// For how long the certificate is still in force.
    pub(super) fn ends_in(&self, now: Timestamp) -> Duration {
        self.until.saturating_sub(Duration::from_millis(now.0))
    }

    /// Refuses a certificate that is not in force at this time of day.
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

    /// Refuses a certificate that the policy does not allow at this time of day.
    pub(super) fn check(
        &self,
        policy: &CertificatePolicy,
        anchors: &[TrustAnchor<'static>],
        now: Timestamp,
    ) -> Result<(), CertificateError> {
        let Some(suffix) = policy.names else {
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
        // The name is that of a TLS server, so the certificate is checked like that of one.
        let time = UnixTime::since_unix_epoch(Duration::from_millis(now.0));
        let chain = own.verify_for_usage(
            ALL_VERIFICATION_ALGS,
            anchors,
            &self.intermediates,
            time,
            KeyUsage::server_auth(),
            None,
            None,
        );
        match chain {
            Ok(_) => Ok(()),
            // PayPal once served its certificate without the intermediate one. Without a chain
            // nothing can be said of its issuer. That it is in force and for its use has been
            // checked by now, and that it came over TLS from the sender's own host vouches for the
            // rest.
            Err(webpki::Error::UnknownIssuer) if self.intermediates.is_empty() => Ok(()),
            Err(error) => Err(CertificateError::Untrusted(distrust(&error))),
        }
    }

    /// Whether the message was signed with the key of this certificate.
    pub(in super::super) fn made(
        &self,
        method: RsaDigest,
        message: &[u8],
        signature: &[u8],
    ) -> bool {
        let algorithm: &dyn SignatureVerificationAlgorithm = match method {
            RsaDigest::Sha1 => &RsaSha1,
            RsaDigest::Sha256 => webpki::ring::RSA_PKCS1_2048_8192_SHA256,
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
