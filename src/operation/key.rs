//! The idempotency key, which identifies an operation on its route.

use std::borrow::Cow;
use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use sha2::{Digest, Sha256};

use crate::words::enum_of_words;

/// How many bytes of the text of a key are kept.
const KEPT_BYTES_MAX: usize = 1024;

/// The longest part, in bytes, that is kept as text, among the parts by which operations are
/// searched. A longer one is replaced by a digest of its own, whatever the other parts are, and
/// operations are searched by that digest.
const SEARCHED_BYTES_MAX: usize = KEPT_BYTES_MAX / 2;

/// How many characters of a part of a key are logged. Anybody can send a long part.
const LOGGED_CHARS_MAX: usize = 128;

enum_of_words! {
    /// Where an idempotency key was found. Its words stand in JSON, and operation ids are derived
    /// from them.
    #[derive(Serialize, Deserialize)]
    #[serde(rename_all = "lowercase")]
    pub enum KeyKind {
        /// In a key header such as `x-idempotency-key`.
        Header = "header",
        /// In the event: its source, id and type.
        Event = "event",
        /// The key is the digest of the whole body.
        Body = "body",
    }
}

/// The idempotency key in readable form: where it was found, and its parts in order.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Key {
    /// Where the key was found. Equal parts from different places are different keys.
    pub from: KeyKind,
    /// The value of a header; source, id and type of an event; or the digest of a body.
    pub parts: Vec<String>,
}

impl Key {
    /// The readable form of the parts from which the operation id is derived.
    ///
    /// A header and a digest are kept as they are. The parts of an event are kept as [`KeyPart`]
    /// displays them, which tells the number 5 from the text `5`. A long header, a long source and
    /// a long id are each replaced by a digest. If all parts together are long, one digest replaces
    /// the last parts.
    pub fn of(from: KeyKind, parts: &[&[KeyPart<'_>]]) -> Self {
        let shown = |part: &KeyPart<'_>| match from {
            KeyKind::Header | KeyKind::Body => part.as_str().to_owned(),
            KeyKind::Event => part.to_string(),
        };
        // The value of a header or a digest; the source and the first id of an event.
        let with_own_digest = match from {
            KeyKind::Header | KeyKind::Body => 1,
            KeyKind::Event => 2,
        };
        let mut left = KEPT_BYTES_MAX;
        let mut kept = Vec::new();
        let mut rest = Rest::default();
        for (index, part) in parts.iter().copied().flatten().enumerate() {
            if index < with_own_digest {
                let part = digest_if_long(part.as_str()).unwrap_or_else(|| shown(part));
                left = left.saturating_sub(part.len());
                kept.push(part);
                continue;
            }
            let part = shown(part);
            // Once one part is in the digest, all parts after it are too. Otherwise the order of
            // the parts would be lost.
            if rest.parts == 0 && part.len() <= left {
                left -= part.len();
                kept.push(part);
            } else {
                rest.add(&part);
            }
        }
        kept.extend(rest.shown());
        Self { from, parts: kept }
    }

    /// The part by which an operation is searched: a header's value, an event's id (the first one
    /// of a batch) or a body's digest. A text and a number with the same digits are the same here.
    pub fn searched(&self) -> Option<Cow<'_, str>> {
        let part = match self.from {
            KeyKind::Header | KeyKind::Body => return self.parts.first().map(Into::into),
            // The first part is the source.
            KeyKind::Event => self.parts.get(1)?,
        };
        Some(Self::unquoted(part))
    }

    /// The value of [`Key::searched`] for a header's value, an event's id or a body's digest that
    /// an operator typed. The typed text may be in quotes, because a list of operations shows texts
    /// so.
    pub fn searchable(text: &str) -> Cow<'_, str> {
        let text = Self::unquoted(text);
        match digest_if_long(&text) {
            Some(digest) => Cow::Owned(digest),
            None => text,
        }
    }

    /// The value of [`Key::searched`] for a line of the log. It is cut off if it is long, and
    /// escaped, so that a sender cannot break the line or write control sequences to a terminal.
    pub fn logged(&self) -> Option<String> {
        let key = self.searched()?;
        let mut shown: String = key.chars().take(LOGGED_CHARS_MAX).collect();
        if shown.len() < key.len() {
            shown.push_str("...");
        }
        Some(shown.escape_debug().to_string())
    }

    /// The part of an event without the quotes that tell a text from a number.
    fn unquoted(part: &str) -> Cow<'_, str> {
        let text = if part.starts_with('"') { serde_json::from_str(part).ok() } else { None };
        text.map_or(Cow::Borrowed(part), Cow::Owned)
    }
}

/// The digest that replaces a searched part, if the part is too long to be kept. The digest depends
/// on the text alone, because an operator who searches for a key does not give its type.
fn digest_if_long(text: &str) -> Option<String> {
    // Every request comes here. Quotes and escapes make a text at most eight times as long, so a
    // short text need not be written out to know that it is kept.
    if text.len() <= SEARCHED_BYTES_MAX / 8 {
        return None;
    }
    let is_long = KeyPart::from(text).to_string().len() > SEARCHED_BYTES_MAX;
    is_long.then(|| KeyPart::Digest(hex::encode(Sha256::digest(text))).to_string())
}

/// The last parts of a long key, which one digest replaces.
#[derive(Default)]
struct Rest {
    digest: Sha256,
    parts: usize,
}

impl Rest {
    fn add(&mut self, part: &str) {
        self.digest.update((part.len() as u64).to_be_bytes());
        self.digest.update(part.as_bytes());
        self.parts += 1;
    }

    fn shown(self) -> Option<String> {
        let digest = (self.parts > 0).then(|| hex::encode(self.digest.finalize()))?;
        Some(format!("sha256:{digest} of {} more", self.parts))
    }
}

