//! Public keys that a sender's API gives out by their ids. Each is asked for about once a day.
//!
//! Whoever writes a request writes the id of the key; the URL of the API comes from the
//! configuration. A key is kept while it is asked for again. An id that the API does not know is
//! not asked for again at once. So made-up ids cause few requests, and take no place in the cache
//! from keys that exist.

use std::sync::Arc;
use std::time::Duration;

use http::StatusCode;
use quick_cache::sync::Cache;
use serde_json::json;
use sha2::{Digest as _, Sha256};

use super::Certificates;
use super::error::CertificateError;
use super::fetch::{ApiResponse, DEADLINE, FetchQuota};
use super::jwk::{self, Jwk};
use super::renewal::{FRESH_FOR, Renewal};
use crate::clock::Moment;
use crate::operation::Timestamp;
use crate::secret::Secret;

/// A sender signs with one or two keys at a time.
const KEYS_MAX: usize = 64;
/// How many ids are remembered that the API does not know. When somebody makes up more, some of
/// them are asked for again.
const REFUSED_MAX: usize = 1024;
/// For how long such an id is not asked for again.
const REFUSED_FOR: Duration = Duration::from_mins(1);

/// A question for a key.
#[derive(Debug, Clone, Copy)]
pub(in super::super) struct KeyRequest<'a> {
    /// The URL of the API.
    pub(in super::super) url: &'a str,
    /// The account that asks: `CLIENT_ID:SECRET`.
    pub(in super::super) account: &'a Secret,
    pub(in super::super) id: &'a str,
}

/// The keys that the API gave out, and the ids that it refused.
#[derive(Debug)]
pub(super) struct KeyCache {
    /// Only keys that the API gave out are kept, so nobody can fill the cache with others.
    kept: Cache<KeyRequestId, Arc<CachedKey>>,
    refused: Cache<KeyRequestId, (Moment, CertificateError)>,
}

/// The digest of a [`KeyRequest`]: the name of its key in the cache, which does not hold the
/// secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct KeyRequestId([u8; 32]);

#[derive(Debug)]
struct CachedKey {
    key: Jwk,
    renewal: Renewal,
}

impl KeyRequest<'_> {
    fn name(&self) -> KeyRequestId {
        let mut hash = Sha256::new();
        for part in [self.url, self.account.reveal(), self.id] {
            hash.update(part.len().to_be_bytes());
            hash.update(part);
        }
        KeyRequestId(hash.finalize().into())
    }

    fn question(&self) -> String {
        let account = self.account.reveal();
        let (client, secret) = account.split_once(':').unwrap_or((account, ""));
        json!({ "client_id": client, "secret": secret, "key_id": self.id }).to_string()
    }
}

impl KeyCache {
    pub(super) fn new() -> Self {
        Self { kept: Cache::new(KEYS_MAX), refused: Cache::new(REFUSED_MAX) }
    }

    fn refusal(&self, name: &KeyRequestId, moment: Moment) -> Option<CertificateError> {
        let refused = self.refused.get(name);
        refused.filter(|(until, _)| moment < *until).map(|(_, error)| error)
    }
}

impl Certificates {
    /// The key of this id, if it is in force. `now` is the time of day. It waits no longer than a
    /// few seconds, and is cancel safe: the next caller asks again.
    pub(in super::super) async fn key(
        &self,
        wanted: KeyRequest<'_>,
        now: Timestamp,
    ) -> Result<Jwk, CertificateError> {
        if let Some(answer) = self.0.trusted_answers.get(wanted.url) {
            let key = jwk::read(answer, wanted.id)?;
            return key.in_force(now);
        }
        let within = tokio::time::timeout(DEADLINE, self.kept_or_asked(wanted)).await;
        let late = CertificateError::KeyUnreachable("it took too long");
        within.unwrap_or(Err(late))?.in_force(now)
    }

