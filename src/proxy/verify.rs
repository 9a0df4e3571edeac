//! Verify: checks whether a request comes from its sender. It reads the raw bytes, before anything
//! is looked up or stored.

use std::sync::Arc;

use http::request::Parts;
use http::{HeaderValue, Method};

use super::identify::passes_as_safe;
use super::settings::RouteSettings;
use super::skew::SkewWatch;
use crate::operation::Timestamp;
use crate::provider::signature::{
    self, Carried, Certificates, SecretError, Settings, SignatureError, Verifier,
};
use crate::provider::{Provider, ReceivedRequest};
use crate::telemetry::Metrics;

/// The kind of sender of one route, and the check of its signatures.
#[derive(Debug)]
pub struct Sender {
    provider: Arc<Provider>,
    /// None if the signature is not checked.
    verifier: Option<Verifier>,
    /// None if its signatures have no timestamp, or if nobody asked for the watch.
    skew: Option<SkewWatch>,
    /// The methods that are deduplicated.
    methods: Vec<Method>,
    /// The provider's name, for the header `Onceward-Verified`.
    name: HeaderValue,
    /// The URL that senders use, where the signature covers it.
    public_url: Option<String>,
}

/// What is known about the sender of a request that may be forwarded. Only a valid signature gives
/// it the name of a provider.
#[derive(Debug)]
pub struct Verified {
    provider: Option<HeaderValue>,
    handshake: Option<String>,
    carried: Carried,
}

impl Verified {
    /// A request whose signature is not checked.
    pub(super) fn unchecked() -> Self {
        Self { provider: None, handshake: None, carried: Carried::default() }
    }

    /// The provider's name, if its signature is valid. None if nothing was checked.
    pub const fn provider(&self) -> Option<&HeaderValue> {
        self.provider.as_ref()
    }

    /// The name of the handshake, if the request is one. A handshake tells no event. It is
    /// forwarded without key and record.
    pub fn handshake(&self) -> Option<&str> {
        self.handshake.as_deref()
    }

    /// The values that came with the signature. Keys may be read from them.
    pub const fn carried(&self) -> &Carried {
        &self.carried
    }
}

impl Sender {
    /// The sender of a route, if the route names a provider.
    ///
    /// # Errors
    ///
    /// A secret has a form that this provider does not issue.
    pub fn of(
        route: &RouteSettings,
        certificates: &Certificates,
    ) -> Result<Option<Self>, SecretError> {
        let Some(provider) = route.provider.clone() else { return Ok(None) };
        let settings = provider.signature.as_ref().filter(|_| !route.secrets.is_empty());
        let verifier = settings
            .map(|settings| Verifier::new(settings, &route.secrets, route.tolerance, certificates));
        let public_url = settings.filter(|settings| settings.needs_public_url());
        let public_url = public_url.and(route.public_url.as_ref());
        // A header can hold visible ASCII only, and the name of a table may hold more.
        let name = provider.name.chars().filter(char::is_ascii_graphic).collect::<String>();
        Ok(Some(Self {
            verifier: verifier.transpose()?,
            skew: None,
            name: HeaderValue::from_str(&name).unwrap_or(HeaderValue::from_static("")),
            methods: route.methods.clone(),
            public_url: public_url.map(|url| url.to_string().trim_end_matches('/').to_owned()),
            provider,
        }))
    }

    /// The same sender. From now on its signatures show whether our clock seems to be wrong, and
    /// metrics and log say so.
    pub(super) fn watched(mut self, route: &Arc<str>, metrics: &Metrics) -> Self {
        let signature = self.provider.signature.as_ref().filter(|_| self.verifier.is_some());
        if signature.is_some_and(Settings::has_timestamp) {
            self.skew = Some(SkewWatch::new(Arc::clone(route), metrics.clock_skew(route)));
        }
        self
    }

    /// Checks the signature of a request, and finds out whether the request is a handshake.
    ///
    /// # Errors
    ///
    /// The reason why the request cannot be known to come from its sender.
    pub async fn verify(
        &self,
        head: &Parts,
        body: &[u8],
        now: Timestamp,
    ) -> Result<Verified, SignatureError> {
        let is_safe = passes_as_safe(&self.methods, &head.method);
        // Some frameworks read the body of a GET and would take it for an event.
        if self.verifier.is_some() && is_safe && !body.is_empty() {
            return Err(SignatureError::NoEvent);
        }
        let received = self.received(head, body, now);
        let found = self.provider.handshake_of(&received);
        let handshake = found.map(|handshake| handshake.name.clone());
        let Some(verifier) = &self.verifier else {
            return Ok(Verified { provider: None, handshake, carried: self.carried(&received) });
        };
        match found {
            // Some senders do not sign a handshake. Such a request must match the preset's
            // description of the handshake and hold nothing more, so that no event passes as one.
            Some(found) if !found.signed => {
                let carried = self.carried(&received);
                return Ok(Verified { provider: None, handshake, carried });
            }
            // Such a request asks the upstream for no change, so it needs no signature.
            None if is_safe => return Ok(Verified::unchecked()),
            Some(_) | None => {}
        }
        // The clock is watched here, before a stale signature is refused.
        let checked = verifier.verify(&received).await;
        if let Some(skew) = &self.skew {
            skew.note(&checked, body);
        }
        let signature::Verified { carried, .. } = checked?;
        Ok(Verified { provider: Some(self.name.clone()), handshake, carried })
    }

    /// The values that come with a signature that was not checked.
    fn carried(&self, received: &ReceivedRequest<'_>) -> Carried {
        let settings = self.provider.signature.as_ref();
        settings.map(|settings| settings.carried(received)).unwrap_or_default()
    }

    /// The request as its sender sent it. The URL is the configured one, never the `Host` header,
    /// which anybody can write.
    fn received<'p>(
        &'p self,
        head: &'p Parts,
        body: &'p [u8],
        now: Timestamp,
    ) -> ReceivedRequest<'p> {
        ReceivedRequest {
            method: &head.method,
            public_url: self.public_url.as_deref(),
            target: head.uri.path_and_query().map_or("/", |target| target.as_str()),
            headers: &head.headers,
            body,
            now,
        }
    }
}
