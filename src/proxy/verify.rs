//! Was it the sender? Answered from the raw bytes, before anything is looked up or stored.

use std::sync::Arc;

use http::request::Parts;
use http::{HeaderValue, Method};

use super::identify;
use super::refusal::Refusal;
use super::route::RouteSettings;
use super::skew::SkewWatch;
use crate::operation::Timestamp;
use crate::provider::signature::{
    Carried, Certificates, Refused, SecretError, Settings, Signed, Verified, Verifier,
};
use crate::provider::{Arrived, Provider};
use crate::telemetry::Metrics;

/// Who sends to a route, and how that is checked.
#[derive(Debug)]
pub struct Sender {
    provider: Arc<Provider>,
    /// None: it is not checked.
    verifier: Option<Verifier>,
    /// None: nobody looks at what its signatures say of the clock.
    skew: Option<SkewWatch>,
    /// The methods of events.
    methods: Vec<Method>,
    /// What the upstream is told.
    name: HeaderValue,
    /// How senders see the proxy, where the signature covers that.
    public_url: Option<String>,
}

/// What is known of a request that may go on.
#[derive(Debug, Clone, Default)]
pub struct Opened {
    /// The provider's name, if its signature was checked.
    pub verified: Option<HeaderValue>,
    /// The handshake that it is, and no event: it is forwarded as it is, without key and record.
    pub handshake: Option<String>,
    /// What belongs to its signature, for a key that takes it from there.
    pub carried: Carried,
}

impl Sender {
    /// The sender that a route names, if it names one.
    ///
    /// # Errors
    ///
    /// A secret that cannot be what this sender gives out.
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
        // The name of a table is text that a header can hold, or it is told in part.
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

    /// From now on its signatures show in the metrics and in the log whether the clock seems to be
    /// wrong, if they have a time.
    pub(super) fn watched(mut self, route: &Arc<str>, metrics: &Metrics) -> Self {
        let signature = self.provider.signature.as_ref().filter(|_| self.verifier.is_some());
        if signature.is_some_and(Settings::has_timestamp) {
            self.skew = Some(SkewWatch::new(Arc::clone(route), metrics.clock_skew(route)));
        }
        self
    }

    /// Checks who sent a request, and whether it is an event. An unsigned handshake has to be the
    /// described request and nothing more.
    ///
    /// # Errors
    ///
    /// Why it is not known to be genuine.
    pub async fn open(&self, head: &Parts, body: &[u8], now: Timestamp) -> Result<Opened, Refused> {
        let is_probe = identify::is_passed(&self.methods, &head.method);
        if self.verifier.is_some() && is_probe && !body.is_empty() {
            return Err(Refused::NoEvent);
        }
        let arrived =
            Arrived { method: &head.method, query: head.uri.query(), headers: &head.headers, body };
        let found = self.provider.handshake_of(&arrived);
        let handshake = found.map(|handshake| handshake.name.clone());
        let verifier = match (&self.verifier, found) {
            (None, _) => {
                return Ok(Opened { verified: None, handshake, carried: self.carried(head, body) });
            }
            (Some(_), Some(unsigned)) if !unsigned.signed => {
                return Ok(Opened { verified: None, handshake, carried: self.carried(head, body) });
            }
            // A probe or a challenge that no preset describes asks for nothing to be done.
            (Some(_), None) if is_probe => {
                return Ok(Opened::default());
            }
            (Some(verifier), _) => verifier,
        };
        let checked = verifier.verify(&self.signed(head, body, now)).await;
        if let Some(skew) = &self.skew {
            skew.saw(&checked, body);
        }
        let Verified { carried, .. } = checked?;
        Ok(Opened { verified: Some(self.name.clone()), handshake, carried })
    }

    /// What belongs to the signature of a request that is not known to be genuine.
    pub fn carried(&self, head: &Parts, body: &[u8]) -> Carried {
        let settings = self.provider.signature.as_ref();
        let signed = self.signed(head, body, Timestamp(0));
        settings.map(|settings| settings.carried(&signed)).unwrap_or_default()
    }

    /// The request as its sender has signed it; never with `Host`, which anybody can write.
    fn signed<'p>(&'p self, head: &'p Parts, body: &'p [u8], now: Timestamp) -> Signed<'p> {
        Signed {
            method: &head.method,
            public_url: self.public_url.as_deref(),
            target: head.uri.path_and_query().map_or("/", |target| target.as_str()),
            headers: &head.headers,
            body,
            now,
        }
    }
}

impl From<Refused> for Refusal {
    fn from(refused: Refused) -> Self {
        Self::Signature(refused)
    }
}
