//! Picks members and items from one level of a JSON text, each as it is written.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::member::ITEMS_MAX;

/// Reads one JSON text for what is picked from it.
pub(super) fn parse<'b, S: DeserializeSeed<'b>>(
    text: &'b str,
    seed: S,
) -> Result<S::Value, serde_json::Error> {
    seed.deserialize(&mut serde_json::Deserializer::from_str(text))
}

/// What a name stands for in an object.
pub(super) enum Picked<'b> {
    None,
    One(&'b RawValue),
    Twice,
}

/// Picks the member of this name from an object.
pub(super) struct Member<'n>(pub(super) &'n str);

impl<'b> DeserializeSeed<'b> for Member<'_> {
    type Value = Picked<'b>;

    fn deserialize<D: Deserializer<'b>>(self, from: D) -> Result<Picked<'b>, D::Error> {
        from.deserialize_map(self)
    }
}

impl<'b> Visitor<'b> for Member<'_> {
    type Value = Picked<'b>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'b>>(self, mut members: A) -> Result<Picked<'b>, A::Error> {
        let mut picked = Picked::None;
        while let Some(is_it) = members.next_key_seed(IsNamed(self.0))? {
            picked = match (is_it, picked) {
                (false, picked) => {
                    members.next_value::<IgnoredAny>()?;
                    picked
                }
                (true, Picked::None) => Picked::One(members.next_value()?),
                (true, Picked::One(_) | Picked::Twice) => {
                    members.next_value::<IgnoredAny>()?;
                    Picked::Twice
                }
            };
        }
        Ok(picked)
    }
}

/// Compares a member's name, after its escapes are decoded. As bytes: a name that is no text is
/// none that is looked for, and nothing is wrong with the members beside it.
struct IsNamed<'n>(&'n str);

impl<'b> DeserializeSeed<'b> for IsNamed<'_> {
    type Value = bool;

    fn deserialize<D: Deserializer<'b>>(self, from: D) -> Result<bool, D::Error> {
        from.deserialize_bytes(self)
    }
}

impl Visitor<'_> for IsNamed<'_> {
    type Value = bool;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a member's name")
    }

    fn visit_bytes<E>(self, name: &[u8]) -> Result<bool, E> {
        Ok(name == self.0.as_bytes())
    }
}

/// Picks the item at this index from an array.
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
            before = before.and_then(|before| before.checked_sub(1));
        }
    }
}

/// All items of an array; `None` if they are more than [`ITEMS_MAX`].
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
                while items.next_element::<IgnoredAny>()?.is_some() {}
                return Ok(None);
            }
        }
        Ok(Some(all))
    }
}
