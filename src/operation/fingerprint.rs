//! A digest of a request, so that one key cannot stand for two requests.

use std::fmt;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// A digest of parts of a request, and a digest of the rule that says which parts these are.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fingerprint {
    rule: [u8; 8],
    digest: [u8; 16],
}

impl Fingerprint {
    /// Whether both fingerprints may belong to the same request. Fingerprints under different rules
    /// always match: they cannot be compared, and a changed configuration must not turn honest
    /// copies away.
    pub fn matches(&self, other: &Self) -> bool {
        self.rule != other.rule || self.digest == other.digest
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", hex::encode(self.rule), hex::encode(self.digest))
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Collects the parts of a request for its fingerprint. Each part is preceded by its length, so
/// that no byte can move from one part to the next unnoticed.
#[derive(Debug, Clone)]
pub struct FingerprintDigest {
    rule: [u8; 8],
    digest: Sha256,
}

impl FingerprintDigest {
    /// Starts a fingerprint under the rule that is written as `rule`.
    pub fn under(rule: &str) -> Self {
        let rule = *Sha256::digest(rule.as_bytes()).first_chunk().unwrap_or(&[0; 8]);
        Self { rule, digest: Sha256::new() }
    }

    /// Adds one part of the request.
    pub fn part(&mut self, part: &[u8]) {
        self.digest.update((part.len() as u64).to_be_bytes());
        self.digest.update(part);
    }

    /// The fingerprint of the parts so far.
    pub fn finish(self) -> Fingerprint {
        let digest = *self.digest.finalize().first_chunk().unwrap_or(&[0; 16]);
        Fingerprint { rule: self.rule, digest }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn under(rule: &str, parts: &[&str]) -> Fingerprint {
        let mut digest = FingerprintDigest::under(rule);
        for part in parts {
            digest.part(part.as_bytes());
        }
        digest.finish()
    }

    /// Stores keep fingerprints, so a changed digest turns honest copies away.
    #[test]
    fn the_digest_is_pinned() {
        assert_eq!(
            under("body", &["hello"]).to_string(),
            "230d8358dc8e8890-c6402d15196824a049ad87c371a5047a"
        );
    }

    #[test]
    fn parts_do_not_run_into_each_other() {
        assert!(!under("r", &["ab", "c"]).matches(&under("r", &["a", "bc"])));
        assert!(!under("r", &["a"]).matches(&under("r", &["a", ""])));
        assert!(under("r", &["a", "b"]).matches(&under("r", &["a", "b"])));
    }

    #[test]
    fn under_another_rule_nothing_is_compared() {
        assert!(under("old", &["a"]).matches(&under("new", &["b"])));
        assert_ne!(under("old", &["a"]), under("new", &["a"]));
    }
}
