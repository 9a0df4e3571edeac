//! What a signature covers: what of a captured request its holder cannot change.

use http::HeaderName;

use super::part::{Part, TimestampSource};
use super::settings::{Scheme, Settings};

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
    /// How much of an event is bound where the weakest of the ways to sign was used.
    pub fn binding(&self) -> Binding {
        let own = match &self.scheme {
            Scheme::Token(_) => Binding::Bearer,
            // Mailgun signs a time and a token beside the event, PayPal a CRC-32 of the body.
            Scheme::Mailgun { .. } | Scheme::PayPal { .. } => Binding::Loose,
            Scheme::Detached(_)
            | Scheme::StandardWebhooks { .. }
            | Scheme::HubSpot { .. }
            | Scheme::Sns { .. }
            | Scheme::Twilio
            | Scheme::AdyenItems
            | Scheme::Braintree => Binding::Event,
        };
        self.otherwise.as_ref().map_or(own, |otherwise| own.min(otherwise.binding()))
    }

    /// Whether a header is covered, whichever of the ways to sign was used.
    pub fn covers_header(&self, name: &HeaderName) -> bool {
        let own = match &self.scheme {
            Scheme::Detached(detached) => {
                let of_time = |source: &TimestampSource| match source {
                    TimestampSource::Header(header) => header == name,
                    TimestampSource::Entry(_) | TimestampSource::Member(_) => false,
                };
                detached.signed.contains(&Part::Header(name.clone()))
                    || detached.timestamp.as_ref().is_some_and(of_time)
            }
            Scheme::StandardWebhooks { .. } => {
                ["webhook-id", "webhook-timestamp", "svix-id", "svix-timestamp"]
                    .contains(&name.as_str())
            }
            Scheme::PayPal { .. } => {
                ["paypal-transmission-id", "paypal-transmission-time"].contains(&name.as_str())
            }
            Scheme::Token(_)
            | Scheme::HubSpot { .. }
            | Scheme::Mailgun { .. }
            | Scheme::Sns { .. }
            | Scheme::Twilio
            | Scheme::AdyenItems
            | Scheme::Braintree => false,
        };
        own && self.otherwise.as_ref().is_none_or(|otherwise| otherwise.covers_header(name))
    }

    /// Whether the query is covered, whichever of the ways to sign was used.
    pub fn covers_query(&self) -> bool {
        let own = match &self.scheme {
            Scheme::Detached(detached) => {
                detached.signed.contains(&Part::Url) || detached.signed.contains(&Part::Path)
            }
            Scheme::HubSpot { .. } | Scheme::Twilio => true,
            Scheme::Token(_)
            | Scheme::StandardWebhooks { .. }
            | Scheme::Mailgun { .. }
            | Scheme::PayPal { .. }
            | Scheme::Sns { .. }
            | Scheme::AdyenItems
            | Scheme::Braintree => false,
        };
        own && self.otherwise.as_ref().is_none_or(|otherwise| otherwise.covers_query())
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
