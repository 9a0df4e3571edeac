//! Limits what all requests of a process may take together: memory and places.
//!
//! A proxy that keeps whole bodies in memory needs a bound for all of them, or a burst of large
//! events ends the process. Memory is counted by what is allocated. The length of the contents says
//! too little: a buffer that grows by doubling holds up to twice its contents, and a header field
//! of one byte takes a hundred.
//!
//! A place is the right to be one of so many requests. One peer gets at most its share of them, so
//! that a single sender cannot take all.
//!
//! | file | what it does |
//! | --- | --- |
//! | `memory.rs` | the budget of bytes, and reservations in it |
//! | `buffer.rs` | a body while it comes in, counted as it grows |
//! | `guard.rs` | keeps a reservation for as long as bytes are in use |
//! | `places.rs` | places, all together and per peer |

mod buffer;
mod guard;
mod memory;
mod places;

pub use buffer::Buffer;
pub use guard::{BytesGuard, guard_bytes};
pub use memory::{Budget, Exhausted, Reserved};
pub use places::{PeerLimit, Place, Places, Settings as PlaceSettings, Share, peer_network};
