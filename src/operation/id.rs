//! Operation ids, and the claim ids that keep superseded holders from writing.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::key::{KeyKind, KeyPart};

/// The version of the derivation below. It changes only together with the derivation. A changed
/// derivation makes every operation in a store new.
const VERSION: &str = "onceward/operation/v1";
/// The version of the derivation of step ids.
const STEP_VERSION: &str = "onceward/step/v1";

/// Identifies an operation everywhere: in stores, headers, logs and commands.
///
/// Written as `op_` and 32 hex digits: the first 128 bits of a SHA-256 over length-prefixed parts.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct OperationId([u8; 16]);

/// The parts from which an operation id is derived.
#[derive(Debug, Clone, Copy)]
pub struct OperationIdParts<'a> {
    /// Name of the route.
    pub route: &'a str,
    /// HTTP method.
    pub method: &'a str,
    /// The path in its normal form, on a prefix route. None on a route with an exact path, because
    /// the route's name identifies the path there.
    pub path: Option<&'a str>,
    /// One list for each of the route's `scope` selectors, with the values that the selector found.
    /// The list is empty if an optional value is absent.
    pub scope: &'a [Vec<KeyPart<'a>>],
    /// Where the key was found.
    pub from: KeyKind,
    /// The parts of the key, grouped by the selector that read them. The groups keep an absent or a
    /// repeated part from shifting the parts after it.
    pub key: &'a [&'a [KeyPart<'a>]],
}

impl OperationId {
    /// Derives the id. Every part is preceded by its length and every list by its count, so that
    /// two different sets of parts are never hashed as the same bytes.
    pub fn derive(parts: OperationIdParts<'_>) -> Self {
        let mut digest = Parts(Sha256::new());
        digest.text(VERSION).text(parts.route).text(parts.method);
        digest.length(usize::from(parts.path.is_some()));
        parts.path.map(|path| digest.text(path));
        digest.groups(parts.scope);
        digest.text(parts.from.as_str());
        digest.groups(parts.key);
        Self::of(digest)
    }

    /// The id of one step of an event, for the receiver of the step. One receiver may serve several
    /// steps, and the event's own id would not tell them apart.
    pub fn of_step(event: Self, step: &str) -> Self {
        let mut digest = Parts(Sha256::new());
        digest.text(STEP_VERSION);
        digest.0.update(event.0);
        digest.text(step);
        Self::of(digest)
    }

    fn of(digest: Parts) -> Self {
        Self(*digest.0.finalize().first_chunk().unwrap_or(&[0; 16]))
    }

    /// The id as bytes, for a store's key.
    pub const fn as_bytes(&self) -> &[u8; 16] {
        &self.0
    }

    /// The id whose bytes are the key in a store.
    pub const fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }
}

/// A hash over length-prefixed parts.
struct Parts(Sha256);

impl Parts {
    fn text(&mut self, text: &str) -> &mut Self {
        self.length(text.len());
        self.0.update(text.as_bytes());
        self
    }

    fn groups<'a>(&mut self, groups: &[impl AsRef<[KeyPart<'a>]>]) {
        self.length(groups.len());
        for group in groups {
            self.length(group.as_ref().len());
            for part in group.as_ref() {
                self.0.update([part.tag()]);
                self.text(part.as_str());
            }
        }
    }

    fn length(&mut self, length: usize) {
        self.0.update((length as u64).to_be_bytes());
    }
}

impl fmt::Display for OperationId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut digits = [0; 32];
        // 16 bytes are 32 digits, so neither call can fail.
        hex::encode_to_slice(self.0, &mut digits).map_err(|_| fmt::Error)?;
        f.write_str("op_")?;
        f.write_str(std::str::from_utf8(&digits).map_err(|_| fmt::Error)?)
    }
}

impl fmt::Debug for OperationId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The text is not an operation id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("expected `op_` and 32 hex digits")]
pub struct NotAnOperationId;

impl FromStr for OperationId {
    type Err = NotAnOperationId;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let digits = text.strip_prefix("op_").ok_or(NotAnOperationId)?;
        let mut bytes = [0; 16];
        hex::decode_to_slice(digits, &mut bytes).map_err(|_| NotAnOperationId)?;
        Ok(Self(bytes))
    }
}

/// The id of a claim. It is random and new for every claim. Every later write under the claim must
/// name it.
///
/// The id is a fencing token. A process may be paused while another process claims its operation.
/// The claim id of the paused process is then no longer current, so its writes change nothing.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ClaimId([u8; 16]);

impl ClaimId {
    /// A claim id from 128 random bits.
    pub const fn from_random(bits: [u8; 16]) -> Self {
        Self(bits)
    }
}

