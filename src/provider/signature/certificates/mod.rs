//! Certificates that a request names: from the sender's own hosts only, each fetched about once a day;
//! and keys that a request names, which an API of the sender gives out.
//!
//! A certificate that is older than that is still used while it is fetched again, for as long as it
//! is in force itself: a host that cannot be reached for a while costs no event, nor does one that
//! says once that it has no such certificate.
//!
//! Whoever writes the request writes the URL, so the URL is held against a list before anything is
//! asked, and nothing can lead away from it: no redirect, no proxy, no other port.

mod chain;
mod fetch;
mod jwk;
mod keys;
mod renewal;
mod rule;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use quick_cache::sync::Cache;

pub(super) use chain::{Certificate, Rsa};
pub(super) use jwk::Jwk;
pub(super) use keys::Wanted;
pub(super) use rule::{PAYPAL, Rule, SNS};

use self::fetch::{Fetcher, Room};
use self::keys::Keys;
use self::renewal::Renewal;
use crate::clock::{Clock, Moment};
use crate::operation::Timestamp;

/// After this a certificate is fetched again, while the one that is there is still used.
const FRESH_FOR: Duration = Duration::from_hours(24);
/// It is also fetched again this long before it ends.
const AHEAD: Duration = Duration::from_hours(1);
/// How long after a fetch that failed the next one is made.
const AGAIN_AFTER: Duration = Duration::from_mins(1);
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
    cache: Cache<String, Arc<Kept>>,
    /// The URLs of certificates by which a message for us was signed. Only the sender gets in.
    confirmed: Cache<String, ()>,
    trusted: BTreeMap<String, Arc<Certificate>>,
    keys: Keys,
    /// What the API at a URL is taken to answer.
    trusted_answers: BTreeMap<String, Vec<u8>>,
}

#[derive(Debug)]
struct Kept {
    certificate: Arc<Certificate>,
    renewal: Renewal,
}

impl Shared {
    fn new(clock: Clock, fetcher: Fetcher) -> Self {
        Self {
            fetcher,
            clock,
            cache: Cache::new(CERTIFICATES_MAX),
            confirmed: Cache::new(CERTIFICATES_MAX),
            trusted: BTreeMap::new(),
            keys: Keys::new(),
            trusted_answers: BTreeMap::new(),
        }
    }
}

impl Kept {
    fn new(certificate: Certificate, now: Timestamp, moment: Moment) -> Arc<Self> {
        let left = certificate.ends_in(now).saturating_sub(AHEAD);
        let due = moment.plus(FRESH_FOR.min(left).max(AGAIN_AFTER));
        Arc::new(Self { certificate: Arc::new(certificate), renewal: Renewal::new(due) })
    }
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
    /// The API that gives keys out did not answer in time, or not at all, or said that it cannot now.
    #[error("the sender's key could not be fetched: {0}")]
    KeyUnreachable(&'static str),
    /// It gives out none to who asked.
    #[error("the sender's API gave no key out: status {0}; are client id and secret right?")]
    KeyWithheld(u16),
    /// It has no key of this id.
    #[error("the sender has no key of the id in the signature")]
    KeyUnknown,
    /// It is no longer signed with.
    #[error("the sender's key has expired")]
    KeyExpired,
    /// What it gave out is no key.
    #[error("what the sender's API gave out is {0}")]
    NotAKey(&'static str),
}

/// Why nothing can ever be fetched.
#[derive(Debug, thiserror::Error)]
#[error("cannot prepare to fetch certificates")]
pub struct CertificatesError(#[from] reqwest::Error);

impl CertificateError {
    /// Whether the next copy of the same request may fare better.
    pub(super) const fn may_pass(&self) -> bool {
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

    /// Whether somebody answered, so that the same answer is to be expected for a while.
    const fn is_answer(&self) -> bool {
        !self.may_pass() || matches!(self, Self::KeyWithheld(_))
    }
}

impl Certificates {
    /// Fetches over https, trusting the roots that Mozilla trusts and those of this machine.
    ///
    /// # Errors
    /// No TLS client can be made.
    pub fn new(clock: Clock) -> Result<Self, CertificatesError> {
        Ok(Self(Arc::new(Shared::new(clock, Fetcher::new()?))))
    }

    /// Takes these URLs for these certificates (PEM), whoever signed them and however old they are,
    /// or for what an API that gives keys out answers (JSON): for captured requests and for tests. All others are fetched.
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
        Ok(Self(Arc::new(Shared {
            trusted: certificates,
            trusted_answers: answers,
            ..Shared::new(clock, Fetcher::new()?)
        })))
    }

    /// The certificate at `url`, if `rule` lets it be used. `now` is the time of day.
    pub(super) async fn get(
        &self,
        rule: &'static Rule,
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

    /// Notes that a message for us was signed with the certificate at this URL: there is room to
    /// fetch it again, whatever others ask for.
    pub(super) fn confirm(&self, url: &[u8]) {
        let Ok(url) = std::str::from_utf8(url) else { return };
        if self.0.confirmed.get(url).is_none() {
            self.0.confirmed.insert(url.to_owned(), ());
        }
    }

    async fn kept_or_fetched(
        &self,
        rule: &'static Rule,
        url: &str,
        now: Timestamp,
    ) -> Result<Arc<Certificate>, CertificateError> {
        let Shared { clock, cache, .. } = &*self.0;
        if let Some(kept) = cache.get(url) {
            if kept.certificate.require_in_force(now).is_ok() {
                if kept.renewal.is_due(clock.moment()) {
                    self.refresh(rule, url, now);
                }
                return Ok(Arc::clone(&kept.certificate));
            }
            cache.remove(url);
        }
        // One at a time for each URL: who does not get the guard waits for who has it. If that one
        // fails or is dropped, the next one tries.
        match cache.get_value_or_guard_async(url).await {
            Ok(kept) => Ok(Arc::clone(&kept.certificate)),
            Err(guard) => {
                let kept = self.fetched(rule, url, now).await?;
                // Nobody else needs to know if it was not kept.
                drop(guard.insert(Arc::clone(&kept)));
                Ok(Arc::clone(&kept.certificate))
            }
        }
    }

    async fn fetched(
        &self,
        rule: &Rule,
        url: &str,
        now: Timestamp,
    ) -> Result<Arc<Kept>, CertificateError> {
        let Shared { fetcher, clock, confirmed, .. } = &*self.0;
        let room = if confirmed.get(url).is_some() { Room::Confirmed } else { Room::Unknown };
        let certificate = Certificate::from_pem(&fetcher.fetch(url, room).await?)?;
        certificate.check(rule, fetcher.anchors(), now)?;
        Ok(Kept::new(certificate, now, clock.moment()))
    }

    /// Fetches it while nobody waits for it.
    fn refresh(&self, rule: &'static Rule, url: &str, now: Timestamp) {
        let certificates = self.clone();
        let url = url.to_owned();
        tokio::spawn(async move { certificates.refreshed(rule, &url, now).await });
    }

    async fn refreshed(&self, rule: &Rule, url: &str, now: Timestamp) {
        let fetched = tokio::time::timeout(DEADLINE, self.fetched(rule, url, now)).await;
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
