//! The harness: a receiver that does as it is told, the proxy as a process, and senders.

mod bare;
mod disk;
mod event;
mod onceward;
mod raw;
mod receiver;
mod reply;

pub use bare::{Bare, BareReceiver};
pub use disk::Fault;
pub use event::{Event, event};
pub use onceward::Onceward;
pub use raw::RawSender;
pub use receiver::{Act, Answer, Gate, Receiver, Seen};
pub use reply::Reply;
