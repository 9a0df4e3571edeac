//! The check of one sender's signatures.

use std::time::Duration;

use super::certificates::Certificates;
use super::keys::{Numbered, SecretError};
use super::settings::{Scheme, Settings};
use super::verdict::{Refused, Verified};
use super::{
    Signed, adyen, braintree, detached, hubspot, mailgun, paypal, sns, standard, token, twilio,
};
use crate::secret::Secret;

/// Checks signatures with the secrets of one route. Made once, shared by all requests.
#[derive(Debug)]
pub struct Verifier {
    first: Check,
    /// Each is as good as the first.
    others: Vec<Check>,
    certificates: Certificates,
}

#[derive(Debug)]
enum Check {
    Detached(detached::Check),
    Token(token::Check),
    StandardWebhooks(standard::Check),
    HubSpot(hubspot::Check),
    Mailgun(mailgun::Check),
    PayPal(paypal::Check),
    Sns(sns::Check),
    Twilio(twilio::Check),
    AdyenItems(adyen::Check),
    Braintree(braintree::Check),
}

impl Verifier {
    /// A verifier with these secrets. `tolerance` stands for the sender's own;
    /// [`Duration::MAX`] accepts every timestamp.
    ///
    /// Without any secret nothing can ever be valid; that is for the caller to refuse.
    ///
    /// # Errors
    /// The first secret that is of use to none of the ways in which the sender signs.
    pub fn new(
        settings: &Settings,
        secrets: &[Secret],
        tolerance: Option<Duration>,
        certificates: &Certificates,
    ) -> Result<Self, SecretError> {
        Self::check_secrets(settings, secrets)?;
        let build = |way: &Scheme| {
            let usable = numbered(secrets).filter(|secret| usable(way, secret).is_ok());
            Check::new(way, &usable.collect::<Vec<_>>(), tolerance)
        };
        let first = build(&settings.scheme)?;
        let others = others(settings).map(build).collect::<Result<_, _>>()?;
        Ok(Self { first, others, certificates: certificates.clone() })
    }

    /// Whether each secret can be what the sender gave out.
    ///
    /// # Errors
    /// The first that is of use to none of the ways in which the sender signs.
    pub fn check_secrets(settings: &Settings, secrets: &[Secret]) -> Result<(), SecretError> {
        for secret in numbered(secrets) {
            if !others(settings).any(|way| usable(way, &secret).is_ok()) {
                usable(&settings.scheme, &secret)?;
            }
        }
        Ok(())
    }

    /// Whether the owner of one of the secrets sent this. Waits only for certificates, and for
    /// those no longer than a few seconds. May be dropped at any moment.
    ///
    /// # Errors
    /// [`Refused`]: why it is not known to be so.
    pub async fn verify(&self, signed: &Signed<'_>) -> Result<Verified, Refused> {
        let mut refused = match self.first.verify(signed, &self.certificates).await {
            Ok(verified) => return Ok(verified),
            Err(refused) => refused,
        };
        for check in &self.others {
            match check.verify(signed, &self.certificates).await {
                Ok(verified) => return Ok(verified),
                // What is there and wrong says more than what is not there.
                Err(error) if matches!(refused, Refused::Missing(_)) => {
                    if !matches!(error, Refused::Missing(_)) {
                        refused = error;
                    }
                }
                Err(_) => {}
            }
        }
        Err(refused)
    }
}

fn numbered(secrets: &[Secret]) -> impl Iterator<Item = Numbered<'_>> {
    (0..).zip(secrets).map(|(index, secret)| Numbered { index, secret })
}

/// The ways to sign beside the first.
fn others(settings: &Settings) -> impl Iterator<Item = &Scheme> {
    std::iter::successors(settings.otherwise.as_deref(), |settings| settings.otherwise.as_deref())
        .map(|settings| &settings.scheme)
}

fn usable(way: &Scheme, secret: &Numbered<'_>) -> Result<(), SecretError> {
    Check::new(way, std::slice::from_ref(secret), None).map(|_| ())
}

impl Check {
    fn new(
        scheme: &Scheme,
        secrets: &[Numbered<'_>],
        own: Option<Duration>,
    ) -> Result<Self, SecretError> {
        let within =
            |usual: &Option<Duration>| own.or(*usual).filter(|within| *within < Duration::MAX);
        Ok(match scheme {
            Scheme::Detached(settings) => {
                let tolerance = within(&settings.tolerance);
                Self::Detached(detached::Check::new(settings, secrets, tolerance)?)
            }
            Scheme::Token(settings) => Self::Token(token::Check::new(settings, secrets)?),
            Scheme::StandardWebhooks { tolerance } => {
                Self::StandardWebhooks(standard::Check::new(secrets, within(tolerance))?)
            }
            Scheme::HubSpot { tolerance } => {
                Self::HubSpot(hubspot::Check::new(secrets, within(tolerance))?)
            }
            Scheme::Mailgun { tolerance } => {
                Self::Mailgun(mailgun::Check::new(secrets, within(tolerance))?)
            }
            Scheme::PayPal { tolerance } => {
                Self::PayPal(paypal::Check::new(secrets, within(tolerance))?)
            }
            Scheme::Sns { tolerance } => Self::Sns(sns::Check::new(secrets, within(tolerance))?),
            Scheme::Twilio => Self::Twilio(twilio::Check::new(secrets)?),
            Scheme::AdyenItems => Self::AdyenItems(adyen::Check::new(secrets)?),
            Scheme::Braintree => Self::Braintree(braintree::Check::new(secrets)?),
        })
    }

    async fn verify(
        &self,
        signed: &Signed<'_>,
        certificates: &Certificates,
    ) -> Result<Verified, Refused> {
        match self {
            Self::Detached(check) => check.verify(signed),
            Self::Token(check) => check.verify(signed),
            Self::StandardWebhooks(check) => check.verify(signed),
            Self::HubSpot(check) => check.verify(signed),
            Self::Mailgun(check) => check.verify(signed),
            Self::PayPal(check) => check.verify(signed, certificates).await,
            Self::Sns(check) => check.verify(signed, certificates).await,
            Self::Twilio(check) => check.verify(signed),
            Self::AdyenItems(check) => check.verify(signed),
            Self::Braintree(check) => check.verify(signed),
        }
    }
}
