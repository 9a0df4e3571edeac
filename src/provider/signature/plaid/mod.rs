//! Plaid: a JWT over the digest of the body, with a key that Plaid's API gives out ("Verify
//! webhooks", plaid.com).

mod token;

use std::time::Duration;

use http::HeaderName;

use self::token::Token;
use super::certificates::{CertificateError, Certificates, Wanted};
use super::header::signature;
use super::keys::Numbered;
use super::timestamp::TimestampFormat;
use super::verdict::{Place, Reason, Refused};
use super::{SecretError, Signed};
use crate::secret::Secret;

/// Where keys are asked for. The sandbox has a host of its own, `sandbox.plaid.com`.
pub(super) const PRODUCTION: &str = "https://production.plaid.com/webhook_verification_key/get";

pub(super) const URL_EXPECTED: &str = "a URL that begins with `https://`";

const HEADER: HeaderName = HeaderName::from_static("plaid-verification");

/// Checks `Plaid-Verification`.
#[derive(Debug)]
pub(super) struct Check {
    /// `CLIENT_ID:SECRET` of the API each, without which no key is given out.
    accounts: Vec<(usize, Secret)>,
    url: String,
    tolerance: Option<Duration>,
}

impl Check {
    pub(super) fn new(
        url: &str,
        secrets: &[Numbered<'_>],
        tolerance: Option<Duration>,
    ) -> Result<Self, SecretError> {
        let account = |numbered: &Numbered<'_>| {
            let written = numbered.secret.reveal().split_once(':');
            let is_account =
                written.is_some_and(|(client, secret)| is_word(client) && is_word(secret));
            let error = SecretError {
                index: numbered.index,
                expected: "the client id and the secret of the API, `CLIENT_ID:SECRET`",
            };
            is_account.then(|| (numbered.index, numbered.secret.clone())).ok_or(error)
        };
        let accounts = secrets.iter().map(account).collect::<Result<_, _>>()?;
        Ok(Self { accounts, url: url.to_owned(), tolerance })
    }

    pub(super) async fn verify(
        &self,
        signed: &Signed<'_>,
        certificates: &Certificates,
    ) -> Result<usize, Refused> {
        let token = Token::read(signature(signed.headers, &HEADER)?)?;
        // Before anybody is asked for a key.
        token.require_body(signed.body)?;
        let mut withheld = None;
        for (index, account) in &self.accounts {
            let wanted = Wanted { url: &self.url, account, id: token.key_id() };
            match certificates.key(wanted, signed.now).await {
                Ok(key) if token.is_signed_with(&key) => {
                    let place = token::claim("iat");
                    let format = TimestampFormat::Seconds;
                    format.check(token.issued_at(), &place, signed, self.tolerance)?;
                    return Ok(*index);
                }
                // An id stands for one key, whoever asks for it.
                Ok(_) => return Err(Reason::Mismatch(Place::Header(HEADER)).into()),
                // Another account may be given it.
                Err(error @ CertificateError::KeyWithheld(_)) => withheld = Some(error),
                Err(error) => return Err(error.into()),
            }
        }
        Err(withheld.unwrap_or(CertificateError::KeyUnknown).into())
    }
}

/// The question holds a secret, so nothing but TLS will do, and nothing may be hidden in the URL.
pub(super) fn read_url(text: &str) -> Option<String> {
    let url: http::Uri = text.parse().ok()?;
    let is_plain = url.authority().is_some_and(|host| !host.as_str().contains('@'));
    (is_plain && url.scheme_str() == Some("https")).then(|| text.to_owned())
}

fn is_word(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic())
}
