//! Certificates and keys that a request names. A certificate is fetched from the sender's own
//! hosts, a key from the sender's API, each about once a day.
//!
//! A certificate that was fetched longer ago is still used while it is fetched again, as long as it
//! is in force itself. So a host that cannot be reached for a while costs no event, and neither
//! does a host that once denies a certificate while it is being moved.
//!
//! Whoever writes a request writes the URL in it, so the URL is compared with a list before
//! anything is fetched, and nothing can lead away from it: no redirect, no proxy, no other port.

mod chain;
mod error;
mod fetch;
mod jwk;
mod keys;
mod policy;
mod renewal;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use quick_cache::sync::Cache;

pub use error::{CertificateError, CertificatesError};

pub(super) use chain::{Certificate, RsaDigest};
pub(super) use jwk::Jwk;
pub(super) use keys::KeyRequest;
pub(super) use policy::{CertificatePolicy, PAYPAL, SNS};

use self::fetch::{DEADLINE, FetchQuota, Fetcher};
use self::keys::KeyCache;
use self::renewal::{AGAIN_AFTER, FRESH_FOR, Renewal};
use crate::clock::{Clock, Moment};
use crate::operation::Timestamp;

/// How long before a certificate expires it is fetched again.
const AHEAD: Duration = Duration::from_hours(1);
/// Senders sign with a handful of certificates.
const CERTIFICATES_MAX: usize = 64;
/// Fetches, checks and keeps certificates and keys. It is cheap to clone, and all clones share one
/// cache.
#[derive(Debug, Clone)]
pub struct Certificates(Arc<CertificatesInner>);

#[derive(Debug)]
struct CertificatesInner {
    fetcher: Fetcher,
    clock: Clock,
    /// Only a certificate that has passed every check is kept, so nobody can fill the cache with
    /// others.
    cache: Cache<String, Arc<CachedCertificate>>,
    /// The URLs of certificates with which a genuine request was signed. Only the sender can add to
    /// them.
    confirmed: Cache<String, ()>,
    trusted: BTreeMap<String, Arc<Certificate>>,
    keys: KeyCache,
    /// Answers that stand for those of the API at a URL.
    trusted_answers: BTreeMap<String, Vec<u8>>,
}

#[derive(Debug)]
struct CachedCertificate {
    certificate: Arc<Certificate>,
    renewal: Renewal,
}

impl CertificatesInner {
    fn new(clock: Clock, fetcher: Fetcher) -> Self {
        Self {
            fetcher,
            clock,
            cache: Cache::new(CERTIFICATES_MAX),
            confirmed: Cache::new(CERTIFICATES_MAX),
            trusted: BTreeMap::new(),
            keys: KeyCache::new(),
            trusted_answers: BTreeMap::new(),
        }
    }
}

impl CachedCertificate {
    fn new(certificate: Certificate, now: Timestamp, moment: Moment) -> Arc<Self> {
        let left = certificate.ends_in(now).saturating_sub(AHEAD);
        let due = moment.plus(FRESH_FOR.min(left).max(AGAIN_AFTER));
        Arc::new(Self { certificate: Arc::new(certificate), renewal: Renewal::new(due) })
    }
}

impl Certificates {
    /// Certificates that are fetched over https, from hosts that a root of Mozilla's list or of
    /// this machine vouches for.
    ///
    /// # Errors
    /// No TLS client can be made.
    pub fn new(clock: Clock) -> Result<Self, CertificatesError> {
        Ok(Self(Arc::new(CertificatesInner::new(clock, Fetcher::new()?))))
    }

    /// Certificates of which these URLs are not fetched: they stand for these certificates (PEM),
    /// which are trusted whoever signed them and however old they are, or for these answers of a
    /// sender's API (JSON). For captured requests and for tests.
    ///
    /// # Errors
    /// No TLS client can be made.
    pub fn with_trusted(
        clock: Clock,
        trusted: impl IntoIterator<Item = (String, Vec<u8>)>,
    ) -> Result<Self, CertificatesError> {
        let mut certificates = BTreeMap::new();
        let mut answers = BTreeMap::new();
        for (url, bytes) in trusted {
            match Certificate::from_pem(&bytes) {
                Ok(certificate) => drop(certificates.insert(url, Arc::new(certificate))),
                Err(_) => drop(answers.insert(url, bytes)),
            }
        }
        Ok(Self(Arc::new(CertificatesInner {
            trusted: certificates,
            trusted_answers: answers,
            ..CertificatesInner::new(clock, Fetcher::new()?)
        })))
    }