/// One part of a key, with its type: a number is not the text with the same digits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeyPart<'a> {
    /// A decoded text: the value of a header or a field, or a JSON string.
    Text(Cow<'a, str>),
    /// A JSON number or boolean exactly as written: `1`, `1.0` and `1e0` are three parts.
    Literal(&'a str),
    /// The digest of the body, which replaces a part that is absent.
    Digest(String),
}

impl KeyPart<'_> {
    /// The text, literal or digest without its type.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Text(text) => text,
            Self::Literal(literal) => literal,
            Self::Digest(digest) => digest,
        }
    }

    /// The byte for the type in the hash of an operation id.
    pub const fn tag(&self) -> u8 {
        match self {
            Self::Text(_) => b't',
            Self::Literal(_) => b'l',
            Self::Digest(_) => b'd',
        }
    }
}

impl<'a> From<&'a str> for KeyPart<'a> {
    fn from(text: &'a str) -> Self {
        Self::Text(Cow::Borrowed(text))
    }
}

/// A text that could be read as a literal, or that begins with a quote, is written in quotes.
impl fmt::Display for KeyPart<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) if text.starts_with('"') || is_json(text) => write!(f, "{text:?}"),
            Self::Text(text) => f.write_str(text),
            Self::Literal(literal) => f.write_str(literal),
            Self::Digest(digest) => write!(f, "sha256:{digest}"),
        }
    }
}

fn is_json(text: &str) -> bool {
    serde_json::from_str::<&RawValue>(text).is_ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_number_and_the_text_of_its_digits_are_shown_apart() {
        let parts: &[KeyPart<'_>] = &["5".into(), KeyPart::Literal("5"), "evt_5".into()];
        let key = Key::of(KeyKind::Event, &[&["shop".into()], parts]);
        assert_eq!(key.parts, ["shop", "\"5\"", "5", "evt_5"]);
        let json = serde_json::to_string(&key).unwrap();
        assert_eq!(json, r#"{"from":"event","parts":["shop","\"5\"","5","evt_5"]}"#);
    }

    #[test]
    fn it_is_searched_by_the_id_whatever_its_type() {
        let event = |id| Key::of(KeyKind::Event, &[&["shop".into()], &[id], &["paid".into()]]);
        for id in ["5".into(), KeyPart::Literal("5")] {
            assert_eq!(event(id).searched().as_deref(), Some("5"));
        }
        assert_eq!(event("evt_6".into()).searched().as_deref(), Some("evt_6"));
        let header = Key::of(KeyKind::Header, &[&["\"5\"".into()]]);
        assert_eq!(header.searched().as_deref(), Some("\"5\""));
    }

    #[test]
    fn of_long_parts_a_digest_is_kept() {
        let short = "a".repeat(SEARCHED_BYTES_MAX);
        let long = "b".repeat(4096);
        let key = |parts: &[KeyPart<'_>]| Key::of(KeyKind::Event, &[parts]).parts;
        assert_eq!(key(&["shop".into(), short.as_str().into()]), ["shop", &short]);
        let kept = key(&["shop".into(), "evt_1".into(), long.as_str().into(), "paid".into()]);
        assert_eq!(kept[..2], ["shop", "evt_1"]);
        assert!(kept[2].starts_with("sha256:") && kept[2].ends_with(" of 2 more"), "{kept:?}");
        let sold = key(&["shop".into(), "evt_1".into(), long.as_str().into(), "sold".into()]);
        assert_ne!(kept, sold);
        let batch: Vec<KeyPart<'_>> = vec!["0123456789abcdef".into(); 8192];
        assert!(key(&batch).iter().map(String::len).sum::<usize>() < 1024 + 100);
    }

    /// Topics and ARNs may be too long to be kept, and operators search events by them.
    #[test]
    fn a_long_id_is_searched_by_its_digest_whatever_stands_beside_it() {
        for (length, is_kept) in [(5, true), (512, true), (513, false), (4096, false)] {
            let id = "i".repeat(length);
            for source in ["s", &"s".repeat(300), &"s".repeat(2000)] {
                let parts = [source.into(), id.as_str().into(), "paid".into()];
                let key = Key::of(KeyKind::Event, &[&parts]);
                assert_eq!(key.searched(), Some(Key::searchable(&id)), "{length}");
                assert_eq!(key.searched().as_deref() == Some(&id), is_kept, "{length}");
                assert!(key.parts.iter().map(String::len).sum::<usize>() < KEPT_BYTES_MAX + 200);
            }
        }
        let digits = "1".repeat(600);
        for id in [KeyPart::Literal(&digits), digits.as_str().into()] {
            let key = Key::of(KeyKind::Event, &[&["s".into(), id]]);
            assert_eq!(key.searched(), Some(Key::searchable(&digits)));
        }
        assert_eq!(Key::searchable("\"5\""), "5");
        let shown = Key::searchable(&digits).into_owned();
        assert_eq!(Key::searchable(&shown), shown, "as it stands in a list");
    }

    #[test]
    fn a_header_is_shown_verbatim() {
        assert_eq!(Key::of(KeyKind::Header, &[&["5".into()]]).parts, ["5"]);
    }

    proptest! {
        #[test]
        fn what_is_shown_names_one_part(
            a in "[\"0-9a-z.\\\\tru-]{1,4}", b in "[\"0-9a-z.\\\\tru-]{1,4}",
        ) {
            let [text_a, text_b] = [KeyPart::from(a.as_str()), KeyPart::from(b.as_str())];
            prop_assert_eq!(a == b, text_a.to_string() == text_b.to_string());
            if is_json(&b) && !b.starts_with('"') {
                prop_assert_ne!(text_a.to_string(), KeyPart::Literal(&b).to_string());
            }
        }
    }
}
