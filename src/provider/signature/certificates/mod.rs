//! Certificates that a request names: from the sender's own hosts only, each fetched once a day.
//!
//! Whoever writes the request writes the URL, so the URL is held against a list before anything is
//! asked, and nothing can lead away from it: no redirect, no proxy, no other port.

mod chain;
mod fetch;
mod rule;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use quick_cache::sync::Cache;

pub(super) use chain::{Certificate, Rsa};
pub(super) use rule::{PAYPAL, Rule, SNS};

use self::fetch::Fetcher;
use crate::clock::{Clock, Moment};
use crate::operation::Timestamp;

/// How long a certificate is believed before it is fetched and checked again.
const FRESH_FOR: Duration = Duration::from_hours(24);
/// Senders have a handful.
const CERTIFICATES_MAX: usize = 64;
/// For all of it: waiting for others, connecting, reading. Below the patience of every sender that
/// signs with a certificate.
const DEADLINE: Duration = Duration::from_secs(5);

/// Fetches, checks and keeps certificates. Cheap to clone; all clones share one cache.
#[derive(Debug, Clone)]
pub struct Certificates(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    fetcher: Fetcher,
    clock: Clock,
    /// Only what passed every check gets in, so nobody can fill it with anything else.
    cache: Cache<String, Kept>,
    trusted: BTreeMap<String, Arc<Certificate>>,
}

#[derive(Debug, Clone)]
struct Kept {
    certificate: Arc<Certificate>,
    until: Moment,
}

/// Why no certificate could be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CertificateError {
    /// The request names another host, or another file there.
    #[error("the certificate's URL is none of those that {0} uses")]
    Url(&'static str),
    /// The host did not answer in time, or not at all, or said that it cannot now.
    #[error("the certificate could not be fetched: {0}")]
    Unreachable(&'static str),
    /// The host has no such certificate.
    #[error("the certificate could not be fetched: status {0}")]
    Status(u16),
    /// What it sent is no certificate.
    #[error("what stands at the certificate's URL is {0}")]
    NotACertificate(&'static str),
    /// It is of somebody else, has expired, or nobody we trust has signed it.
    #[error("the certificate is not trusted: {0}")]
    Untrusted(&'static str),
}

/// Why nothing can ever be fetched.
#[derive(Debug, thiserror::Error)]
#[error("cannot prepare to fetch certificates")]
pub struct CertificatesError(#[from] reqwest::Error);

impl CertificateError {
    /// Whether the next copy of the same request may fare better.
    pub(super) const fn may_pass(&self) -> bool {
        match self {
            Self::Unreachable(_) => true,
            Self::Url(_) | Self::Status(_) | Self::NotACertificate(_) | Self::Untrusted(_) => false,
        }
    }
}

impl Certificates {
    /// Fetches over https, trusting the roots that Mozilla trusts.
    ///
    /// # Errors
    /// No TLS client can be made.
    pub fn new(clock: Clock) -> Result<Self, CertificatesError> {
        Ok(Self::with(clock, Fetcher::new()?, BTreeMap::new()))
    }

    /// Takes these URLs for these certificates (PEM), whoever signed them and however old they are:
    /// for captured requests and for tests. All others are fetched.
    ///
    /// # Errors
    /// No TLS client can be made.
    pub fn with_trusted(
        clock: Clock,
        trusted: impl IntoIterator<Item = (String, Vec<u8>)>,
    ) -> Result<Self, CertificatesError> {
        let read = |(url, pem): (String, Vec<u8>)| {
            let certificate = Certificate::from_pem(&pem).ok()?;
            Some((url, Arc::new(certificate)))
        };
        Ok(Self::with(clock, Fetcher::new()?, trusted.into_iter().filter_map(read).collect()))
    }

    fn with(clock: Clock, fetcher: Fetcher, trusted: BTreeMap<String, Arc<Certificate>>) -> Self {
        let cache = Cache::new(CERTIFICATES_MAX);
        Self(Arc::new(Shared { fetcher, clock, cache, trusted }))
    }

    /// The certificate at `url`, if `rule` lets it be used. `now` is the time of day.
    pub(super) async fn get(
        &self,
        rule: &Rule,
        url: &[u8],
        now: Timestamp,
    ) -> Result<Arc<Certificate>, CertificateError> {
        let url = rule.permit(url).ok_or(CertificateError::Url(rule.owner))?;
        if let Some(certificate) = self.0.trusted.get(url) {
            return Ok(Arc::clone(certificate));
        }
        let within = tokio::time::timeout(DEADLINE, self.kept_or_fetched(rule, url, now)).await;
        within.unwrap_or(Err(CertificateError::Unreachable("it took too long")))
    }

    async fn kept_or_fetched(
        &self,
        rule: &Rule,
        url: &str,
        now: Timestamp,
    ) -> Result<Arc<Certificate>, CertificateError> {
        let Shared { fetcher, clock, cache, .. } = &*self.0;
        let moment = clock.moment();
        cache.remove_if(url, |kept| kept.until <= moment);
        // One at a time for each URL: who does not get the guard waits for who has it. If that one
        // fails or is dropped, the next one tries.
        match cache.get_value_or_guard_async(url).await {
            Ok(kept) => Ok(kept.certificate),
            Err(guard) => {
                let certificate = Certificate::from_pem(&fetcher.fetch(url).await?)?;
                certificate.check(rule, fetcher.anchors(), now)?;
                let certificate = Arc::new(certificate);
                let until = clock.moment().plus(FRESH_FOR);
                // Nobody else needs to know if it was not kept.
                drop(guard.insert(Kept { certificate: Arc::clone(&certificate), until }));
                Ok(certificate)
            }
        }
    }
}

#[cfg(test)]
mod tests;
