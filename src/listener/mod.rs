//! Accepts connections and serves HTTP/1.1 and HTTP/2 on them, within limits.
//!
//! One task serves one connection. Senders' connections stay on one thread each. A timer in the
//! same task ends the connection when a time limit has passed. hyper's own timers are not used:
//! they do not cover a connection that sends nothing, they count the time between two requests as
//! part of a head, and they do not notice a peer that stops reading.
//!
//! hyper and h2 refuse some requests themselves, without a body that says why. So the stream
//! between them and the socket watches the bytes: on HTTP/1 it replaces such an answer by one that
//! gives the reason, and on HTTP/2 it counts and logs what h2 refused.
//!
//! | file | what it does |
//! | --- | --- |
//! | `settings.rs` | the limits of a listener, and what it shares with the process |
//! | `accept.rs`, `shutdown.rs` | accepts connections; ends a listener in two steps |
//! | `workers.rs` | the threads that serve connections |
//! | `connection.rs`, `service.rs` | serves one connection; the service that answers its requests |
//! | `timer.rs` | the time limits of one connection |
//! | `head_limits.rs`, `content_length.rs` | the limits of a request's head |
//! | `refusal.rs`, `response.rs` | the answers to refused requests; an answer on its way out |
//! | `stream/` | the bytes of one connection |

mod accept;
mod connection;
mod content_length;
mod head_limits;
mod refusal;
mod response;
mod service;
mod settings;
mod shutdown;
mod stream;
mod timer;
mod workers;

#[cfg(test)]
mod tests;

pub use accept::Listener;
pub use head_limits::{HeadMemory, header_map_bytes};
pub use service::Service;
pub use settings::{Limits, Peer, Resources};
pub use shutdown::Shutdown;
pub use workers::Workers;
