//! Signatures of senders: did the owner of a secret send exactly these bytes?
//!
//! Most senders differ only in data (which header, which parts are signed in which order), so most
//! are a [`SignatureTable`] and no code. A scheme that no table can describe has a file here, which
//! states its properties (`profile`) and checks it.
//!
//! A check reads the bytes that were received: nothing is parsed and written again first. A request
//! that lacks anything is refused with 401. Only where a certificate or a key cannot be fetched at
//! the moment is it [`SignatureError::Undecided`] and a 503, because a later copy may pass.
//!
//! A sender that signs in several ways has several signing methods here, the strongest first. The
//! first method whose signature is present decides, and a right signature of a weaker method does
//! not make up for a wrong one: otherwise an attacker could choose the weaker method. The
//! configuration says which methods count (`accept`). Nothing is learned from traffic.
//!
//! No scheme can protect an id in a header that the signature does not cover: whoever has seen one
//! genuine request can replace the id. The presets name the senders for which this is so.
//!
//! | files | what they hold |
//! | --- | --- |
//! | `table`, `table_reader`, `table_keys` | the table as it is written, and how it is read |
//! | `settings`, `scheme`, `profile`, `coverage`, `divisible` | what is known of a sender's signatures before a request comes |
//! | `verifier` | the check of one route's requests, by one signing method after the other |
//! | `detached`, `token` and one file for each other scheme | the check of one scheme |
//! | `request`, `form`, `multipart`, `header` | how values of a request are read |
//! | `keys`, `certificates` | what signatures are checked with |
//! | `verdict` | why a request is not known to be genuine |

mod adyen;
mod braintree;
mod carried;
mod certificates;
mod coverage;
mod detached;
mod divisible;
mod division;
mod encoding;
mod field;
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
mod profile;
mod request;
mod scheme;
mod settings;
mod sns;
mod standard;
mod table;
mod table_keys;
mod table_reader;
mod timestamp;
mod timestamp_format;
mod token;
mod twilio;
mod verdict;
mod verifier;

#[cfg(test)]
mod tests;

pub use carried::{Carried, CarriedValue, Unusable};
pub use certificates::{CertificateError, Certificates, CertificatesError};
pub use encoding::Encoding;
pub use keys::SecretError;
pub use profile::Binding;
pub use settings::Settings;
pub use table::{Mistake, OneOrMany, SignatureTable};
pub use table_keys::keys_of;
pub use timestamp_format::TimestampFormat;
pub use verdict::{InvalidReason, Location, SignatureError};
pub use verifier::{Verified, Verifier};
