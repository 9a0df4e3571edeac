//! The check of one sender's signatures.

use std::time::Duration;

use super::carried::Carried;
use super::certificates::Certificates;
use super::keys::{NumberedSecret, SecretError};
use super::scheme::{BuiltIn, Scheme};
use super::settings::{Settings, SigningMethod};
use super::verdict::{InvalidReason, SignatureError};
use super::{adyen, braintree, detached, hubspot, paypal, plaid, sns, standard, token, twilio};
use crate::provider::ReceivedRequest;
use crate::secret::Secret;

/// The request is genuine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verified {
    /// The index of the secret that made the signature, counted from 0 in the order of the
    /// configuration.
    pub secret: usize,
    /// The values that belong to the signature that was checked.
    pub carried: Carried,
}

/// Checks signatures with the secrets of one route. It is made once, and shared by all requests.
#[derive(Debug)]
pub struct Verifier {
    settings: Settings,
    /// One for each method that counts, the strongest first.
    methods: Vec<MethodVerifier>,
    certificates: Certificates,
}

#[derive(Debug)]
struct MethodVerifier {
    method: SigningMethod,
    verifier: SchemeVerifier,
}

#[derive(Debug)]
enum SchemeVerifier {
    Detached(detached::DetachedVerifier),
    Token(token::TokenVerifier),
    StandardWebhooks(standard::StandardVerifier),
    HubSpot(hubspot::HubSpotVerifier),
    PayPal(paypal::PayPalVerifier),
    Sns(sns::SnsVerifier),
    Plaid(plaid::PlaidVerifier),
    Twilio(twilio::TwilioVerifier),
    AdyenItems(adyen::AdyenVerifier),
    Braintree(braintree::BraintreeVerifier),
}

impl Verifier {
    /// A verifier with these secrets. `tolerance` replaces the sender's own; [`Duration::MAX`]
    /// accepts every timestamp.
    ///
    /// Without any secret no signature can be valid, which the caller has to refuse. A method for
    /// which none of the secrets is of use is left out: the operator has not set it up.
    ///
    /// # Errors
    /// The first secret that is of no use in any of the sender's methods.
    pub fn new(
        settings: &Settings,
        secrets: &[Secret],
        tolerance: Option<Duration>,
        certificates: &Certificates,
    ) -> Result<Self, SecretError> {
        Self::check_secrets(settings, secrets)?;
        let mut methods = Vec::new();
        for method in settings.accepted() {
            let usable = numbered(secrets).filter(|secret| usable(method, secret).is_ok());
            let usable: Vec<_> = usable.collect();
            if !usable.is_empty() || secrets.is_empty() {
                let verifier = SchemeVerifier::new(&method.scheme, &usable, tolerance)?;
                methods.push(MethodVerifier { method: method.clone(), verifier });
            }
        }
        Ok(Self { settings: settings.clone(), methods, certificates: certificates.clone() })
    }

