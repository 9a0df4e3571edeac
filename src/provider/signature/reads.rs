//! Which headers a signature is read from.

use http::HeaderName;

use super::part::{Part, Source};
use super::settings::{Detached, Scheme, Settings, SignatureAt, Token};

impl Settings {
    /// Whether a check of this signature looks at a header: one that `Connection` takes away on
    /// the way would leave the receiver without it.
    pub fn reads_header(&self, name: &HeaderName) -> bool {
        let own = Source::Header(name.clone());
        self.ways.iter().any(|way| {
            way.scheme.reads(name) || way.carries.iter().any(|(_, places)| places.contains(&own))
        })
    }
}

impl Scheme {
    fn reads(&self, name: &HeaderName) -> bool {
        let begins = |starts: &[&str]| starts.iter().any(|start| name.as_str().starts_with(start));
        match self {
            Self::Detached(detached) => detached.reads(name),
            Self::Token(Token { headers, .. }) => headers.contains(name),
            Self::StandardWebhooks { .. } => begins(&["webhook-", "svix-"]),
            Self::HubSpot { .. } => begins(&["x-hubspot-"]),
            Self::PayPal { .. } => begins(&["paypal-"]),
            Self::Sns { .. } => begins(&["x-amz-sns-"]),
            Self::Plaid { .. } => begins(&["plaid-"]),
            Self::Twilio => begins(&["x-twilio-"]),
            Self::AdyenItems | Self::Braintree => false,
        }
    }
}

impl Detached {
    fn reads(&self, name: &HeaderName) -> bool {
        let own = Source::Header(name.clone());
        let signature = match &self.at {
            SignatureAt::Headers(headers) => headers.contains(name),
            SignatureAt::Value(at) => *at == own,
        };
        signature || self.is_timestamp(&own) || self.signs(&Part::Value(own))
    }
}
