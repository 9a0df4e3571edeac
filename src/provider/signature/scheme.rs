//! The schemes of signatures: two that a table describes, and those that have a file of their own.

use std::time::Duration;

use http::HeaderName;

use super::encoding::Encoding;
use super::hubspot::Version;
use super::keys::{Algorithm, SecretForm};
use super::part::{Item, Selector, TimestampSelector};
use super::prefix::Prefix;
use super::profile::Profile;
use super::timestamp_format::TimestampFormat;
use super::verdict::Location;
use super::{adyen, braintree, hubspot, paypal, plaid, sns, standard, twilio};

/// How a sender signs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Scheme {
    Detached(Detached),
    Token(Token),
    BuiltIn(BuiltIn),
}

/// A signature over parts of the request, one after the other. The table says which.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Detached {
    pub(super) algorithm: Algorithm,
    pub(super) at: SignatureAt,
    /// What a signature begins with. Other entries of a list are skipped.
    pub(super) prefix: Prefix,
    /// Each of these bytes ends an entry of a list. Without any there is no list.
    pub(super) separators: Vec<u8>,
    /// Whether each line of the header is a value of its own.
    pub(super) repeated: bool,
    pub(super) encoding: Encoding,
    pub(super) signed: Vec<Item>,
    /// The field of the form that holds the JSON text. None: the body is the JSON text.
    pub(super) document: Option<String>,
    /// Whether every body is a JSON object or array.
    pub(super) json_body: bool,
    pub(super) timestamp: Option<TimestampSelector>,
    pub(super) timestamp_format: TimestampFormat,
    pub(super) tolerance: Option<Duration>,
    pub(super) secret: SecretForm,
}

/// Where a signature stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum SignatureAt {
    /// In one of these headers. There is at least one name.
    Headers(Vec<HeaderName>),
    Value(Selector),
}

/// The secret itself, in a header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Token {
    /// It stands in one of these. There is at least one name.
    pub(super) headers: Vec<HeaderName>,
    pub(super) prefix: String,
    /// How the secret is encoded there. None: it is not.
    pub(super) encoding: Option<Encoding>,
}

/// A scheme that no table can describe. Each has a file of its own, with its [`Profile`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum BuiltIn {
    StandardWebhooks {
        tolerance: Option<Duration>,
        /// Whether a secret has to begin with `whsec_`.
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
    Plaid {
        /// The API that gives out the keys.
        url: String,
        tolerance: Option<Duration>,
    },
    Twilio,
    AdyenItems,
    Braintree,
}

impl BuiltIn {
    pub(super) const fn profile(&self) -> &'static Profile {
        match self {
            Self::StandardWebhooks { .. } => &standard::PROFILE,
            Self::HubSpot { version: Version::First, .. } => &hubspot::FIRST_VERSION,
            Self::HubSpot { version: Version::Second, .. } => &hubspot::SECOND_VERSION,
            Self::HubSpot { version: Version::Third, .. } => &hubspot::THIRD_VERSION,
            Self::PayPal { .. } => &paypal::PROFILE,
            Self::Sns { .. } => &sns::PROFILE,
            Self::Plaid { .. } => &plaid::PROFILE,
            Self::Twilio => &twilio::PROFILE,
            Self::AdyenItems => &adyen::PROFILE,
            Self::Braintree => &braintree::PROFILE,
        }
    }

    const fn tolerance(&self) -> Option<Duration> {
        match self {
            Self::StandardWebhooks { tolerance, .. }
            | Self::HubSpot { tolerance, .. }
            | Self::PayPal { tolerance }
            | Self::Sns { tolerance }
            | Self::Plaid { tolerance, .. } => *tolerance,
            Self::Twilio | Self::AdyenItems | Self::Braintree => None,
        }
    }
}

impl Scheme {
    /// The headers in which the signature stands, where the table says so. Two methods that
    /// read the same headers are two forms of one signature.
    pub(super) fn headers(&self) -> &[HeaderName] {
        match self {
            Self::Detached(Detached { at: SignatureAt::Headers(names), .. }) => names,
            Self::Token(token) => &token.headers,
            Self::Detached(_) | Self::BuiltIn(_) => &[],
        }
    }

    pub(super) fn has_timestamp(&self) -> bool {
        match self {
            Self::Detached(detached) => detached.timestamp.is_some(),
            Self::Token(_) => false,
            Self::BuiltIn(scheme) => scheme.profile().has_timestamp,
        }
    }

    /// How far its timestamp may be from now.
    pub(super) fn tolerance(&self) -> Option<Duration> {
        let tolerance = match self {
            Self::Detached(detached) => detached.tolerance,
            Self::Token(_) => None,
            Self::BuiltIn(scheme) => scheme.tolerance(),
        };
        tolerance.filter(|_| self.has_timestamp())
    }

    /// The field of the form that `json:` selects from. None: it selects from the body.
    pub(super) fn document(&self) -> Option<&str> {
        match self {
            Self::Detached(detached) => detached.document.as_deref(),
            Self::Token(_) | Self::BuiltIn(_) => None,
        }
    }

    /// The fixed properties, of a scheme that has them.
    pub(super) const fn profile(&self) -> Option<&'static Profile> {
        match self {
            Self::Detached(_) | Self::Token(_) => None,
            Self::BuiltIn(scheme) => Some(scheme.profile()),
        }
    }

    /// The values that the scheme itself carries, all of them signed.
    pub(super) fn own_values(&self) -> &'static [&'static str] {
        self.profile().map_or(&[], |profile| profile.carries)
    }

    /// What an operator has to give as the secret.
    pub(super) fn secret_is(&self) -> &'static str {
        match self {
            Self::Detached(detached) if detached.algorithm.is_public() => "the sender's public key",
            Self::Detached(_) => "the signing secret",
            Self::Token(_) => "the secret that the sender sends along",
            Self::BuiltIn(scheme) => scheme.profile().secret,
        }
    }
}

impl SignatureAt {
    pub(super) fn location(&self) -> Location {
        match self {
            Self::Headers(names) => first(names),
            Self::Value(selector) => selector.location(),
        }
    }
}

impl Token {
    pub(super) fn location(&self) -> Location {
        first(&self.headers)
    }
}

/// Messages name one header, the first.
fn first(names: &[HeaderName]) -> Location {
    Location::Header(names.first().cloned().unwrap_or(HeaderName::from_static("authorization")))
}
