//! What a signature covers: what of a captured request its holder cannot change.

use http::HeaderName;

use super::hubspot::Version;
use super::part::{Part, Source, TimestampSource};
use super::settings::{Detached, Scheme, Settings};

/// How much of an event a signature binds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Binding {
    /// The secret itself is sent along: who sees one request can make any other.
    Bearer,
    /// A signature that fits one event can be made to fit another.
    Loose,
    /// What names the event in the body cannot be changed.
    Event,
}

impl Settings {
    /// How much of an event is bound where the weakest of the ways that count was used.
    pub fn binding(&self) -> Binding {
        let ways = self.accepted().map(|way| way.scheme.binding());
        ways.min().unwrap_or(Binding::Bearer)
    }

    /// Whether a header is covered, whichever of the ways that count was used.
    pub fn covers_header(&self, name: &HeaderName) -> bool {
        self.accepted().all(|way| way.scheme.covers_header(name))
    }

    /// Whether the query is covered, whichever of the ways that count was used.
    pub fn covers_query(&self) -> bool {
        self.accepted().all(|way| way.scheme.covers_query())
    }
}

impl Detached {
    /// Whether this part is covered where it is there.
    pub(super) fn signs_if_present(&self, part: &Part) -> bool {
        self.signed.iter().any(|item| item.parts().contains(part))
    }

    /// Whether the timestamp stands there.
    pub(super) fn is_timestamp(&self, source: &Source) -> bool {
        matches!(&self.timestamp, Some(TimestampSource::Value(at)) if at == source)
    }

    /// Whether this part is covered in every request.
    pub(super) fn signs(&self, part: &Part) -> bool {
        self.signed.iter().any(|item| item.always_covers(part))
    }
}

impl Scheme {
    fn binding(&self) -> Binding {
        match self {
            Self::Token(_) => Binding::Bearer,
            // PayPal signs a CRC-32 of the body; others sign a time and an id beside the event.
            Self::PayPal { .. } => Binding::Loose,
            Self::Detached(detached) if !detached.signs(&Part::Body) => Binding::Loose,
            Self::Detached(_)
            | Self::StandardWebhooks { .. }
            | Self::HubSpot { .. }
            | Self::Sns { .. }
            | Self::Plaid { .. }
            | Self::Twilio
            | Self::AdyenItems
            | Self::Braintree => Binding::Event,
        }
    }

    fn covers_header(&self, name: &HeaderName) -> bool {
        match self {
            Self::Detached(detached) => {
                let own = Source::Header(name.clone());
                detached.is_timestamp(&own) || detached.signs(&Part::Value(own))
            }
            Self::StandardWebhooks { .. } => {
                ["webhook-id", "webhook-timestamp", "svix-id", "svix-timestamp"]
                    .contains(&name.as_str())
            }
            Self::PayPal { .. } => {
                ["paypal-transmission-id", "paypal-transmission-time"].contains(&name.as_str())
            }
            Self::Token(_)
            | Self::HubSpot { .. }
            | Self::Sns { .. }
            | Self::Plaid { .. }
            | Self::Twilio
            | Self::AdyenItems
            | Self::Braintree => false,
        }
    }

    fn covers_query(&self) -> bool {
        match self {
            Self::Detached(detached) => detached.signs(&Part::Url) || detached.signs(&Part::Path),
            Self::HubSpot { version, .. } => *version != Version::First,
            Self::Twilio => true,
            Self::Token(_)
            | Self::StandardWebhooks { .. }
            | Self::PayPal { .. }
            | Self::Sns { .. }
            | Self::Plaid { .. }
            | Self::AdyenItems
            | Self::Braintree => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Written;
    use super::*;

    fn settings(toml: &str) -> Settings {
        toml::from_str::<Written>(toml).unwrap().settings().unwrap()
    }

    #[test]
    fn the_weakest_way_to_sign_says_what_is_bound() {
        let hmac = "scheme = \"hmac\"\nheader = \"x-signature\"\n";
        assert_eq!(settings(hmac).binding(), Binding::Event);
        let token = format!("{hmac}otherwise = {{ scheme = \"token\", header = \"x-token\" }}\n");
        assert_eq!(settings(&token).binding(), Binding::Bearer);
        assert_eq!(settings("scheme = \"mailgun\"").binding(), Binding::Loose);
        assert_eq!(settings("scheme = \"paypal\"").binding(), Binding::Loose);
    }

    #[test]
    fn a_header_is_covered_if_it_is_signed_or_the_time() {
        let signed = "scheme = \"hmac\"\nheader = \"x-signature\"\n\
                      signed = [\"header:x-id\", \"timestamp\", \"body\"]\ntimestamp = \"header:x-time\"\n";
        let signed = settings(signed);
        for (name, is_covered) in [("x-id", true), ("x-time", true), ("x-signature", false)] {
            assert_eq!(signed.covers_header(&HeaderName::from_static(name)), is_covered, "{name}");
        }
        let id = HeaderName::from_static("webhook-id");
        assert!(settings("scheme = \"standard-webhooks\"").covers_header(&id));
        let or_token = "scheme = \"standard-webhooks\"\n\
                        otherwise = { scheme = \"token\", header = \"x-token\" }\n";
        assert!(!settings(or_token).covers_header(&id));
    }

    #[test]
    fn a_query_is_covered_where_the_url_is() {
        let url = "scheme = \"hmac\"\nheader = \"x-signature\"\nsigned = [\"url\", \"body\"]\n";
        assert!(settings(url).covers_query());
        assert!(settings("scheme = \"twilio\"").covers_query());
        assert!(!settings("scheme = \"sns\"").covers_query());
    }
}
