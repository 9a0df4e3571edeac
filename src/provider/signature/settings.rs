//! What is known of a sender's signatures.

use std::time::Duration;

use http::HeaderName;

use super::carried::Carried;
use super::encoding::Encoding;
use super::hubspot::Version;
use super::keys::{Method, SecretForm};
use super::part::{Item, Part, Source, TimestampSource};
use super::prefix::Prefix;
use super::request::Request;
use super::timestamp::TimestampFormat;
use super::verdict::Place;
use super::{Signed, braintree, standard, twilio};
use crate::secret::Secret;

/// How a sender signs. Made by [`super::Written::settings`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// The strongest first, at least one.
    pub(super) ways: Vec<Way>,
}

/// One way to sign.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Way {
    /// By which `accept` names it.
    pub(super) name: String,
    pub(super) scheme: Scheme,
    /// The values that a key may take from where this way has them.
    pub(super) carries: Vec<(String, Vec<Source>)>,
    /// Whether it counts.
    pub(super) accepted: bool,
}

/// The ways to sign.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Scheme {
    Detached(Detached),
    Token(Token),
    StandardWebhooks {
        tolerance: Option<Duration>,
        prefixed: bool,
    },
    HubSpot {
        version: Version,
        tolerance: Option<Duration>,
    },
    PayPal {
        tolerance: Option<Duration>,
    },
    Sns {
        tolerance: Option<Duration>,
    },
    /// With where keys are asked for.
    Plaid {
        url: String,
        tolerance: Option<Duration>,
    },
    Twilio,
    AdyenItems,
    Braintree,
}

/// A signature over parts of the request one after the other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Detached {
    pub(super) method: Method,
    pub(super) at: SignatureAt,
    /// What a signature begins with; other entries are skipped.
    pub(super) prefix: Prefix,
    /// Each of these bytes ends an entry of a list; none: there is no list.
    pub(super) separators: Vec<u8>,
    /// Whether each line of the header is a value of its own.
    pub(super) repeated: bool,
    pub(super) encoding: Encoding,
    pub(super) signed: Vec<Item>,
    /// The field of the form that holds the JSON text; none: the body is it.
    pub(super) document: Option<String>,
    /// Whether every body is a JSON object or array.
    pub(super) json_body: bool,
    pub(super) timestamp: Option<TimestampSource>,
    pub(super) timestamp_format: TimestampFormat,
    pub(super) tolerance: Option<Duration>,
    pub(super) secret: SecretForm,
}

/// Where a signature stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum SignatureAt {
    /// In any of these headers, at least one.
    Headers(Vec<HeaderName>),
    Value(Source),
}

/// The secret itself in a header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Token {
    /// In any of these, at least one.
    pub(super) headers: Vec<HeaderName>,
    pub(super) prefix: String,
    /// How the secret is written there; none: as it is.
    pub(super) encoding: Option<Encoding>,
}

impl SignatureAt {
    pub(super) fn place(&self) -> Place {
        match self {
            Self::Headers(names) => first(names),
            Self::Value(source) => source.place(),
        }
    }
}

impl Token {
    pub(super) fn place(&self) -> Place {
        first(&self.headers)
    }
}

fn first(names: &[HeaderName]) -> Place {
    Place::Header(names.first().cloned().unwrap_or(HeaderName::from_static("authorization")))
}

impl Scheme {
    /// The headers in which the signature stands, where it is one that can be read in two ways.
    pub(super) fn headers(&self) -> &[HeaderName] {
        match self {
            Self::Detached(Detached { at: SignatureAt::Headers(names), .. }) => names,
            Self::Token(token) => &token.headers,
            Self::Detached(_)
            | Self::StandardWebhooks { .. }
            | Self::HubSpot { .. }
            | Self::PayPal { .. }
            | Self::Sns { .. }
            | Self::Plaid { .. }
            | Self::Twilio
            | Self::AdyenItems
            | Self::Braintree => &[],
        }
    }