impl fmt::Debug for ClaimId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "claim_{}", hex::encode(self.0))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn parts<'a>(from: KeyKind, key: &'a [&'a [KeyPart<'a>]]) -> OperationIdParts<'a> {
        OperationIdParts { route: "orders", method: "POST", path: None, scope: &[], from, key }
    }

    fn id(from: KeyKind, key: &[&[KeyPart<'_>]]) -> String {
        OperationId::derive(parts(from, key)).to_string()
    }

    /// Stores keep these ids. A changed id makes every known event new.
    #[test]
    fn the_derivation_is_pinned() {
        assert_eq!(id(KeyKind::Header, &[&["k1".into()]]), "op_92e94573b157cfb695e4b12a006fc55f");
        let event: &[&[KeyPart<'_>]] =
            &[&["orders".into()], &[KeyPart::Literal("8202522731445525542")], &["paid".into()]];
        assert_eq!(id(KeyKind::Event, event), "op_92b0ea2075b84f9d734df50ef6b6d935");
        let hello = "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824";
        assert_eq!(id(KeyKind::Body, &[&[hello.into()]]), "op_53ed0fc847f6464189e2182a5b74202c");
        let tenant = [vec!["t1".into()], vec![]];
        let key: &[&[KeyPart<'_>]] = &[&["k1".into()]];
        let full = OperationIdParts {
            path: Some("/webhooks/orders/9"),
            scope: &tenant,
            ..parts(KeyKind::Header, key)
        };
        assert_eq!(OperationId::derive(full).to_string(), "op_f66cd78c1bad5e2ab3a2fb52f6294698");
    }

    /// Receivers recognise copies by these ids.
    #[test]
    fn the_derivation_of_steps_is_pinned() {
        let event = OperationId::from_bytes(*b"0123456789abcdef");
        let step = |name| OperationId::of_step(event, name).to_string();
        assert_eq!(step("ledger"), "op_64da45b150a38891c69e29ff2c4c90f7");
        assert_eq!(step("mail"), "op_1e3ec1c491b8bb78a6be4068055c4bb3");
        assert_ne!(
            OperationId::of_step(OperationId::from_bytes([0; 16]), "mail").to_string(),
            step("mail")
        );
    }

    /// No separator can move a character from one part to the next.
    #[test]
    fn parts_do_not_run_into_each_other() {
        let event = |source: &str, id: &str, kind: &str| {
            let id = id.to_owned();
            self::id(KeyKind::Event, &[&[source.into()], &[id.as_str().into()], &[kind.into()]])
        };
        for separator in ["|", ":", "\n", "\0", ""] {
            let left = event("shop", &format!("evt{separator}x"), "y");
            let right = event(&format!("shop{separator}evt"), "x", "y");
            assert_ne!(left, right, "{separator:?}");
        }
        assert_ne!(event("a", "", "b"), event("", "a", "b"));
    }

    /// One key on two routes, methods, paths or tenants identifies two operations.
    #[test]
    fn every_part_counts() {
        let tenant = [vec!["t1".into()]];
        let other = [vec!["t2".into()]];
        let absent = [vec![]];
        let key: &[&[KeyPart<'_>]] = &[&["k1".into()]];
        let base = parts(KeyKind::Header, key);
        let all = [
            base,
            OperationIdParts { route: "payments", ..base },
            OperationIdParts { method: "PUT", ..base },
            OperationIdParts { path: Some("/orders"), ..base },
            OperationIdParts { path: Some("/orders/9/cancel"), ..base },
            OperationIdParts { scope: &tenant, ..base },
            OperationIdParts { scope: &other, ..base },
            OperationIdParts { scope: &absent, ..base },
            OperationIdParts { from: KeyKind::Event, ..base },
            OperationIdParts { key: &[&["K1".into()]], ..base },
            OperationIdParts { key: &[&["k1".into()], &[]], ..base },
            OperationIdParts { key: &[&[], &["k1".into()]], ..base },
            OperationIdParts { key: &[&[KeyPart::Literal("k1")]], ..base },
        ];
        let ids: std::collections::HashSet<_> = all.into_iter().map(OperationId::derive).collect();
        assert_eq!(ids.len(), all.len());
    }

    #[test]
    fn an_id_reads_back_as_it_was_written() {
        let id = OperationId::from_bytes(*b"0123456789abcdef");
        assert_eq!(id.to_string().parse(), Ok(id));
        let short = format!("op_{}", "0".repeat(30));
        let long = format!("op_{}", "0".repeat(34));
        let no_prefix = "0".repeat(32);
        for text in ["", "op_", &short, &long, &no_prefix, &format!("op_{}", "g".repeat(32))] {
            assert_eq!(text.parse::<OperationId>(), Err(NotAnOperationId), "{text}");
        }
    }

    type Owned = Vec<Vec<(bool, String)>>;

    fn borrowed(groups: &Owned) -> Vec<Vec<KeyPart<'_>>> {
        groups.iter().map(|group| group.iter().map(part).collect()).collect()
    }

    fn part((is_text, value): &(bool, String)) -> KeyPart<'_> {
        if *is_text { value.as_str().into() } else { KeyPart::Literal(value) }
    }

    fn groups() -> impl Strategy<Value = Owned> {
        let part = (any::<bool>(), "[ab|\0]{0,3}");
        proptest::collection::vec(proptest::collection::vec(part, 0..3), 0..3)
    }

    proptest! {
        /// Different parts have different ids, and equal parts equal ids.
        #[test]
        fn the_derivation_is_injective(
            (a, b) in (groups(), groups()), (scope_a, scope_b) in (groups(), groups()),
        ) {
            let derive = |scope: &Owned, key: &Owned| {
                let key = borrowed(key);
                let key: Vec<&[KeyPart<'_>]> = key.iter().map(Vec::as_slice).collect();
                let scope = borrowed(scope);
                let base = parts(KeyKind::Event, &key);
                OperationId::derive(OperationIdParts { scope: &scope, ..base })
            };
            let equal = (&scope_a, &a) == (&scope_b, &b);
            prop_assert_eq!(equal, derive(&scope_a, &a) == derive(&scope_b, &b));
        }
    }
}
