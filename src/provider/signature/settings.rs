//! What is known of a sender's signatures.

use std::time::Duration;

use http::HeaderName;

use super::encoding::Encoding;
use super::keys::{Method, SecretForm};
use super::part::{Part, TimestampSource};
use super::timestamp::TimestampFormat;

/// How a sender signs. Made by [`super::Written::settings`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    pub(super) scheme: Scheme,
    /// For requests in which the first one's signature does not occur.
    pub(super) otherwise: Option<Box<Self>>,
}

/// The ways to sign.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Scheme {
    Detached(Detached),
    Token(Token),
    StandardWebhooks { tolerance: Option<Duration> },
    HubSpot { tolerance: Option<Duration> },
    Mailgun { tolerance: Option<Duration> },
    PayPal { tolerance: Option<Duration> },
    Sns { tolerance: Option<Duration> },
    Twilio,
    AdyenItems,
    Braintree,
}

/// A signature in a header, over parts of the request one after the other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Detached {
    pub(super) method: Method,
    pub(super) header: HeaderName,
    /// What a signature begins with; other entries are skipped.
    pub(super) prefix: String,
    pub(super) separator: Option<u8>,
    /// Whether each line of the header is a value of its own.
    pub(super) repeated: bool,
    pub(super) encoding: Encoding,
    pub(super) signed: Vec<Part>,
    pub(super) timestamp: Option<TimestampSource>,
    pub(super) timestamp_format: TimestampFormat,
    pub(super) tolerance: Option<Duration>,
    pub(super) secret: SecretForm,
}

/// The secret itself in a header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Token {
    pub(super) header: HeaderName,
    pub(super) prefix: String,
    /// How the secret is written there; none: as it is.
    pub(super) encoding: Option<Encoding>,
}

impl Settings {
    /// Whether the signature covers the public URL.
    pub fn needs_public_url(&self) -> bool {
        self.any(|scheme| match scheme {
            Scheme::Detached(detached) => detached.signed.contains(&Part::Url),
            Scheme::HubSpot { .. } | Scheme::Twilio => true,
            Scheme::Token(_)
            | Scheme::StandardWebhooks { .. }
            | Scheme::Mailgun { .. }
            | Scheme::PayPal { .. }
            | Scheme::Sns { .. }
            | Scheme::AdyenItems
            | Scheme::Braintree => false,
        })
    }

    /// Whether it is checked with a certificate that has to be fetched.
    pub fn needs_certificates(&self) -> bool {
        self.any(|scheme| matches!(scheme, Scheme::PayPal { .. } | Scheme::Sns { .. }))
    }

    /// How far a timestamp may be from now, if it is checked.
    pub fn tolerance(&self) -> Option<Duration> {
        match &self.scheme {
            Scheme::Detached(detached) => detached.tolerance,
            Scheme::StandardWebhooks { tolerance }
            | Scheme::HubSpot { tolerance }
            | Scheme::Mailgun { tolerance }
            | Scheme::PayPal { tolerance }
            | Scheme::Sns { tolerance } => *tolerance,
            Scheme::Token(_) | Scheme::Twilio | Scheme::AdyenItems | Scheme::Braintree => None,
        }
    }

    /// Whether there is a timestamp to which a tolerance could apply.
    pub fn has_timestamp(&self) -> bool {
        self.any(|scheme| match scheme {
            Scheme::Detached(detached) => detached.timestamp.is_some(),
            Scheme::StandardWebhooks { .. }
            | Scheme::HubSpot { .. }
            | Scheme::Mailgun { .. }
            | Scheme::PayPal { .. }
            | Scheme::Sns { .. } => true,
            Scheme::Token(_) | Scheme::Twilio | Scheme::AdyenItems | Scheme::Braintree => false,
        })
    }

    /// Whether a changed body is noticed. Not where the secret is only sent along, or where the
    /// signature covers less than the body.
    pub fn covers_body(&self) -> bool {
        !self.any(|scheme| match scheme {
            Scheme::Token(_) | Scheme::Mailgun { .. } | Scheme::AdyenItems => true,
            Scheme::Detached(_)
            | Scheme::StandardWebhooks { .. }
            | Scheme::HubSpot { .. }
            | Scheme::PayPal { .. }
            | Scheme::Sns { .. }
            | Scheme::Twilio
            | Scheme::Braintree => false,
        })
    }

    /// What a person has to give as the secret.
    pub fn secret_is(&self) -> &'static str {
        match &self.scheme {
            Scheme::Detached(Detached { method: Method::Ed25519 | Method::EcdsaP256, .. }) => {
                "the sender's public key"
            }
            Scheme::Detached(_) | Scheme::StandardWebhooks { .. } => "the signing secret",
            Scheme::Token(_) => "the secret that the sender sends along",
            Scheme::HubSpot { .. } => "the app's client secret",
            Scheme::Mailgun { .. } => "the webhook signing key",
            Scheme::PayPal { .. } => "the id of the webhook",
            Scheme::Sns { .. } => "the ARN of the topic",
            Scheme::Twilio => "the auth token",
            Scheme::AdyenItems => "the HMAC key in hexadecimal",
            Scheme::Braintree => "the private key",
        }
    }

    fn any(&self, is: impl Fn(&Scheme) -> bool + Copy) -> bool {
        is(&self.scheme) || self.otherwise.as_ref().is_some_and(|settings| settings.any(is))
    }
}
