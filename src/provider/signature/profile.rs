//! The fixed properties of a scheme that has a file of its own. Each file states its own, so that a
//! new scheme is one file and one line in `scheme.rs`.

use super::carried::Carried;
use crate::provider::ReceivedRequest;

/// How much of an event a signature protects against somebody who has seen one genuine request.
/// The weakest comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Binding {
    /// The secret itself is sent along: whoever sees one request can make any other.
    Bearer,
    /// A signature that fits one event can be made to fit another.
    Loose,
    /// What names the event in the body cannot be changed.
    Event,
}

/// What a scheme covers, reads and needs.
#[expect(clippy::struct_excessive_bools, reason = "a table of facts, each read by itself")]
#[derive(Debug)]
pub(super) struct Profile {
    /// What an operator has to give as the secret.
    pub(super) secret: &'static str,
    pub(super) binding: Binding,
    /// Whether a changed body is noticed.
    pub(super) covers_body: bool,
    /// Whether the public URL is signed, and with it the query.
    pub(super) covers_url: bool,
    /// The values of a request that are signed, among those that a table lets the signature carry.
    pub(super) signed_values: SignedValues,
    /// The headers that are signed.
    pub(super) signed_headers: &'static [&'static str],
    /// How the names of the headers begin that the check reads.
    pub(super) header_prefixes: &'static [&'static str],
    /// Whether it names a time to which a tolerance can apply.
    pub(super) has_timestamp: bool,
    /// Whether it is checked with a certificate or a key that has to be fetched.
    pub(super) is_fetched: bool,
    /// The values that the scheme itself lets a key select as `signature:NAME`. All are signed.
    pub(super) carries: &'static [&'static str],
    /// Reads those values.
    pub(super) carry: Option<fn(&ReceivedRequest<'_>, &mut Carried)>,
    /// A secret with which anybody can sign, such as that of a sender's public test tool.
    pub(super) public_secret: Option<&'static str>,
}

/// Which values of a request a scheme signs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SignedValues {
    None,
    /// Members of a JSON body and fields of a form.
    OfBody,
    /// Fields of a form and parameters of the query.
    OfFormAndQuery,
}

impl Profile {
    /// A scheme that signs the whole body and nothing else. Others say where they differ.
    pub(super) const OF_BODY: Self = Self {
        secret: "the signing secret",
        binding: Binding::Event,
        covers_body: true,
        covers_url: false,
        signed_values: SignedValues::OfBody,
        signed_headers: &[],
        header_prefixes: &[],
        has_timestamp: false,
        is_fetched: false,
        carries: &[],
        carry: None,
        public_secret: None,
    };
}
