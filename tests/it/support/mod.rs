//! The harness: a receiver that does as it is told, the proxy as a process, and senders.

mod authority;
mod bare;
mod disk;
mod es256;
mod event;
pub mod http2;
mod inside;
mod onceward;
mod postgres;
mod raw;
mod receiver;
mod redis;
mod redis_groups;
mod reply;
mod scraper;
mod server_clock;
pub mod signing;
mod tls_host;
mod waits;

pub use authority::{Authority, Signed};
pub use bare::{Bare, BareReceiver};
pub use disk::Fault;
pub use es256::Es256;
pub use event::{Event, event};
pub use inside::Inside;
pub use onceward::{Builder, Onceward, client, send};
pub use postgres::{PASSWORD, PgBouncer, PostgresServer, give};
pub use raw::RawSender;
pub use receiver::{Act, Answer, Gate, Receiver, Seen};
pub use redis::{RedisServer, free_port, settings};
pub use redis_groups::{Guarded, RedisCluster, Replicated};
pub use reply::Reply;
pub use server_clock::ServerClock;
pub use tls_host::{Asked, TlsHost};
pub use waits::{PATIENCE, a_later_millisecond, until};
