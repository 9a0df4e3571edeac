//! Reads single members of a JSON text without building a tree.
//!
//! A tree loses what the identity of an event needs: the digits of long numbers, and the fact that
//! a member occurs twice. Here a value that is found is a slice of the text itself. Values on the
//! way are read; all others are skipped without recursion, so the nesting of a hostile body costs
//! one byte per level and no stack.
//!
//! All readers are equally strict: `text.rs` alone decides whether a body is JSON.
//!
//! | file | what it does |
//! | --- | --- |
//! | `text.rs` | a body, and whether it is one JSON text in UTF-8 |
//! | `pointer.rs` | JSON pointers, as the configuration writes them |
//! | `find.rs`, `seeds.rs` | follows a pointer; picks members and items from one level |
//! | `scalar.rs` | reads a single value that was found |
//! | `omit.rs` | writes a text without some members, for a fingerprint |

#[cfg(test)]
mod differential;
mod find;
mod omit;
mod pointer;
mod scalar;
mod seeds;
mod text;

pub use pointer::{Pointer, PointerError};
pub use text::Document;

pub(crate) use find::{Found, find};
pub(crate) use scalar::{Scalar, scalar};
pub(crate) use text::strip_byte_order_mark;
