//! Reads single members of a JSON text without building a tree.
//!
//! A tree loses what identity needs: digits of long numbers, and that a member occurs twice. Here
//! what is found is a piece of the text itself. Values on the way are read, all others are skipped
//! without recursion, so that the nesting of a hostile body costs a byte a level and no stack.

//! Every reader of the crate has the same strictness: [`text::json`] decides what is JSON at all.

#[cfg(test)]
mod differential;
mod member;
mod omit;
mod pointer;
mod scalar;
mod text;

pub use pointer::{Pointer, PointerError};

pub(crate) use member::{Found, find};
pub(crate) use omit::without;
pub(crate) use scalar::{Scalar, scalar};
