//! Signatures of senders: did the owner of a secret send exactly these bytes?
//!
//! Most senders differ only in data (which header, which parts are signed in which order), so most
//! are a [`Settings`] table and no code. What is left over has a file of its own here.
//!
//! The bytes are those that came: nothing is parsed and written again before it is checked. A
//! request that lacks anything is refused; only "the certificate cannot be had now" is
//! [`Refused::Undecided`], because there a later copy may pass.
//!
//! What no scheme can do: an id in a header that the signature does not cover can be replaced by
//! who has seen one genuine request. The presets name the senders for which this is so.

mod adyen;
mod braintree;
mod certificates;
mod coverage;
mod detached;
mod encoding;
mod form;
mod header;
mod hubspot;
mod keys;
mod mailgun;
mod part;
mod paypal;
mod reads;
mod settings;
mod sns;
mod standard;
mod timestamp;
mod token;
mod twilio;
mod verdict;
mod verifier;
mod written;

#[cfg(test)]
mod tests;

use http::{HeaderMap, Method};

pub use certificates::{CertificateError, Certificates, CertificatesError};
pub use coverage::Binding;
pub use encoding::Encoding;
pub use keys::SecretError;
pub use settings::Settings;
pub use timestamp::TimestampFormat;
pub use verdict::{Place, Reason, Refused, Verified};
pub use verifier::Verifier;
pub use written::{Mistake, Written};

use crate::operation::Timestamp;

/// What a signature may cover, as it came.
#[derive(Debug, Clone, Copy)]
pub struct Signed<'a> {
    /// The method.
    pub method: &'a Method,
    /// The public URL (scheme, host, port) and behind it path and query as received. Without a
    /// public URL only path and query; schemes that cover the URL then never match.
    pub url: &'a str,
    /// All headers.
    pub headers: &'a HeaderMap,
    /// The whole body as it came over the wire.
    pub body: &'a [u8],
    /// The time of day.
    pub now: Timestamp,
}

impl<'a> Signed<'a> {
    /// Path and query.
    fn target(&self) -> &'a str {
        let Some((_, rest)) = self.url.split_once("://") else {
            return self.url;
        };
        rest.find(['/', '?']).and_then(|start| rest.get(start..)).unwrap_or("/")
    }
}
