//! Signatures of senders: did the owner of a secret send exactly these bytes?
//!
//! Most senders differ only in data (which header, which parts are signed in which order), so most
//! are a [`Settings`] table and no code. What is left over has a file of its own here.
//!
//! The bytes are those that came: nothing is parsed and written again before it is checked. A
//! request that lacks anything is refused; only "the certificate cannot be had now" is
//! [`Refused::Undecided`], because there a later copy may pass.
//!
//! A sender that signs in several ways has several ways here, the strongest first. The first one
//! whose signature is present decides; a weaker one never rescues it. Which of them count is said
//! in the configuration (`accept`), and nothing is learned from traffic.
//!
//! What no scheme can do: an id in a header that the signature does not cover can be replaced by
//! who has seen one genuine request. The presets name the senders for which this is so.

mod adyen;
mod braintree;
mod carried;
mod certificates;
mod coverage;
mod detached;
mod division;
mod encoding;
mod form;
mod header;
mod hubspot;
mod keys;
mod mailgun;
mod multipart;
mod part;
mod paypal;
mod plaid;
mod prefix;
mod reader;
mod reads;
mod request;
mod settings;
mod sns;
mod standard;
mod taken;
mod timestamp;
mod token;
mod twilio;
mod verdict;
mod verifier;
mod written;

#[cfg(test)]
mod tests;

use std::borrow::Cow;

use http::{HeaderMap, Method};

pub use carried::{Carried, CarriedValue, Unusable};
pub use certificates::{CertificateError, Certificates, CertificatesError};
pub use coverage::Binding;
pub use encoding::Encoding;
pub use keys::SecretError;
pub use settings::Settings;
pub use taken::keys_of;
pub use timestamp::TimestampFormat;
pub use verdict::{Place, Reason, Refused, Verified};
pub use verifier::Verifier;
pub use written::{Mistake, OneOrMany, Written};

use crate::operation::Timestamp;

/// What a signature may cover, as it came.
#[derive(Debug, Clone, Copy)]
pub struct Signed<'a> {
    /// The method.
    pub method: &'a Method,
    /// Scheme, host and port as senders see them, without a path. Never taken from the request:
    /// without it, schemes that cover the URL never match.
    pub public_url: Option<&'a str>,
    /// Path and query as received.
    pub target: &'a str,
    /// All headers.
    pub headers: &'a HeaderMap,
    /// The whole body as it came over the wire.
    pub body: &'a [u8],
    /// The time of day.
    pub now: Timestamp,
}

impl<'a> Signed<'a> {
    /// The public URL, and behind it path and query as received.
    fn url(&self) -> Cow<'a, str> {
        match self.public_url {
            Some(public) => Cow::Owned(format!("{public}{}", self.target)),
            None => Cow::Borrowed(self.target),
        }
    }

    /// What follows the first `?`.
    fn query(&self) -> &'a str {
        self.target.split_once('?').map_or("", |(_, query)| query)
    }
}
