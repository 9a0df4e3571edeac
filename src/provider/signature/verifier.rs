//! The check of one sender's signatures.

use std::time::Duration;

use super::certificates::Certificates;
use super::keys::{Numbered, SecretError};
use super::settings::{Scheme, Settings, Way};
use super::verdict::{Reason, Refused, Verified};
use super::{
    Signed, adyen, braintree, detached, hubspot, paypal, plaid, sns, standard, token, twilio,
};
use crate::secret::Secret;

/// Checks signatures with the secrets of one route. Made once, shared by all requests.
#[derive(Debug)]
pub struct Verifier {
    settings: Settings,
    /// The strongest first.
    checks: Vec<WayCheck>,
    certificates: Certificates,
}

#[derive(Debug)]
struct WayCheck {
    way: Way,
    check: Check,
}

#[derive(Debug)]
enum Check {
    Detached(detached::Check),
    Token(token::Check),
    StandardWebhooks(standard::Check),
    HubSpot(hubspot::Check),
    PayPal(paypal::Check),
    Sns(sns::Check),
    Plaid(plaid::Check),
    Twilio(twilio::Check),
    AdyenItems(adyen::Check),
    Braintree(braintree::Check),
}

impl Verifier {
    /// A verifier with these secrets. `tolerance` stands for the sender's own;
    /// [`Duration::MAX`] accepts every timestamp.
    ///
    /// Without any secret nothing can ever be valid; that is for the caller to refuse. A way for
    /// which none of the secrets is of use is one that the operator has not set up: it is left out.
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
        let mut checks = Vec::new();
        for way in settings.accepted() {
            let usable = numbered(secrets).filter(|secret| usable(way, secret).is_ok());
            let usable: Vec<_> = usable.collect();
            if !usable.is_empty() || secrets.is_empty() {
                let check = Check::new(&way.scheme, &usable, tolerance)?;
                checks.push(WayCheck { way: way.clone(), check });
            }
        }
        Ok(Self { settings: settings.clone(), checks, certificates: certificates.clone() })
    }

    /// Whether each secret can be what the sender gave out.
    ///
    /// # Errors
    /// The first that is of use to none of the ways in which the sender signs.
    pub fn check_secrets(settings: &Settings, secrets: &[Secret]) -> Result<(), SecretError> {
        for secret in numbered(secrets) {
            let mut error = None;
            for way in settings.accepted() {
                match usable(way, &secret) {
                    Ok(()) => {
                        error = None;
                        break;
                    }
                    Err(refused) => error = error.or(Some(refused)),
                }
            }
            error.map_or(Ok(()), Err)?;
        }
        Ok(())
    }

    /// Whether the owner of one of the secrets sent this. Waits only for certificates, and for
    /// those no longer than a few seconds. May be dropped at any moment.
    ///
    /// The first way whose signature is present decides. Ways that read the very same header are
    /// two forms of one signature: that it is not right in the first says nothing of the second.
    ///
    /// # Errors
    /// [`Refused`]: why it is not known to be so.
    pub async fn verify(&self, signed: &Signed<'_>) -> Result<Verified, Refused> {
        let mut missing = None;
        let mut wrong: Option<Wrong<'_>> = None;
        for WayCheck { way, check } in &self.checks {
            if wrong.as_ref().is_some_and(|wrong| !wrong.is_in(way)) {
                break;
            }
            match check.verify(signed, &self.certificates).await {
                Ok(secret) => {
                    let carried = self.settings.carried_by(way, signed);
                    return Ok(Verified { secret, carried });
                }
                Err(refused @ (Refused::Missing(_) | Refused::NoEvent)) => {
                    missing = missing.or(Some(refused));
                }
                Err(reason @ (Refused::Invalid(_) | Refused::Empty(_))) => {
                    wrong = wrong.or(Some(Wrong { way, reason }));
                }
                Err(refused @ (Refused::Stale { .. } | Refused::Undecided(_))) => {
                    return Err(refused);
                }
            }
        }
        // There is always a way, so one of the two is there.
        let nothing = Refused::Invalid(Reason::Body("signed"));
        Err(wrong.map(|wrong| wrong.reason).or(missing).unwrap_or(nothing))
    }
}

/// A signature that is present and not right.
struct Wrong<'a> {
    way: &'a Way,
    reason: Refused,
}

impl Wrong<'_> {
    /// Whether another way reads the same signature.
    fn is_in(&self, other: &Way) -> bool {
        let headers = self.way.scheme.headers();
        !headers.is_empty() && headers == other.scheme.headers()
    }
}

fn numbered(secrets: &[Secret]) -> impl Iterator<Item = Numbered<'_>> {
    (0..).zip(secrets).map(|(index, secret)| Numbered { index, secret })
}

fn usable(way: &Way, secret: &Numbered<'_>) -> Result<(), SecretError> {
    Check::new(&way.scheme, std::slice::from_ref(secret), None).map(|_| ())
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
            Scheme::StandardWebhooks { tolerance, prefixed } => {
                let tolerance = within(tolerance);
                Self::StandardWebhooks(standard::Check::new(secrets, tolerance, *prefixed)?)
            }
            Scheme::HubSpot { version, tolerance } => {
                Self::HubSpot(hubspot::Check::new(*version, secrets, within(tolerance))?)
            }
            Scheme::PayPal { tolerance } => {
                Self::PayPal(paypal::Check::new(secrets, within(tolerance))?)
            }
            Scheme::Sns { tolerance } => Self::Sns(sns::Check::new(secrets, within(tolerance))?),
            Scheme::Plaid { url, tolerance } => {
                Self::Plaid(plaid::Check::new(url, secrets, within(tolerance))?)
            }
            Scheme::Twilio => Self::Twilio(twilio::Check::new(secrets)?),
            Scheme::AdyenItems => Self::AdyenItems(adyen::Check::new(secrets)?),
            Scheme::Braintree => Self::Braintree(braintree::Check::new(secrets)?),
        })
    }

    /// With which secret.
    async fn verify(
        &self,
        signed: &Signed<'_>,
        certificates: &Certificates,
    ) -> Result<usize, Refused> {
        match self {
            Self::Detached(check) => check.verify(signed),
            Self::Token(check) => check.verify(signed),
            Self::StandardWebhooks(check) => check.verify(signed),
            Self::HubSpot(check) => check.verify(signed),
            Self::PayPal(check) => check.verify(signed, certificates).await,
            Self::Sns(check) => check.verify(signed, certificates).await,
            Self::Plaid(check) => check.verify(signed, certificates).await,
            Self::Twilio(check) => check.verify(signed),
            Self::AdyenItems(check) => check.verify(signed),
            Self::Braintree(check) => check.verify(signed),
        }
    }
}
