//! Why a certificate or a key could not be used.

/// Why no certificate or key could be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CertificateError {
    /// The request names a URL at which the sender keeps no certificates.
    #[error("the certificate's URL is none of those that {0} uses")]
    Url(&'static str),
    /// The host did not answer in time, or answered with a 5xx or 429.
    #[error("the certificate could not be fetched: {0}")]
    Unreachable(&'static str),
    /// The host has no such certificate.
    #[error("the certificate could not be fetched: status {0}")]
    Status(u16),
    /// The host's answer is no certificate.
    #[error("what stands at the certificate's URL is {0}")]
    NotACertificate(&'static str),
    /// The certificate is of somebody else, has expired, or no trusted authority has signed it.
    #[error("the certificate is not trusted: {0}")]
    Untrusted(&'static str),
    /// The API that gives out keys did not answer in time, or answered with a 5xx or 429.
    #[error("the sender's key could not be fetched: {0}")]
    KeyUnreachable(&'static str),
    /// The API refuses the account that asked.
    #[error("the sender's API gave no key out: status {0}; are client id and secret right?")]
    KeyWithheld(u16),
    /// The API has no key of this id.
    #[error("the sender has no key of the id in the signature")]
    KeyUnknown,
    /// The sender no longer signs with the key.
    #[error("the sender's key has expired")]
    KeyExpired,
    /// The API's answer is no key.
    #[error("what the sender's API gave out is {0}")]
    NotAKey(&'static str),
}

/// Why no certificate can ever be fetched.
#[derive(Debug, thiserror::Error)]
#[error("cannot prepare to fetch certificates")]
pub struct CertificatesError(#[from] reqwest::Error);

impl CertificateError {
    /// Whether the next copy of the same request may be verified, so that the sender is told to
    /// come back.
    pub(in super::super) const fn may_pass(&self) -> bool {
        match self {
            Self::Unreachable(_) | Self::KeyUnreachable(_) | Self::KeyWithheld(_) => true,
            Self::Url(_)
            | Self::Status(_)
            | Self::NotACertificate(_)
            | Self::Untrusted(_)
            | Self::KeyUnknown
            | Self::KeyExpired
            | Self::NotAKey(_) => false,
        }
    }

    /// Whether the host has answered, so that the same answer is to be expected for a while.
    pub(super) const fn is_answer(&self) -> bool {
        !self.may_pass() || matches!(self, Self::KeyWithheld(_))
    }
}
