//! Senders, as they send: their signatures, handshakes, retries and siblings.

mod certificates;
mod explained;
mod families;
mod fetched;
mod fetched_keys;
mod forged;
mod handshakes;
mod own_sender;
mod public_url;
mod raw_bytes;
mod refused;
mod rotation;
#[path = "../../presets/samples.rs"]
#[expect(dead_code, reason = "what is right for a sample is asked elsewhere")]
mod samples;
mod senders;
mod skew;
mod times;
mod vectors;

use std::fmt::Write as _;

use tempfile::TempDir;

use crate::support::{Builder, Event, Onceward, Receiver, signing};

/// How many claims the store was asked for.
const CLAIMS: &str = "onceward_store_duration_seconds_count{call=\"claim\"}";

/// A proxy with a route `/NAME` for each of these senders, which verifies those that sign. The
/// directory holds the secrets.
async fn with_senders(receiver: &Receiver, names: &[&str]) -> (Onceward, TempDir) {
    let directory = TempDir::new().unwrap();
    let mut routes = String::new();
    for name in names {
        let upstream = receiver.url();
        writeln!(routes, "[routes.{name}]\npath = \"/{name}\"\nupstream = \"{upstream}\"").unwrap();
        writeln!(routes, "provider = \"{name}\"").unwrap();
        if let Some(secret) = signing::secret(name) {
            let file = directory.path().join(name);
            std::fs::write(&file, secret).unwrap();
            writeln!(routes, "secrets = [{{ file = \"{}\" }}]", file.display()).unwrap();
        }
    }
    (with_many_routes(receiver, &routes).await, directory)
}

/// A proxy with routes for many senders.
async fn with_many_routes(receiver: &Receiver, routes: &str) -> Onceward {
    let public_url = format!("public_url = \"{}\"", signing::PUBLIC_URL);
    let builder = Onceward::in_front_of(receiver).server(&public_url).routes(routes);
    // So many routes together must not want more than the process may open.
    builder.limits("connections_max = 64").defaults("in_flight_max = 4").start().await
}

/// A proxy whose route `hooks` verifies what this sender signs with this secret.
fn verifying(receiver: &Receiver, provider: &str, secret: &str) -> Builder {
    let route = format!("provider = \"{provider}\"\nsecrets = [{{ env = \"THE_SECRET\" }}]");
    Onceward::in_front_of(receiver).variable("THE_SECRET", secret).routes(&route)
}

/// An event of Stripe, signed now.
fn stripe_event(id: &str, secret: &str) -> Event {
    let event = crate::support::event(id);
    let signature = signing::stripe(secret, signing::now(), &event.body);
    event.header("stripe-signature", &signature)
}
