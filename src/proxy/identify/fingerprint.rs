//! The fingerprint: what a key is bound to.

use std::borrow::Cow;
use std::fmt::Write as _;

use super::{Compared, FingerprintRule, IdentifyError, KeySource};
use crate::json::{Document, Pointer};
use crate::operation::{Fingerprint, FingerprintDigest};
use crate::proxy::selector::{RequestView, Selector, Unread};

/// The fingerprint of a request whose key was found in `from`.
///
/// The digest covers the rule that applies, and not the setting from which the rule came. `auto`
/// gives the same digest as `body`, or as a fingerprint over nothing. So a route can change from
/// one setting to the other without refusing copies.
///
/// # Errors
///
/// A part is present and cannot be used. A part that is missing is compared as absent.
pub(super) fn fingerprint(
    rule: &FingerprintRule,
    from: KeySource,
    request: &RequestView<'_>,
) -> Result<Fingerprint, IdentifyError> {
    match rule.compared(from) {
        Compared::Nothing => Ok(over_nothing()),
        Compared::Body { without } => Ok(over_body(without, &request.body)),
        Compared::Parts(selectors) => over_parts(selectors, request),
    }
}

fn over_nothing() -> Fingerprint {
    FingerprintDigest::under("nothing").finish()
}

/// The fingerprint over the bytes of the body. If members are ignored, it is over the JSON text
/// without them and without whitespace. The order of members counts. A body that is not JSON is
/// taken as it is.
fn over_body(ignore: &[Pointer], body: &Document<'_>) -> Fingerprint {
    if ignore.is_empty() {
        let mut digest = FingerprintDigest::under("body");
        digest.part(body.bytes());
        return digest.finish();
    }
    let mut ignored: Vec<String> = ignore.iter().map(Pointer::to_string).collect();
    // The order in which the settings name members must not change the fingerprint.
    ignored.sort_unstable();
    ignored.dedup();
    let mut digest = FingerprintDigest::under(&rule_text("body without", &ignored));
    digest.part(&body.without(ignore).map_or(Cow::Borrowed(body.bytes()), Cow::Owned));
    digest.finish()
}

fn over_parts(
    selectors: &[Selector],
    request: &RequestView<'_>,
) -> Result<Fingerprint, IdentifyError> {
    let texts: Vec<String> = selectors.iter().map(Selector::to_string).collect();
    let mut digest = FingerprintDigest::under(&rule_text("parts", &texts));
    for selector in selectors {
        let parts = match selector.read(request) {
            Ok(parts) => parts,
            Err(Unread::Missing(_)) => Vec::new(),
            Err(invalid @ Unread::Invalid(_)) => {
                return Err(IdentifyError::at(selector, invalid, request.carried));
            }
        };
        // Counts and tags keep `["a", "b"]` apart from `["ab"]`, and the number 1 from the text
        // "1".
        digest.part(&(parts.len() as u64).to_be_bytes());
        for part in parts {
            digest.part(&[part.tag()]);
            digest.part(part.as_str().as_bytes());
        }
    }
    Ok(digest.finish())
}

/// The text of a rule. The length of each operand precedes it, so that no two rules have one text.
fn rule_text(rule: &str, operands: &[String]) -> String {
    let mut text = rule.to_owned();
    for operand in operands {
        // Writing to a `String` cannot fail.
        let _ = write!(text, " {}:{operand}", operand.len());
    }
    text
}
