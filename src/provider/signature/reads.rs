//! Which headers a signature is read from.

use http::HeaderName;

use super::part::{Part, TimestampSource};
use super::settings::{Detached, Scheme, Settings, Token};

impl Settings {
    /// Whether a check of this signature looks at a header: one that `Connection` takes away on
    /// the way would leave the receiver without it.
    pub fn reads_header(&self, name: &HeaderName) -> bool {
        let begins = |starts: &[&str]| starts.iter().any(|start| name.as_str().starts_with(start));
        let own = match &self.scheme {
            Scheme::Detached(detached) => detached.reads(name),
            Scheme::Token(Token { header, .. }) => header == name,
            Scheme::StandardWebhooks { .. } => begins(&["webhook-", "svix-"]),
            Scheme::HubSpot { .. } => begins(&["x-hubspot-"]),
            Scheme::PayPal { .. } => begins(&["paypal-"]),
            Scheme::Sns { .. } => begins(&["x-amz-sns-"]),
            Scheme::Twilio => begins(&["x-twilio-"]),
            Scheme::Mailgun { .. } | Scheme::AdyenItems | Scheme::Braintree => false,
        };
        own || self.otherwise.as_ref().is_some_and(|settings| settings.reads_header(name))
    }
}

impl Detached {
    fn reads(&self, name: &HeaderName) -> bool {
        let signed = |part: &Part| matches!(part, Part::Header(header) if header == name);
        let timestamp = matches!(&self.timestamp, Some(TimestampSource::Header(it)) if it == name);
        self.header == *name || timestamp || self.signed.iter().any(signed)
    }
}