    /// Checks that each secret can be what the sender gave out.
    ///
    /// # Errors
    /// The first secret that is of no use in any of the sender's methods.
    pub fn check_secrets(settings: &Settings, secrets: &[Secret]) -> Result<(), SecretError> {
        for secret in numbered(secrets) {
            let mut error = None;
            for method in settings.accepted() {
                match usable(method, &secret) {
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

    /// Checks that the owner of one of the secrets sent this request. It waits for certificates and
    /// keys only, and no longer than a few seconds. It is cancel safe: dropping it changes nothing.
    ///
    /// The first method whose signature is present decides. Methods that read the same header are
    /// two forms of one signature: where it is wrong in the first form, the second is tried.
    ///
    /// # Errors
    /// The reason why the request is not known to be genuine.
    pub async fn verify(&self, received: &ReceivedRequest<'_>) -> Result<Verified, SignatureError> {
        let mut missing = None;
        let mut wrong: Option<Wrong<'_>> = None;
        for MethodVerifier { method, verifier } in &self.methods {
            if wrong.as_ref().is_some_and(|wrong| !wrong.is_in(method)) {
                // The next method reads another signature, and must not make up for a wrong one:
                // an attacker would choose the weaker method.
                break;
            }
            match verifier.verify(received, &self.certificates).await {
                Ok(secret) => {
                    let carried = self.settings.carried_by(method, received);
                    return Ok(Verified { secret, carried });
                }
                Err(error @ (SignatureError::Missing(_) | SignatureError::NoEvent)) => {
                    missing = missing.or(Some(error));
                }
                Err(error @ (SignatureError::Invalid(_) | SignatureError::Empty(_))) => {
                    wrong = wrong.or(Some(Wrong { method, error }));
                }
                // This method would decide. A weaker method must not overrule it.
                Err(error @ (SignatureError::Stale { .. } | SignatureError::Undecided(_))) => {
                    return Err(error);
                }
            }
        }
        // There is always at least one method, so one of the two is present.
        let nothing = SignatureError::Invalid(InvalidReason::Body("signed"));
        Err(wrong.map(|wrong| wrong.error).or(missing).unwrap_or(nothing))
    }
}

/// A signature that is present and wrong.
struct Wrong<'a> {
    method: &'a SigningMethod,
    error: SignatureError,
}

impl Wrong<'_> {
    /// Whether another method reads the same signature.
    fn is_in(&self, other: &SigningMethod) -> bool {
        let headers = self.method.scheme.headers();
        !headers.is_empty() && headers == other.scheme.headers()
    }
}

fn numbered(secrets: &[Secret]) -> impl Iterator<Item = NumberedSecret<'_>> {
    (0..).zip(secrets).map(|(index, secret)| NumberedSecret { index, secret })
}

fn usable(method: &SigningMethod, secret: &NumberedSecret<'_>) -> Result<(), SecretError> {
    SchemeVerifier::new(&method.scheme, std::slice::from_ref(secret), None).map(|_| ())
}

impl SchemeVerifier {
    fn new(
        scheme: &Scheme,
        secrets: &[NumberedSecret<'_>],
        own: Option<Duration>,
    ) -> Result<Self, SecretError> {
        let within =
            |usual: &Option<Duration>| own.or(*usual).filter(|within| *within < Duration::MAX);
        Ok(match scheme {
            Scheme::Detached(settings) => {
                let tolerance = within(&settings.tolerance);
                Self::Detached(detached::DetachedVerifier::new(settings, secrets, tolerance)?)
            }
            Scheme::Token(settings) => Self::Token(token::TokenVerifier::new(settings, secrets)?),
            Scheme::BuiltIn(scheme) => match scheme {
                BuiltIn::StandardWebhooks { tolerance, prefixed } => Self::StandardWebhooks(
                    standard::StandardVerifier::new(secrets, within(tolerance), *prefixed)?,
                ),
                BuiltIn::HubSpot { version, tolerance } => {
                    let tolerance = within(tolerance);
                    Self::HubSpot(hubspot::HubSpotVerifier::new(*version, secrets, tolerance)?)
                }
                BuiltIn::PayPal { tolerance } => {
                    Self::PayPal(paypal::PayPalVerifier::new(secrets, within(tolerance))?)
                }
                BuiltIn::Sns { tolerance } => {
                    Self::Sns(sns::SnsVerifier::new(secrets, within(tolerance))?)
                }
                BuiltIn::Plaid { url, tolerance } => {
                    Self::Plaid(plaid::PlaidVerifier::new(url, secrets, within(tolerance))?)
                }
                BuiltIn::Twilio => Self::Twilio(twilio::TwilioVerifier::new(secrets)?),
                BuiltIn::AdyenItems => Self::AdyenItems(adyen::AdyenVerifier::new(secrets)?),
                BuiltIn::Braintree => Self::Braintree(braintree::BraintreeVerifier::new(secrets)?),
            },
        })
    }

    /// The index of the secret that made the signature.
    async fn verify(
        &self,
        received: &ReceivedRequest<'_>,
        certificates: &Certificates,
    ) -> Result<usize, SignatureError> {
        match self {
            Self::Detached(verifier) => verifier.verify(received),
            Self::Token(verifier) => verifier.verify(received),
            Self::StandardWebhooks(verifier) => verifier.verify(received),
            Self::HubSpot(verifier) => verifier.verify(received),
            Self::PayPal(verifier) => verifier.verify(received, certificates).await,
            Self::Sns(verifier) => verifier.verify(received, certificates).await,
            Self::Plaid(verifier) => verifier.verify(received, certificates).await,
            Self::Twilio(verifier) => verifier.verify(received),
            Self::AdyenItems(verifier) => verifier.verify(received),
            Self::Braintree(verifier) => verifier.verify(received),
        }
    }
}