    /// The values that the scheme itself carries, all of them signed.
    fn own_values(&self) -> &'static [&'static str] {
        match self {
            Self::StandardWebhooks { .. } => &[standard::ID],
            Self::Braintree => &[braintree::PAYLOAD],
            Self::Twilio => &[twilio::SIGNED, twilio::MESSAGE],
            Self::Detached(_)
            | Self::Token(_)
            | Self::HubSpot { .. }
            | Self::PayPal { .. }
            | Self::Sns { .. }
            | Self::Plaid { .. }
            | Self::AdyenItems => &[],
        }
    }

    fn needs_public_url(&self) -> bool {
        match self {
            Self::Detached(detached) => {
                detached.signed.iter().any(|item| item.parts().contains(&Part::Url))
            }
            Self::HubSpot { version: Version::Second | Version::Third, .. } | Self::Twilio => true,
            Self::HubSpot { version: Version::First, .. }
            | Self::Token(_)
            | Self::StandardWebhooks { .. }
            | Self::PayPal { .. }
            | Self::Sns { .. }
            | Self::Plaid { .. }
            | Self::AdyenItems
            | Self::Braintree => false,
        }
    }

    fn has_timestamp(&self) -> bool {
        match self {
            Self::Detached(detached) => detached.timestamp.is_some(),
            Self::HubSpot { version, .. } => *version == Version::Third,
            Self::StandardWebhooks { .. }
            | Self::PayPal { .. }
            | Self::Sns { .. }
            | Self::Plaid { .. } => true,
            Self::Token(_) | Self::Twilio | Self::AdyenItems | Self::Braintree => false,
        }
    }

    fn tolerance(&self) -> Option<Duration> {
        let tolerance = match self {
            Self::Detached(detached) => detached.tolerance,
            Self::StandardWebhooks { tolerance, .. }
            | Self::HubSpot { tolerance, .. }
            | Self::PayPal { tolerance }
            | Self::Sns { tolerance }
            | Self::Plaid { tolerance, .. } => *tolerance,
            Self::Token(_) | Self::Twilio | Self::AdyenItems | Self::Braintree => None,
        };
        tolerance.filter(|_| self.has_timestamp())
    }

    fn covers_body(&self) -> bool {
        match self {
            Self::Detached(detached) => detached.signs(&Part::Body),
            Self::Token(_) | Self::AdyenItems | Self::Braintree => false,
            Self::StandardWebhooks { .. }
            | Self::HubSpot { .. }
            | Self::PayPal { .. }
            | Self::Sns { .. }
            | Self::Plaid { .. }
            | Self::Twilio => true,
        }
    }

    fn document(&self) -> Option<&str> {
        match self {
            Self::Detached(detached) => detached.document.as_deref(),
            Self::Token(_)
            | Self::StandardWebhooks { .. }
            | Self::HubSpot { .. }
            | Self::PayPal { .. }
            | Self::Sns { .. }
            | Self::Plaid { .. }
            | Self::Twilio
            | Self::AdyenItems
            | Self::Braintree => None,
        }
    }
}

impl Way {
    /// The values of a request that belong to this way.
    fn carried(&self, signed: &Signed<'_>) -> Carried {
        // Without the field there is nothing in it.
        let Ok(request) = Request::new(signed, self.scheme.document()) else {
            return Carried::default();
        };
        let mut carried = Carried::read(&self.carries, &request);
        match &self.scheme {
            Scheme::StandardWebhooks { .. } => standard::carry(signed, &mut carried),
            Scheme::Braintree => braintree::carry(signed, &mut carried),
            Scheme::Twilio => twilio::carry(signed, &mut carried),
            Scheme::Detached(_)
            | Scheme::Token(_)
            | Scheme::HubSpot { .. }
            | Scheme::PayPal { .. }
            | Scheme::Sns { .. }
            | Scheme::Plaid { .. }
            | Scheme::AdyenItems => {}
        }
        carried
    }

    /// Whether the signature covers what this name stands for.
    fn signs(&self, name: &str) -> bool {
        let signs = |source: &Source| match &self.scheme {
            Scheme::Detached(detached) => {
                let in_body = match source {
                    Source::Member(_) | Source::Field(_) => detached.signs(&Part::Body),
                    Source::Query(_) => detached.signs(&Part::Url) || detached.signs(&Part::Path),
                    Source::Header(_) => false,
                };
                in_body || detached.signs_if_present(&Part::Value(source.clone()))
            }
            Scheme::Twilio => matches!(source, Source::Field(_) | Source::Query(_)),
            Scheme::StandardWebhooks { .. }
            | Scheme::HubSpot { .. }
            | Scheme::PayPal { .. }
            | Scheme::Sns { .. }
            | Scheme::Plaid { .. } => matches!(source, Source::Member(_) | Source::Field(_)),
            Scheme::Token(_) | Scheme::AdyenItems | Scheme::Braintree => false,
        };
        match self.carries.iter().find(|(own, _)| own == name) {
            Some((_, sources)) => sources.iter().all(signs),
            None => self.scheme.own_values().contains(&name),
        }
    }
}

