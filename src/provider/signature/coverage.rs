//! What a signature covers: what somebody who has captured a request cannot change in it.

use http::HeaderName;

use super::part::{Part, Selector, TimestampSelector};
use super::profile::Binding;
use super::scheme::{Detached, Scheme, SignatureAt};
use super::settings::Settings;

impl Settings {
    /// How much of an event is protected where the weakest of the methods that count was used.
    pub fn binding(&self) -> Binding {
        let methods = self.accepted().map(|method| method.scheme.binding());
        methods.min().unwrap_or(Binding::Bearer)
    }

    /// Whether the public URL is covered in any of the methods that count, so that it has to be
    /// configured.
    pub fn needs_public_url(&self) -> bool {
        self.accepted().any(|method| method.scheme.needs_public_url())
    }

    /// Whether a changed body is noticed, whichever of the methods that count was used. It is not
    /// where the secret itself is sent, or where the signature covers less than the body.
    pub fn covers_body(&self) -> bool {
        self.accepted().all(|method| method.scheme.covers_body())
    }

    /// Whether a header is covered, whichever of the methods that count was used.
    pub fn covers_header(&self, name: &HeaderName) -> bool {
        self.accepted().all(|method| method.scheme.covers_header(name))
    }

    /// Whether the query is covered, whichever of the methods that count was used.
    pub fn covers_query(&self) -> bool {
        self.accepted().all(|method| method.scheme.covers_query())
    }

    /// Whether a check reads this header. A sender that lists it in `Connection` would have it
    /// removed on the way (RFC 9110, 7.6.1), and the upstream would not see what was checked.
    pub fn reads_header(&self, name: &HeaderName) -> bool {
        let own = Selector::Header(name.clone());
        self.methods.iter().any(|method| {
            method.scheme.reads_header(name)
                || method.carries.iter().any(|(_, selectors)| selectors.contains(&own))
        })
    }
}

impl Detached {
    /// Whether this part is covered where it is present.
    pub(super) fn signs_if_present(&self, part: &Part) -> bool {
        self.signed.iter().any(|item| item.parts().contains(part))
    }

    /// Whether this part is covered in every request.
    pub(super) fn signs(&self, part: &Part) -> bool {
        self.signed.iter().any(|item| item.always_covers(part))
    }

    /// Whether the timestamp is what this selector finds.
    pub(super) fn is_timestamp(&self, selector: &Selector) -> bool {
        matches!(&self.timestamp, Some(TimestampSelector::Value(at)) if at == selector)
    }

    fn covers_header(&self, name: &HeaderName) -> bool {
        let own = Selector::Header(name.clone());
        self.is_timestamp(&own) || self.signs(&Part::Value(own))
    }

    fn reads_header(&self, name: &HeaderName) -> bool {
        let holds_signature = match &self.at {
            SignatureAt::Headers(names) => names.contains(name),
            SignatureAt::Value(at) => *at == Selector::Header(name.clone()),
        };
        holds_signature || self.covers_header(name)
    }
}

impl Scheme {
    fn binding(&self) -> Binding {
        match self {
            Self::Token(_) => Binding::Bearer,
            // Some senders sign a time and an id beside the event, and not the event (Mailgun).
            Self::Detached(detached) if !detached.signs(&Part::Body) => Binding::Loose,
            Self::Detached(_) => Binding::Event,
            Self::BuiltIn(scheme) => scheme.profile().binding,
        }
    }

    fn needs_public_url(&self) -> bool {
        match self {
            Self::Detached(detached) => detached.signs_if_present(&Part::Url),
            Self::Token(_) => false,
            Self::BuiltIn(scheme) => scheme.profile().covers_url,
        }
    }

    fn covers_body(&self) -> bool {
        match self {
            Self::Detached(detached) => detached.signs(&Part::Body),
            Self::Token(_) => false,
            Self::BuiltIn(scheme) => scheme.profile().covers_body,
        }
    }

    fn covers_header(&self, name: &HeaderName) -> bool {
        match self {
            Self::Detached(detached) => detached.covers_header(name),
            Self::Token(_) => false,
            Self::BuiltIn(scheme) => scheme.profile().signed_headers.contains(&name.as_str()),
        }
    }

    fn covers_query(&self) -> bool {
        match self {
            Self::Detached(detached) => detached.signs(&Part::Url) || detached.signs(&Part::Path),
            Self::Token(_) => false,
            Self::BuiltIn(scheme) => scheme.profile().covers_url,
        }
    }

    fn reads_header(&self, name: &HeaderName) -> bool {
        match self {
            Self::Detached(detached) => detached.reads_header(name),
            Self::Token(token) => token.headers.contains(name),
            Self::BuiltIn(scheme) => {
                let prefixes = scheme.profile().header_prefixes;
                prefixes.iter().any(|prefix| name.as_str().starts_with(prefix))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::SignatureTable;
    use super::*;

    fn settings(toml: &str) -> Settings {
        toml::from_str::<SignatureTable>(toml).unwrap().settings().unwrap()
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
