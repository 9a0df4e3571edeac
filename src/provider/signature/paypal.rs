//! PayPal: RSA over ids, a time and a checksum of the body, with a certificate from PayPal.

use std::time::Duration;

use http::{HeaderMap, HeaderName};

use super::certificates::{Certificates, PAYPAL, Rsa};
use super::encoding::Encoding;
use super::header::{covered, signature};
use super::keys::Numbered;
use super::timestamp::TimestampFormat;
use super::verdict::{Place, Reason, Refused};
use super::{SecretError, Signed};
use crate::secret::Secret;

/// Checks `PAYPAL-TRANSMISSION-SIG`. The body is bound to it by a CRC-32 only: that is PayPal's
/// scheme, and no more can be known.
#[derive(Debug)]
pub(super) struct Check {
    /// The ids of our webhooks, without which everybody's event would be ours.
    webhooks: Vec<(usize, Secret)>,
    tolerance: Option<Duration>,
}

/// The id for which PayPal's simulator signs ("Webhooks simulator", developer.paypal.com). Who gives
/// it as a secret takes messages of everybody who has an account there.
pub(super) const SIMULATOR: &str = "WEBHOOK_ID";

const ID: HeaderName = HeaderName::from_static("paypal-transmission-id");
const TIME: HeaderName = HeaderName::from_static("paypal-transmission-time");
const SIGNATURE: HeaderName = HeaderName::from_static("paypal-transmission-sig");
const ALGORITHM: HeaderName = HeaderName::from_static("paypal-auth-algo");
const CERTIFICATE: HeaderName = HeaderName::from_static("paypal-cert-url");

impl Check {
    pub(super) fn new(
        secrets: &[Numbered<'_>],
        tolerance: Option<Duration>,
    ) -> Result<Self, SecretError> {
        let webhook = |numbered: &Numbered<'_>| {
            let id = numbered.secret.reveal();
            let is_id = !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_alphanumeric());
            let is_id = is_id || id == SIMULATOR;
            let error = SecretError { index: numbered.index, expected: "the id of a webhook" };
            is_id.then(|| (numbered.index, numbered.secret.clone())).ok_or(error)
        };
        let webhooks = secrets.iter().map(webhook).collect::<Result<_, _>>()?;
        Ok(Self { webhooks, tolerance })
    }

    pub(super) async fn verify(
        &self,
        signed: &Signed<'_>,
        certificates: &Certificates,
    ) -> Result<usize, Refused> {
        let place = Place::Header(SIGNATURE);
        let decoded = Encoding::Base64.decode(signature(signed.headers, &SIGNATURE)?);
        let signature =
            decoded.ok_or_else(|| Reason::Undecodable(place.clone(), Encoding::Base64))?;
        let id = covered(signed.headers, &ID)?;
        let time = covered(signed.headers, &TIME)?;
        require_algorithm(signed.headers)?;
        let url = covered(signed.headers, &CERTIFICATE)?;
        let certificate = certificates.get(&PAYPAL, url, signed.now).await?;
        let checksum = crc32fast::hash(signed.body).to_string();
        let made = |webhook: &str| {
            let parts: [&[u8]; 4] = [id, time, webhook.as_bytes(), checksum.as_bytes()];
            certificate.made(Rsa::Sha256, &parts.join(&b'|'), &signature)
        };
        let found = self.webhooks.iter().find(|(_, webhook)| made(webhook.reveal()));
        let (secret, _) = found.ok_or(Reason::Mismatch(place))?;
        certificates.confirm(url);
        let place = Place::Header(TIME);
        TimestampFormat::Rfc3339.check(time, &place, signed, self.tolerance)?;
        Ok(*secret)
    }
}

fn require_algorithm(headers: &HeaderMap) -> Result<(), Reason> {
    if covered(headers, &ALGORITHM)?.eq_ignore_ascii_case(b"SHA256withRSA") {
        return Ok(());
    }
    Err(Reason::Unknown(Place::Header(ALGORITHM), "`SHA256withRSA`"))
}
