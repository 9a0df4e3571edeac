//! Reads single members of a JSON text without building a tree.
//!
//! A tree loses what identity needs: digits of long numbers, and that a member occurs twice. Here
//! what is found is a piece of the text itself. Values on the way are read, all others are skipped
//! without recursion, so that the nesting of a hostile body costs a byte a level and no stack.

mod member;
mod omit;
mod pointer;

pub use pointer::{Pointer, PointerError};

pub(crate) use member::{Found, find};
pub(crate) use omit::without;
