//! Plaid: a JWT over the digest of the body, checked with a key that Plaid's API gives out
//! ("Webhook verification", plaid.com/docs/api/webhooks). The API gives keys to Plaid's customers
//! only, so the secret is the account's own.

mod token;

use std::time::Duration;

use self::token::{HEADER, Token};
use super::certificates::{CertificateError, Certificates, KeyRequest};
use super::header::signature;
use super::keys::{NumberedSecret, SecretError};
use super::profile::Profile;
use super::timestamp_format::TimestampFormat;
use super::verdict::{InvalidReason, Location, SignatureError};
use crate::provider::ReceivedRequest;
use crate::secret::Secret;

/// The API that gives out the keys. Plaid's sandbox has a host of its own, `sandbox.plaid.com`,
/// which the table can name (`url`).
pub(super) const PRODUCTION: &str = "https://production.plaid.com/webhook_verification_key/get";

pub(super) const URL_EXPECTED: &str = "a URL that begins with `https://`";

/// Checks `Plaid-Verification`.
#[derive(Debug)]
pub(super) struct PlaidVerifier {
    /// `CLIENT_ID:SECRET` of accounts at the API, each with its index in the configuration.
    accounts: Vec<(usize, Secret)>,
    url: String,
    tolerance: Option<Duration>,
}

pub(super) const PROFILE: Profile = Profile {
    secret: "`CLIENT_ID:SECRET` of the API",
    header_prefixes: &["plaid-"],
    has_timestamp: true,
    is_fetched: true,
    ..Profile::OF_BODY
};

impl PlaidVerifier {
    pub(super) fn new(
        url: &str,
        secrets: &[NumberedSecret<'_>],
        tolerance: Option<Duration>,
    ) -> Result<Self, SecretError> {
        let account = |numbered: &NumberedSecret<'_>| {
            // A blank would have been copied along by mistake.
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
        received: &ReceivedRequest<'_>,
        certificates: &Certificates,
    ) -> Result<usize, SignatureError> {
        let token = Token::read(signature(received.headers, &HEADER)?)?;
        // The body is compared before a key is asked for, so that a changed body causes no request.
        token.require_body(received.body)?;
        let mut withheld = None;
        for (index, account) in &self.accounts {
            let wanted = KeyRequest { url: &self.url, account, id: token.key_id() };
            match certificates.key(wanted, received.now).await {
                Ok(key) if token.is_signed_with(&key) => {
                    let location = token::claim("iat");
                    let format = TimestampFormat::Seconds;
                    format.check(token.issued_at(), &location, received, self.tolerance)?;
                    return Ok(*index);
                }
                // An id stands for one key, whichever account asks for it: another account would be
                // given the same key.
                Ok(_) => return Err(InvalidReason::Mismatch(Location::Header(HEADER)).into()),
                // The API refuses this account. It may accept another one.
                Err(error @ CertificateError::KeyWithheld(_)) => withheld = Some(error),
                Err(error) => return Err(error.into()),
            }
        }
        Err(withheld.unwrap_or(CertificateError::KeyUnknown).into())
    }
}

/// The URL, if it is one that keys can be asked for. The request to it holds a secret, so it has to
/// be https. A user part is refused: in `https://plaid.com@evil.example` the host is another one
/// than a reader sees.
pub(super) fn read_url(text: &str) -> Option<String> {
    let url: http::Uri = text.parse().ok()?;
    let is_plain = url.authority().is_some_and(|host| !host.as_str().contains('@'));
    (is_plain && url.scheme_str() == Some("https")).then(|| text.to_owned())
}

fn is_word(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic())
}
