//! Senders: how their events are told apart, how they sign, and what they do after which answer.
//!
//! A sender is data. Only a scheme that no table can describe is code (`signature/`). Each
//! built-in sender, a preset, is a table in `presets/NAME.toml`, in the form of an operator's own
//! `[providers.NAME]`. A preset changes defaults and nothing else: what a route says itself wins.
//!
//! # How a sender becomes a preset
//!
//! 1. Write `presets/NAME.toml`. Its comment at the top says in two or three sentences what a stranger
//!    would not expect of this sender.
//!
//! ```toml
//! # Acme.
//! #
//! # The id is signed together with the body.
//!
//! title = "Acme"
//! retention = "4d"                 # longer than its retries, which end after 3 days
//! when_in_flight = "wait"          # a copy waits for the outcome of the attempt in flight
//! answer_within = "8s"             # below its patience
//! in_flight_status = 503           # statuses after which Acme tries again
//! uncertain_status = 503
//!
//! [key]
//! header = []                      # Acme sends no Idempotency-Key
//! event = { id = "json:/id", type = "json:/type" }
//! scope = ["json:/account"]        # what else has to be equal for two requests to be copies
//!
//! [fingerprint]                    # what has to be equal in all copies; `[]`: nothing, because
//! over = []                        # Acme may change other fields between two deliveries
//! ignore = []
//!
//! [signature]                      # without this table nothing is verified
//! scheme = "hmac"
//! header = "X-Acme-Signature"
//! prefix = "sha256="
//!
//! [facts]                          # what `onceward check` compares a route with
//! success = "2xx"
//! patience = "10s"
//! on_failure = "tries again with growing pauses for 3 days"
//! retry_window = "3d"
//! retried = ["3xx", "4xx", "5xx"]
//! secret = "Acme dashboard > Webhooks > signing secret"
//! unconfirmed = ["whether a retry is signed anew"]
//! ```
//!
//! 2. Add the file to the list in `presets.rs`.
//! 3. Every fact comes from a page or a library of the sender, which a comment beside it names. What
//!    nobody confirms stands under `unconfirmed`.
//! 4. Put requests in the form that the sender publishes into `tests/presets/samples/`: a first
//!    delivery, a retry as the sender makes it, another event, a handshake, odd kinds. `expect.json`
//!    says what is right for each. A sample that was made from the preset would prove nothing.
//! 5. `cargo test --test presets` holds the preset to its samples and to the rules for all presets.
//!    `UPDATE_DOCS=1 cargo test --test documents` writes its page.
//!
//! `docs/senders.md` is the page for operators.

mod facts;
mod handshake;
mod presets;
mod received;
mod secret_shape;
pub mod signature;

pub use facts::Facts;
pub use handshake::{Content, Expected, Handshake, JsonBody};
pub use presets::{Preset, preset, presets};
pub use received::ReceivedRequest;
pub use secret_shape::{Alphabet, SecretFlaw, SecretShape, looks_like_a_secret};

use http::HeaderName;

/// A kind of sender, as its table describes it.
#[derive(Debug, Clone, PartialEq)]
pub struct Provider {
    /// The name by which a route takes it.
    pub name: String,
    /// The name for people.
    pub title: String,
    /// How the sender signs. None: it does not, or nobody can check it.
    pub signature: Option<signature::Settings>,
    /// The requests of the sender that are no events.
    pub handshakes: Vec<Handshake>,
    /// What the sender does after which answer, and other facts.
    pub facts: Facts,
}

impl Provider {
    /// The name of the environment variable that holds the secret in proposed configurations.
    pub fn secret_variable(&self) -> String {
        format!("{}_WEBHOOK_SECRET", self.name.to_ascii_uppercase().replace('-', "_"))
    }

    /// Whether the check of its signature, or a handshake, reads this header.
    pub fn reads_header(&self, name: &HeaderName) -> bool {
        let of_handshake =
            |handshake: &Handshake| handshake.headers.iter().any(|(it, _)| it == name);
        self.signature.as_ref().is_some_and(|settings| settings.reads_header(name))
            || self.handshakes.iter().any(of_handshake)
    }

    /// The handshake that a request is. None: it is no handshake.
    pub fn handshake_of(&self, request: &ReceivedRequest<'_>) -> Option<&Handshake> {
        self.handshakes.iter().find(|handshake| handshake.is(request))
    }
}