    async fn kept_or_asked(&self, wanted: KeyRequest<'_>) -> Result<Jwk, CertificateError> {
        let super::CertificatesInner { clock, keys, .. } = &*self.0;
        let name = wanted.name();
        if let Some(kept) = keys.kept.get(&name) {
            if kept.renewal.is_due(clock.moment()) {
                self.renew(wanted);
            }
            return Ok(kept.key.clone());
        }
        // One question at a time for each id: whoever does not get the guard waits for its holder.
        match keys.kept.get_value_or_guard_async(&name).await {
            Ok(kept) => Ok(kept.key.clone()),
            Err(guard) => {
                if let Some(error) = keys.refusal(&name, clock.moment()) {
                    return Err(error);
                }
                match self.asked(wanted, FetchQuota::Unconfirmed).await {
                    Ok(kept) => {
                        let key = kept.key.clone();
                        drop(guard.insert(kept));
                        Ok(key)
                    }
                    Err(error) => {
                        // Where nobody answered, the next request asks again at once.
                        if error.is_answer() {
                            let until = clock.moment().plus(REFUSED_FOR);
                            keys.refused.insert(name, (until, error.clone()));
                        }
                        Err(error)
                    }
                }
            }
        }
    }

    async fn asked(
        &self,
        wanted: KeyRequest<'_>,
        quota: FetchQuota,
    ) -> Result<Arc<CachedKey>, CertificateError> {
        let answer = self.0.fetcher.ask(wanted.url, wanted.question(), quota).await?;
        let key = read(&answer, wanted.id)?;
        let renewal = Renewal::new(self.0.clock.moment().plus(FRESH_FOR));
        Ok(Arc::new(CachedKey { key, renewal }))
    }

    /// Asks for a key again in the background, while no request waits for it.
    fn renew(&self, wanted: KeyRequest<'_>) {
        let certificates = self.clone();
        let KeyRequest { url, account, id } = wanted;
        let url = url.to_owned();
        let account = account.clone();
        let id = id.to_owned();
        tokio::spawn(async move {
            let wanted = KeyRequest { url: &url, account: &account, id: &id };
            certificates.renewed(wanted).await;
        });
    }

    pub(super) async fn renewed(&self, wanted: KeyRequest<'_>) {
        // The API has given out this key before, so nobody made its id up.
        let asked = tokio::time::timeout(DEADLINE, self.asked(wanted, FetchQuota::Confirmed)).await;
        let late = Err(CertificateError::KeyUnreachable("it took too long"));
        let keys = &self.0.keys.kept;
        let name = wanted.name();
        let url = wanted.url;
        match asked.unwrap_or(late) {
            Ok(kept) => keys.insert(name, kept),
            Err(error) if error.may_pass() => {
                tracing::info!(url, %error, "a key of a sender could not be renewed");
            }
            Err(error) if keys.get(&name).is_none_or(|kept| kept.renewal.deny()) => {
                tracing::warn!(url, %error, "a key of a sender was withdrawn");
                keys.remove(&name);
            }
            Err(error) => tracing::warn!(
                url,
                %error,
                "a key of a sender seems to be withdrawn; it is used until that is said again"
            ),
        }
    }
}

/// The key in an answer of the API. Only what the API says of the id itself is final. That it
/// refuses the account may be mended, and then a later copy passes.
fn read(answer: &ApiResponse, id: &str) -> Result<Jwk, CertificateError> {
    match answer.status {
        StatusCode::OK => jwk::read(&answer.body, id),
        status if status.is_server_error() || status == StatusCode::TOO_MANY_REQUESTS => {
            Err(CertificateError::KeyUnreachable("its host cannot answer now"))
        }
        StatusCode::NOT_FOUND => Err(CertificateError::KeyUnknown),
        _ if jwk::says_unknown(&answer.body) => Err(CertificateError::KeyUnknown),
        status => Err(CertificateError::KeyWithheld(status.as_u16())),
    }
}
