//! Public keys that an API of the sender gives out by their ids, each asked for about once a day.
//!
//! The id comes from whoever wrote the request; where it is asked for does not. A key that is there
//! stays while it is asked for again, and an id that the API does not know is not asked for again
//! at once, so made-up ids cost few questions and take no place of a key that exists.

use std::sync::Arc;
use std::time::Duration;

use http::StatusCode;
use quick_cache::sync::Cache;
use serde_json::json;
use sha2::{Digest as _, Sha256};

use super::fetch::{Answer, Room};
use super::jwk::{self, Jwk};
use super::renewal::Renewal;
use super::{CertificateError, Certificates, DEADLINE, FRESH_FOR};
use crate::clock::Moment;
use crate::operation::Timestamp;
use crate::secret::Secret;

/// A sender signs with one or two at a time.
const KEYS_MAX: usize = 64;
/// Ids that the API does not know. Whoever makes up more has them asked for again.
const REFUSED_MAX: usize = 1024;
/// How long what the API said of such an id holds.
const REFUSED_FOR: Duration = Duration::from_mins(1);

/// Which key is wanted, and who asks for it.
#[derive(Debug, Clone, Copy)]
pub(in super::super) struct Wanted<'a> {
    /// Where it is asked for.
    pub(in super::super) url: &'a str,
    /// `CLIENT_ID:SECRET` of the API.
    pub(in super::super) account: &'a Secret,
    pub(in super::super) id: &'a str,
}

/// What is known of keys.
#[derive(Debug)]
pub(super) struct Keys {
    /// Only what the API gave out gets in, so nobody can fill it with anything else.
    kept: Cache<Name, Arc<Kept>>,
    refused: Cache<Name, (Moment, CertificateError)>,
}

/// Stands for all of [`Wanted`] without holding the secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Name([u8; 32]);

#[derive(Debug)]
struct Kept {
    key: Jwk,
    renewal: Renewal,
}

impl Wanted<'_> {
    fn name(&self) -> Name {
        let mut hash = Sha256::new();
        for part in [self.url, self.account.reveal(), self.id] {
            hash.update(part.len().to_be_bytes());
            hash.update(part);
        }
        Name(hash.finalize().into())
    }

    fn question(&self) -> String {
        let account = self.account.reveal();
        let (client, secret) = account.split_once(':').unwrap_or((account, ""));
        json!({ "client_id": client, "secret": secret, "key_id": self.id }).to_string()
    }
}

impl Keys {
    pub(super) fn new() -> Self {
        Self { kept: Cache::new(KEYS_MAX), refused: Cache::new(REFUSED_MAX) }
    }

    fn refusal(&self, name: &Name, moment: Moment) -> Option<CertificateError> {
        let refused = self.refused.get(name);
        refused.filter(|(until, _)| moment < *until).map(|(_, error)| error)
    }
}

impl Certificates {
    /// The key of this id, if it is in force. `now` is the time of day.
    pub(in super::super) async fn key(
        &self,
        wanted: Wanted<'_>,
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

    async fn kept_or_asked(&self, wanted: Wanted<'_>) -> Result<Jwk, CertificateError> {
        let super::Shared { clock, keys, .. } = &*self.0;
        let name = wanted.name();
        if let Some(kept) = keys.kept.get(&name) {
            if kept.renewal.is_due(clock.moment()) {
                self.renew(wanted);
            }
            return Ok(kept.key.clone());
        }
        // One at a time for each id: who does not get the guard waits for who has it.
        match keys.kept.get_value_or_guard_async(&name).await {
            Ok(kept) => Ok(kept.key.clone()),
            Err(guard) => {
                if let Some(error) = keys.refusal(&name, clock.moment()) {
                    return Err(error);
                }
                match self.asked(wanted, Room::Unknown).await {
                    Ok(kept) => {
                        let key = kept.key.clone();
                        drop(guard.insert(kept));
                        Ok(key)
                    }
                    Err(error) => {
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

    async fn asked(&self, wanted: Wanted<'_>, room: Room) -> Result<Arc<Kept>, CertificateError> {
        let answer = self.0.fetcher.ask(wanted.url, wanted.question(), room).await?;
        let key = read(&answer, wanted.id)?;
        let renewal = Renewal::new(self.0.clock.moment().plus(FRESH_FOR));
        Ok(Arc::new(Kept { key, renewal }))
    }

    /// Asks for it again while nobody waits for it.
    fn renew(&self, wanted: Wanted<'_>) {
        let certificates = self.clone();
        let Wanted { url, account, id } = wanted;
        let url = url.to_owned();
        let account = account.clone();
        let id = id.to_owned();
        tokio::spawn(async move {
            let wanted = Wanted { url: &url, account: &account, id: &id };
            certificates.renewed(wanted).await;
        });
    }

    pub(super) async fn renewed(&self, wanted: Wanted<'_>) {
        // The API gave the key out, so it is none that somebody made up.
        let asked = tokio::time::timeout(DEADLINE, self.asked(wanted, Room::Confirmed)).await;
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

/// What the API says of an id. Only what it says of the id itself is final: that it does not take
/// our account may be mended, and a later copy may pass.
fn read(answer: &Answer, id: &str) -> Result<Jwk, CertificateError> {
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
