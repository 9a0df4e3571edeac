//! A secret that is not printed and not left in memory.

use std::fmt;

use subtle::ConstantTimeEq;
use zeroize::Zeroizing;

/// A secret text. `Debug` hides it, comparisons take constant time, and its memory is overwritten
/// when it is dropped.
#[derive(Clone)]
pub struct Secret(Zeroizing<String>);

impl Secret {
    /// Wraps a secret.
    pub fn new(text: String) -> Self {
        Self(Zeroizing::new(text))
    }

    /// The secret itself. Call it only where it is used, and never for a message.
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// Whether `text` is this secret. The time it takes does not tell how much of `text` was right;
    /// it does tell whether the length was.
    pub fn is(&self, text: &[u8]) -> bool {
        // `==` stops at the first byte that differs. By measuring that, a remote peer could guess a
        // secret byte by byte.
        self.0.as_bytes().ct_eq(text).into()
    }
}

/// Compares in constant time.
impl PartialEq for Secret {
    fn eq(&self, other: &Self) -> bool {
        self.is(other.0.as_bytes())
    }
}

impl Eq for Secret {}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Settings with secrets in them are printed in log lines and in errors.
        f.write_str("***")
    }
}
