//! PayPal: RSA over the delivery's id and time, the webhook's id and a CRC-32 of the body, checked
//! with a certificate from PayPal ("Integrate webhooks", developer.paypal.com).
//!
//! A CRC-32 can be made to fit: whoever has captured one request can append bytes to another body
//! so that it has the same checksum. That is PayPal's scheme, and no check of it can know more.

use std::time::Duration;

use http::{HeaderMap, HeaderName};

use super::certificates::{Certificates, PAYPAL, RsaDigest};
use super::encoding::Encoding;
use super::header::{covered, signature};
use super::keys::{NumberedSecret, SecretError};
use super::profile::{Binding, Profile};
use super::timestamp_format::TimestampFormat;
use super::verdict::{InvalidReason, Location, SignatureError};
use crate::provider::ReceivedRequest;
use crate::secret::Secret;

/// Checks `PAYPAL-TRANSMISSION-SIG`.
#[derive(Debug)]
pub(super) struct PayPalVerifier {
    /// The ids of the operator's webhooks, each with its index in the configuration. PayPal signs
    /// for everybody's webhooks, so the signature alone does not say that an event is for this one.
    webhooks: Vec<(usize, Secret)>,
    tolerance: Option<Duration>,
}

/// The id for which PayPal's simulator signs ("Webhooks simulator", developer.paypal.com). With it
/// as a secret, everybody who has an account at PayPal can send events.
pub(super) const SIMULATOR: &str = "WEBHOOK_ID";

pub(super) const PROFILE: Profile = Profile {
    secret: "the id of the webhook",
    binding: Binding::Loose,
    signed_headers: &["paypal-transmission-id", "paypal-transmission-time"],
    header_prefixes: &["paypal-"],
    has_timestamp: true,
    is_fetched: true,
    public_secret: Some(SIMULATOR),
    ..Profile::OF_BODY
};

const ID: HeaderName = HeaderName::from_static("paypal-transmission-id");
const TIME: HeaderName = HeaderName::from_static("paypal-transmission-time");
const SIGNATURE: HeaderName = HeaderName::from_static("paypal-transmission-sig");
const ALGORITHM: HeaderName = HeaderName::from_static("paypal-auth-algo");
const CERTIFICATE: HeaderName = HeaderName::from_static("paypal-cert-url");

impl PayPalVerifier {
    pub(super) fn new(
        secrets: &[NumberedSecret<'_>],
        tolerance: Option<Duration>,
    ) -> Result<Self, SecretError> {
        let webhook = |numbered: &NumberedSecret<'_>| {
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
        received: &ReceivedRequest<'_>,
        certificates: &Certificates,
    ) -> Result<usize, SignatureError> {
        let location = Location::Header(SIGNATURE);
        let decoded = Encoding::Base64.decode(signature(received.headers, &SIGNATURE)?);
        let signature = decoded
            .ok_or_else(|| InvalidReason::Undecodable(location.clone(), Encoding::Base64))?;
        let id = covered(received.headers, &ID)?;
        let time = covered(received.headers, &TIME)?;
        require_algorithm(received.headers)?;
        let url = covered(received.headers, &CERTIFICATE)?;
        let certificate = certificates.get(&PAYPAL, url, received.now).await?;
        let checksum = crc32fast::hash(received.body).to_string();
        let made = |webhook: &str| {
            let parts: [&[u8]; 4] = [id, time, webhook.as_bytes(), checksum.as_bytes()];
            certificate.made(RsaDigest::Sha256, &parts.join(&b'|'), &signature)
        };
        let found = self.webhooks.iter().find(|(_, webhook)| made(webhook.reveal()));
        let (secret, _) = found.ok_or(InvalidReason::Mismatch(location))?;
        // Only after a right signature: anybody can name a URL.
        certificates.confirm(url);
        let location = Location::Header(TIME);
        TimestampFormat::Rfc3339.check(time, &location, received, self.tolerance)?;
        Ok(*secret)
    }
}

/// Only the one algorithm is taken. The header is not signed, and nobody who writes the request may
/// choose a weaker one.
fn require_algorithm(headers: &HeaderMap) -> Result<(), InvalidReason> {
    if covered(headers, &ALGORITHM)?.eq_ignore_ascii_case(b"SHA256withRSA") {
        return Ok(());
    }
    Err(InvalidReason::Unknown(Location::Header(ALGORITHM), "`SHA256withRSA`"))
}
