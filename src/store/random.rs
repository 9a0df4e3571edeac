//! Random bytes for ids, revisions and markers, which nobody else has.

use super::Error;

/// Returns random bytes.
pub(crate) fn random<const N: usize>() -> Result<[u8; N], Error> {
    let mut bytes = [0; N];
    match getrandom::fill(&mut bytes) {
        Ok(()) => Ok(bytes),
        Err(_) => Err(Error::Unavailable("the machine has no random numbers")),
    }
}
