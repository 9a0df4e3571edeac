//! Servers as they are, with what they do between two answers and around large requests.

mod certificates;
mod closing;
mod early;
mod install;
mod keeping;
pub mod server;

use futures_util::future::join_all;
use rustls::ServerConfig;

use crate::support::{Authority, Builder, ClientCertificate, Onceward, event};

/// The text of the warning that an uncertain outcome leaves in the log.
const HELD: &str = "nobody knows whether the operation was done";

/// The store is not what is tested.
fn in_front_of(url: &str) -> Builder {
    Onceward::in_front_of_url(url).in_memory()
}

/// How a TLS terminator on this machine speaks TLS.
fn localhost(authority: &Authority) -> ServerConfig {
    authority.server("localhost", ClientCertificate::NotAsked)
}

/// Sends so many events from so many senders at a time. Gives how many were not executed with 200.
async fn lost_of(onceward: &Onceward, events: usize, senders: usize) -> usize {
    let sender = |sender: usize| async move {
        let mut lost = 0;
        for number in 0..events / senders {
            let reply = onceward.sends(event(&format!("evt_{senders}_{sender}_{number}"))).await;
            lost += usize::from(reply.status != 200 || reply.disposition() != "executed");
        }
        lost
    };
    join_all((0..senders).map(sender)).await.into_iter().sum()
}
