//! Reads single members of a JSON text without building a tree.
//!
//! A tree loses what identity needs: digits of long numbers, and that a member occurs twice. Here
//! what is found is a piece of the text itself. Values on the way are read, all others are skipped
//! without recursion, so that the nesting of a hostile body costs a byte a level and no stack.
//!
//! Every reader of the crate has the same strictness: `text::json` decides what is JSON at all.

#[cfg(test)]
mod differential;
mod member;
mod omit;
mod pick;
mod pointer;
mod scalar;
mod text;

pub use pointer::{Pointer, PointerError};

pub(crate) use member::{Found, find};
pub(crate) use omit::without;
pub(crate) use scalar::{Scalar, scalar};

/// What there is to read of a body: a UTF-8 byte order mark before it says nothing. RFC 8259, 8.1,
/// lets readers skip it.
pub(crate) fn without_mark(body: &[u8]) -> &[u8] {
    body.strip_prefix(b"\xef\xbb\xbf").unwrap_or(body)
}
