//! A signature in a header over parts of the request: what most senders do.

use std::borrow::Cow;
use std::time::Duration;

use serde_json::Value;

use super::header::{ENTRIES_MAX, covered, entries, lines, signature};
use super::keys::{Keyring, Numbered};
use super::part::{Part, TimestampSource};
use super::settings::Detached;
use super::verdict::{Place, Reason, Refused, Verified};
use super::{SecretError, Signed};

/// Checks what [`Detached`] describes.
#[derive(Debug)]
pub(super) struct Check {
    settings: Detached,
    keys: Keyring,
    tolerance: Option<Duration>,
}

/// The timestamp as it was written, and where.
struct Stamp<'a> {
    text: Cow<'a, [u8]>,
    place: Place,
}

impl Check {
    pub(super) fn new(
        settings: &Detached,
        secrets: &[Numbered<'_>],
        tolerance: Option<Duration>,
    ) -> Result<Self, SecretError> {
        let keys = Keyring::new(settings.method, settings.secret, secrets)?;
        Ok(Self { settings: settings.clone(), keys, tolerance })
    }

    pub(super) fn verify(&self, signed: &Signed<'_>) -> Result<Verified, Refused> {
        let entries = self.entries(signed)?;
        let signatures = self.signatures(&entries)?;
        let stamp = self.stamp(signed, &entries)?;
        let message = self.message(signed, stamp.as_ref())?;
        let found = self.keys.find(&message, &signatures);
        let verified = found.ok_or_else(|| Reason::Mismatch(self.place()))?;
        if let Some(stamp) = stamp {
            let format = self.settings.timestamp_format;
            format.check(&stamp.text, &stamp.place, signed, self.tolerance)?;
        }
        Ok(verified)
    }

    fn place(&self) -> Place {
        Place::Header(self.settings.header.clone())
    }

    /// The entries of the header; all of it is one if it is no list.
    fn entries<'a>(&self, signed: &Signed<'a>) -> Result<Vec<&'a [u8]>, Refused> {
        let name = &self.settings.header;
        let values = if self.settings.repeated {
            lines(signed.headers, name)
        } else {
            vec![signature(signed.headers, name)?]
        };
        if values.is_empty() {
            return Err(Refused::Missing(self.place()));
        }
        Ok(match self.settings.separator {
            Some(separator) => values.iter().flat_map(|value| entries(value, separator)).collect(),
            None => values,
        })
    }

    /// Whether an entry is the timestamp and no signature.
    fn is_stamp(&self, index: usize, entry: &[u8]) -> bool {
        match &self.settings.timestamp {
            Some(TimestampSource::Entry(prefix)) if prefix.is_empty() => index == 0,
            Some(TimestampSource::Entry(prefix)) => entry.starts_with(prefix.as_bytes()),
            Some(TimestampSource::Header(_) | TimestampSource::Member(_)) | None => false,
        }
    }

    /// All that can be decoded. While a sender changes its secret or its scheme there are others.
    fn signatures(&self, entries: &[&[u8]]) -> Result<Vec<Vec<u8>>, Reason> {
        let Detached { prefix, encoding, .. } = &self.settings;
        let written: Vec<&[u8]> = (0..)
            .zip(entries)
            .filter(|(index, entry)| !self.is_stamp(*index, entry))
            .filter_map(|(_, entry)| entry.strip_prefix(prefix.as_bytes()))
            .collect();
        if written.is_empty() {
            return Err(Reason::Prefix(self.place(), prefix.clone()));
        }
        if written.len() > ENTRIES_MAX {
            return Err(Reason::TooMany(self.place()));
        }
        let decoded = written.into_iter().filter_map(|text| encoding.decode(text));
        let signatures: Vec<_> = decoded.filter(|signature| !signature.is_empty()).collect();
        if signatures.is_empty() {
            return Err(Reason::Undecodable(self.place(), *encoding));
        }
        Ok(signatures)
    }

    fn stamp<'a>(
        &self,
        signed: &Signed<'a>,
        entries: &[&'a [u8]],
    ) -> Result<Option<Stamp<'a>>, Reason> {
        let Some(source) = &self.settings.timestamp else {
            return Ok(None);
        };
        match source {
            TimestampSource::Header(name) => {
                let text = covered(signed.headers, name)?.into();
                Ok(Some(Stamp { text, place: Place::Header(name.clone()) }))
            }
            TimestampSource::Entry(prefix) => {
                let place = Place::Entry(self.settings.header.clone(), prefix.clone());
                let mut stamps = (0..).zip(entries).filter(|(i, entry)| self.is_stamp(*i, entry));
                let stamp = stamps.next().and_then(|(_, e)| e.strip_prefix(prefix.as_bytes()));
                let text = stamp.ok_or_else(|| Reason::Absent(place.clone()))?;
                if stamps.next().is_some() {
                    return Err(Reason::Repeated(place));
                }
                Ok(Some(Stamp { text: text.into(), place }))
            }
            // It is part of the body, which is signed, so it is of use only for its age.
            TimestampSource::Member(_) if self.tolerance.is_none() => Ok(None),
            TimestampSource::Member(pointer) => {
                let place = Place::Member(pointer.clone());
                let found = member(signed.body, pointer);
                // Nothing can be taken out of a body that is signed: its sender wrote no time.
                if found.is_none() && self.settings.signed.contains(&Part::Body) {
                    return Ok(None);
                }
                let text = found.as_ref().and_then(text_of);
                let text = text.ok_or_else(|| Reason::Absent(place.clone()))?.into_bytes().into();
                Ok(Some(Stamp { text, place }))
            }
        }
    }

    /// What was signed, piece by piece.
    fn message<'a>(
        &'a self,
        signed: &Signed<'a>,
        stamp: Option<&'a Stamp<'_>>,
    ) -> Result<Vec<&'a [u8]>, Reason> {
        let piece = |part: &'a Part| {
            Ok(match part {
                Part::Body => signed.body,
                Part::Timestamp => stamp.map_or(&[][..], |stamp| &stamp.text),
                Part::Url => signed.url.as_bytes(),
                Part::Path => signed.target().as_bytes(),
                Part::Method => signed.method.as_str().as_bytes(),
                Part::Header(name) => covered(signed.headers, name)?,
                Part::Text(literal) => literal.as_bytes(),
            })
        };
        self.settings.signed.iter().map(piece).collect()
    }
}

/// What stands at a JSON pointer, if anything does.
fn member(body: &[u8], pointer: &str) -> Option<Value> {
    serde_json::from_slice::<Value>(body).ok()?.pointer_mut(pointer).map(Value::take)
}

/// A text or a number.
fn text_of(value: &Value) -> Option<String> {
    let number = || value.as_u64().map(|number| number.to_string());
    value.as_str().map(str::to_owned).or_else(number)
}
