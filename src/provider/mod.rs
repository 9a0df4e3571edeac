//! Who sends: what is known of a sender, and how it proves that it was the one.
//!
//! What can be said as data is a table, a preset's (`presets/NAME.toml`) or an operator's own; only
//! ways to sign are code. A preset changes defaults and nothing else: what a route says itself wins.
//!
//! `docs/senders.md` is the page for operators.

mod facts;
mod handshake;
mod presets;
mod secret_shape;
pub mod signature;

pub use facts::Facts;
pub use handshake::{Arrived, Content, Expected, Handshake, JsonBody};
pub use presets::{Preset, preset, presets};
pub use secret_shape::{Letters, Misshapen, SecretShape};

use http::HeaderName;

/// A sender, as its table describes it.
#[derive(Debug, Clone, PartialEq)]
pub struct Provider {
    /// By which routes name it.
    pub name: String,
    /// For people.
    pub title: String,
    /// How it signs; none: it does not.
    pub signature: Option<signature::Settings>,
    /// Requests of it that are no events.
    pub handshakes: Vec<Handshake>,
    /// What it does.
    pub facts: Facts,
}

impl Provider {
    /// The variable that its secret is looked for in where people copy what is proposed to them.
    pub fn secret_variable(&self) -> String {
        format!("{}_WEBHOOK_SECRET", self.name.to_ascii_uppercase().replace('-', "_"))
    }

    /// Whether its signature or a handshake is read from this header.
    pub fn reads_header(&self, name: &HeaderName) -> bool {
        let of_handshake =
            |handshake: &Handshake| handshake.headers.iter().any(|(it, _)| it == name);
        self.signature.as_ref().is_some_and(|settings| settings.reads_header(name))
            || self.handshakes.iter().any(of_handshake)
    }

    /// The handshake that a request is, if it is one.
    pub fn handshake_of(&self, request: &Arrived<'_>) -> Option<&Handshake> {
        self.handshakes.iter().find(|handshake| handshake.is(request))
    }
}
