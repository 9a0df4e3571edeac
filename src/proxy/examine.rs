//! Verify and identify: the steps that need only the request itself.

use http::HeaderValue;
use http::request::Parts;

use super::identify::{IdentifyError, Identity, Passing, identify};
use super::refusal::{ExplainedRefusal, Refusal};
use super::selector::RequestView;
use super::settings::{Mode, RouteSettings};
use super::verify::{Sender, Verified};
use crate::operation::{RequestMode, Timestamp};
use crate::provider::signature::SignatureError;

/// A request that was received whole, on its way through verify and identify. The data plane and
/// `onceward explain` run the same steps.
#[derive(Debug, Clone, Copy)]
pub struct Examination<'a> {
    /// The route that serves the request.
    pub route: &'a RouteSettings,
    /// The check of its signature, if the route names a provider.
    pub sender: Option<&'a Sender>,
    /// The head as received.
    pub head: &'a Parts,
    /// The whole body.
    pub body: &'a [u8],
}

/// What verify and identify find out about a request.
#[derive(Debug)]
pub struct Examined {
    /// What the check of the signature shows.
    pub signature: Result<Verified, SignatureError>,
    /// What the request is about. None if there is no usable key, or if the body is too long.
    pub identity: Option<Identity>,
    /// The first refusal on the path of the request, if one of the steps refuses it.
    pub refusal: Option<ExplainedRefusal>,
}

/// A request that may be forwarded: verify and identify accept it, or its route only observes.
#[derive(Debug)]
pub(super) struct Admitted {
    verified: Verified,
    identity: Identity,
    observed: Option<Refusal>,
}

impl Admitted {
    /// The provider's name, if the signature of the request is valid.
    pub(super) const fn provider(&self) -> Option<&HeaderValue> {
        self.verified.provider()
    }

    /// What the request is about.
    pub(super) const fn identity(&self) -> &Identity {
        &self.identity
    }

    /// Takes out what the request is about.
    pub(super) fn into_identity(self) -> Identity {
        self.identity
    }

    /// Why the route would refuse the request if it did not only observe. None if it would not.
    pub(super) const fn observed(&self) -> Option<&Refusal> {
        self.observed.as_ref()
    }
}

impl Examination<'_> {
    /// Checks the signature, if the route checks signatures. The timestamp of the signature is
    /// compared with `now`.
    ///
    /// # Errors
    ///
    /// The reason why the request cannot be known to come from its sender.
    async fn verify(&self, now: Timestamp) -> Result<Verified, SignatureError> {
        match self.sender {
            Some(sender) if self.route.mode != Mode::Pass => {
                sender.verify(self.head, self.body, now).await
            }
            Some(_) | None => Ok(Verified::unchecked()),
        }
    }

    /// Finds out what the request is about.
    ///
    /// # Errors
    ///
    /// There is no key, or the key cannot be used.
    fn identify(&self, verified: &Verified) -> Result<Identity, IdentifyError> {
        // A route in mode `pass` reads nothing of its requests, so identify cannot refuse them.
        if self.route.mode == Mode::Pass {
            return Ok(Identity::Passed(Passing::Mode));
        }
        if let Some(handshake) = verified.handshake() {
            return Ok(Identity::Passed(Passing::Handshake(handshake.to_owned())));
        }
        let mut rules = self.route.rules();
        if let RequestMode::Observe { genuine } = &mut rules.mode {
            // While a route observes, it also forwards forged requests. The success of a forged
            // request must not count as the success of the event once the route enforces.
            *genuine = verified.provider().is_some();
        }
        identify(&rules, &RequestView::of(self.head, self.body, verified.carried()))
    }

    /// Runs both steps. Identify runs even if verify refuses, because a person may want to know the
    /// key of a refused request. The data plane stops at the first refusal.
    pub async fn explain(&self, now: Timestamp) -> Examined {
        let bytes_max = self.route.request_bytes_max;
        if self.body.len() > bytes_max {
            let refusal = Refusal::BodyTooLarge { bytes_max }.explained();
            let signature = Ok(Verified::unchecked());
            return Examined { signature, identity: None, refusal: Some(refusal) };
        }
        let signature = self.verify(now).await;
        let unchecked = Verified::unchecked();
        let identity = self.identify(signature.as_ref().unwrap_or(&unchecked));
        let refusal = signature.as_ref().err().cloned().map(Refusal::from);
        let refusal = refusal.or_else(|| identity.as_ref().err().cloned().map(Refusal::from));
        Examined { signature, identity: identity.ok(), refusal: refusal.map(|it| it.explained()) }
    }

    /// Runs both steps. A route that only observes admits every request.
    pub(super) async fn run(&self, now: Timestamp) -> Result<Admitted, Refusal> {
        let verified = match self.verify(now).await {
            Ok(verified) => verified,
            Err(error) => return self.unless_observed(Verified::unchecked(), error.into()),
        };
        match self.identify(&verified) {
            Ok(identity) => Ok(Admitted { verified, identity, observed: None }),
            Err(error) => self.unless_observed(verified, error.into()),
        }
    }

    /// Refuses the request, unless the route only observes.
    fn unless_observed(&self, verified: Verified, refusal: Refusal) -> Result<Admitted, Refusal> {
        match self.route.mode {
            Mode::Enforce | Mode::Pass => Err(refusal),
            Mode::Observe => Ok(Admitted {
                verified,
                identity: Identity::Passed(Passing::Observed),
                observed: Some(refusal),
            }),
        }
    }
}