    /// The certificate at `url`, if `policy` allows it. `now` is the time of day. It waits no
    /// longer than a few seconds, and is cancel safe: the next caller fetches again.
    pub(super) async fn get(
        &self,
        policy: &'static CertificatePolicy,
        url: &[u8],
        now: Timestamp,
    ) -> Result<Arc<Certificate>, CertificateError> {
        let url = policy.permit(url).ok_or(CertificateError::Url(policy.owner))?;
        if let Some(certificate) = self.0.trusted.get(url) {
            return Ok(Arc::clone(certificate));
        }
        let within = tokio::time::timeout(DEADLINE, self.kept_or_fetched(policy, url, now)).await;
        within.unwrap_or(Err(CertificateError::Unreachable("it took too long")))
    }

    /// Notes that a genuine request was signed with the certificate at this URL. Its next fetch has
    /// a quota of its own, so that made-up URLs cannot delay it.
    pub(super) fn confirm(&self, url: &[u8]) {
        let Ok(url) = std::str::from_utf8(url) else { return };
        if self.0.confirmed.get(url).is_none() {
            self.0.confirmed.insert(url.to_owned(), ());
        }
    }

    async fn kept_or_fetched(
        &self,
        policy: &'static CertificatePolicy,
        url: &str,
        now: Timestamp,
    ) -> Result<Arc<Certificate>, CertificateError> {
        let CertificatesInner { clock, cache, .. } = &*self.0;
        if let Some(kept) = cache.get(url) {
            if kept.certificate.require_in_force(now).is_ok() {
                if kept.renewal.is_due(clock.moment()) {
                    self.refresh(policy, url, now);
                }
                return Ok(Arc::clone(&kept.certificate));
            }
            // It has expired, so it must not be used, even if its host cannot be reached now.
            cache.remove(url);
        }
        // One fetch at a time for each URL: whoever does not get the guard waits for its holder. If
        // the holder fails or is dropped, the next one fetches.
        match cache.get_value_or_guard_async(url).await {
            Ok(kept) => Ok(Arc::clone(&kept.certificate)),
            Err(guard) => {
                let kept = self.fetched(policy, url, now).await?;
                // The error says that the guard was removed meanwhile. The certificate can be used
                // anyway.
                drop(guard.insert(Arc::clone(&kept)));
                Ok(Arc::clone(&kept.certificate))
            }
        }
    }

    async fn fetched(
        &self,
        policy: &CertificatePolicy,
        url: &str,
        now: Timestamp,
    ) -> Result<Arc<CachedCertificate>, CertificateError> {
        let CertificatesInner { fetcher, clock, confirmed, .. } = &*self.0;
        let quota = if confirmed.get(url).is_some() {
            FetchQuota::Confirmed
        } else {
            FetchQuota::Unconfirmed
        };
        let certificate = Certificate::from_pem(&fetcher.fetch(url, quota).await?)?;
        certificate.check(policy, fetcher.anchors(), now)?;
        Ok(CachedCertificate::new(certificate, now, clock.moment()))
    }

    /// Fetches a certificate again in the background, while no request waits for it.
    fn refresh(&self, policy: &'static CertificatePolicy, url: &str, now: Timestamp) {
        let certificates = self.clone();
        let url = url.to_owned();
        tokio::spawn(async move { certificates.refreshed(policy, &url, now).await });
    }

    async fn refreshed(&self, policy: &CertificatePolicy, url: &str, now: Timestamp) {
        let fetched = tokio::time::timeout(DEADLINE, self.fetched(policy, url, now)).await;
        let late = Err(CertificateError::Unreachable("it took too long"));
        match fetched.unwrap_or(late) {
            Ok(kept) => self.0.cache.insert(url.to_owned(), kept),
            Err(error) if error.may_pass() => {
                tracing::info!(url, %error, "a certificate of a sender could not be renewed");
            }
            Err(error) if self.0.cache.get(url).is_none_or(|kept| kept.renewal.deny()) => {
                tracing::warn!(url, %error, "a certificate of a sender was withdrawn");
                self.0.cache.remove(url);
            }
            Err(error) => tracing::warn!(
                url,
                %error,
                "a certificate of a sender seems to be withdrawn; it is used until that is said again"
            ),
        }
    }
}

#[cfg(test)]
mod tests;