impl Settings {
    /// The ways that count.
    pub(super) fn accepted(&self) -> impl Iterator<Item = &Way> {
        self.ways.iter().filter(|way| way.accepted)
    }

    /// The names of the ways that count, the strongest first.
    pub fn accepts(&self) -> impl Iterator<Item = &str> {
        self.accepted().map(|way| way.name.as_str())
    }

    /// Whether the signature covers the public URL.
    pub fn needs_public_url(&self) -> bool {
        self.accepted().any(|way| way.scheme.needs_public_url())
    }

    /// Whether it is checked with a certificate or a key that has to be fetched.
    pub fn needs_certificates(&self) -> bool {
        self.accepted().any(|way| {
            matches!(way.scheme, Scheme::PayPal { .. } | Scheme::Sns { .. } | Scheme::Plaid { .. })
        })
    }

    /// How far a timestamp may be from now, if it is checked.
    pub fn tolerance(&self) -> Option<Duration> {
        self.accepted().next().and_then(|way| way.scheme.tolerance())
    }

    /// Whether there is a timestamp to which a tolerance could apply.
    pub fn has_timestamp(&self) -> bool {
        self.accepted().any(|way| way.scheme.has_timestamp())
    }

    /// Whether a changed body is noticed. Not where the secret is only sent along, or where the
    /// signature covers less than the body.
    pub fn covers_body(&self) -> bool {
        self.accepted().all(|way| way.scheme.covers_body())
    }

    /// Whether every way that counts covers the value that is selected as `signature:NAME`.
    pub fn covers(&self, name: &str) -> bool {
        self.accepted().all(|way| way.signs(name))
    }

    /// The names that a selector `signature:NAME` may ask for.
    pub fn carries(&self, name: &str) -> bool {
        self.ways.iter().any(|way| {
            way.carries.iter().any(|(own, _)| own == name)
                || way.scheme.own_values().contains(&name)
        })
    }

    /// What belongs to the signature of a request that is not checked: by the first way of which
    /// the request has anything.
    pub fn carried(&self, signed: &Signed<'_>) -> Carried {
        let all = self.ways.iter().map(|way| way.carried(signed));
        let found: Vec<Carried> = all.filter(|carried| !carried.is_empty()).collect();
        let Some((first, others)) = found.split_first() else {
            return Carried::default();
        };
        let mut carried = first.clone();
        for other in others {
            carried.must_agree_with(other);
        }
        carried
    }

    /// What belongs to a signature that was checked in this way. Where other ways have values of
    /// the same name, they have to be the same.
    pub(super) fn carried_by(&self, way: &Way, signed: &Signed<'_>) -> Carried {
        let mut carried = way.carried(signed);
        for other in &self.ways {
            carried.must_agree_with(&other.carried(signed));
        }
        carried
    }

    /// What a person has to give as the secret.
    pub fn secret_is(&self) -> &'static str {
        match self.accepted().next().map(|way| &way.scheme) {
            Some(Scheme::Detached(Detached { method, .. })) if method.is_public() => {
                "the sender's public key"
            }
            Some(Scheme::Detached(_) | Scheme::StandardWebhooks { .. }) | None => {
                "the signing secret"
            }
            Some(Scheme::Token(_)) => "the secret that the sender sends along",
            Some(Scheme::HubSpot { .. }) => "the app's client secret",
            Some(Scheme::PayPal { .. }) => "the id of the webhook",
            Some(Scheme::Sns { .. }) => "the ARN of the topic",
            Some(Scheme::Plaid { .. }) => "`CLIENT_ID:SECRET` of the API",
            Some(Scheme::Twilio) => "the auth token",
            Some(Scheme::AdyenItems) => "the HMAC key in hexadecimal",
            Some(Scheme::Braintree) => "the private key",
        }
    }

    /// Whether a secret lets anybody send, as the sender's own test tool does; a warning.
    pub fn is_public_secret(&self, secret: &Secret) -> bool {
        self.accepted().any(|way| matches!(way.scheme, Scheme::PayPal { .. }))
            && secret.is(super::paypal::SIMULATOR.as_bytes())
    }
}
