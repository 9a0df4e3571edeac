//! Picks members and items from one level of a JSON text, as serde seeds. Each value is picked as
//! it is written.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

/// The most items that `*` may stand for. Each becomes a part of a key, so the number bounds the
/// length of keys. `SendGrid` sends more than 1,024 events in one request.
pub(super) const ITEMS_MAX: usize = 8192;

/// Reads one JSON text with a seed.
pub(super) fn parse<'b, S: DeserializeSeed<'b>>(
    text: &'b str,
    seed: S,
) -> Result<S::Value, serde_json::Error> {
    seed.deserialize(&mut serde_json::Deserializer::from_str(text))
}

/// The members of one name in an object.
pub(super) enum MemberMatch<'b> {
    Absent,
    One(&'b RawValue),
    /// More than one.
    Duplicate,
}

/// Picks the member of this name from an object.
pub(super) struct Member<'n>(pub(super) &'n str);

impl<'b> DeserializeSeed<'b> for Member<'_> {
    type Value = MemberMatch<'b>;

    fn deserialize<D: Deserializer<'b>>(self, from: D) -> Result<MemberMatch<'b>, D::Error> {
        from.deserialize_map(self)
    }
}

impl<'b> Visitor<'b> for Member<'_> {
    type Value = MemberMatch<'b>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'b>>(self, mut members: A) -> Result<MemberMatch<'b>, A::Error> {
        let mut found = MemberMatch::Absent;
        // The object is read to its end even after the member was found: it may occur again.
        while let Some(has_name) = members.next_key_seed(NameMatch(self.0))? {
            found = match (has_name, found) {
                (false, found) => {
                    members.next_value::<IgnoredAny>()?;
                    found
                }
                (true, MemberMatch::Absent) => MemberMatch::One(members.next_value()?),
                (true, MemberMatch::One(_) | MemberMatch::Duplicate) => {
                    members.next_value::<IgnoredAny>()?;
                    MemberMatch::Duplicate
                }
            };
        }
        Ok(found)
    }
}

/// Compares a member's name after its escapes are decoded.
///
/// It compares bytes. A name with an escape that stands for no character, such as `\ud800`, does
/// not match, and must not make the other members unreadable.
struct NameMatch<'n>(&'n str);

impl<'b> DeserializeSeed<'b> for NameMatch<'_> {
    type Value = bool;

    fn deserialize<D: Deserializer<'b>>(self, from: D) -> Result<bool, D::Error> {
        from.deserialize_bytes(self)
    }
}

impl Visitor<'_> for NameMatch<'_> {
    type Value = bool;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a member's name")
    }

    fn visit_bytes<E>(self, name: &[u8]) -> Result<bool, E> {
        Ok(name == self.0.as_bytes())
    }
}

/// Picks the item at an index from an array. `None` is no index: it picks nothing.
pub(super) struct Item(pub(super) Option<usize>);

impl<'b> DeserializeSeed<'b> for Item {
    type Value = Option<&'b RawValue>;

    fn deserialize<D: Deserializer<'b>>(self, from: D) -> Result<Self::Value, D::Error> {
        from.deserialize_seq(self)
    }
}

impl<'b> Visitor<'b> for Item {
    type Value = Option<&'b RawValue>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array")
    }

    fn visit_seq<A: SeqAccess<'b>>(self, mut items: A) -> Result<Self::Value, A::Error> {
        // How many items come before the one that is picked.
        let mut before = self.0;
        let mut picked = None;
        loop {
            if before == Some(0) {
                picked = items.next_element::<&RawValue>()?;
                if picked.is_none() {
                    return Ok(None);
                }
            } else if items.next_element::<IgnoredAny>()?.is_none() {
                return Ok(picked);
            }
            // After the item this becomes `None`, and the rest is skipped.
            before = before.and_then(|before| before.checked_sub(1));
        }
    }
}

/// Picks all items of an array; `None` if there are more than [`ITEMS_MAX`].
pub(super) struct Items;

impl<'b> DeserializeSeed<'b> for Items {
    type Value = Option<Vec<&'b RawValue>>;

    fn deserialize<D: Deserializer<'b>>(self, from: D) -> Result<Self::Value, D::Error> {
        from.deserialize_seq(self)
    }
}

impl<'b> Visitor<'b> for Items {
    type Value = Option<Vec<&'b RawValue>>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array")
    }

    fn visit_seq<A: SeqAccess<'b>>(self, mut items: A) -> Result<Self::Value, A::Error> {
        let mut all = Vec::new();
        while let Some(item) = items.next_element::<&RawValue>()? {
            all.push(item);
            if all.len() > ITEMS_MAX {
                // The rest is read as well, because an array that is cut off is not JSON.
                while items.next_element::<IgnoredAny>()?.is_some() {}
                return Ok(None);
            }
        }
        Ok(Some(all))
    }
}
