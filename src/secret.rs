//! A secret that does not print.

use std::fmt;

use subtle::ConstantTimeEq;
use zeroize::Zeroizing;

/// Text that is compared in constant time and never shown.
#[derive(Clone)]
pub struct Secret(Zeroizing<String>);

impl Secret {
    /// Wraps a secret.
    pub fn new(text: String) -> Self {
        Self(Zeroizing::new(text))
    }

    /// The secret itself, for the one who must have it.
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// Whether `text` is this secret. Takes as long for a near miss as for a far one.
    pub fn is(&self, text: &[u8]) -> bool {
        self.0.as_bytes().ct_eq(text).into()
    }
}

/// In constant time.
impl PartialEq for Secret {
    fn eq(&self, other: &Self) -> bool {
        self.is(other.0.as_bytes())
    }
}

impl Eq for Secret {}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}
