//! A signature over parts of the request: what most senders do.

use std::borrow::Cow;
use std::time::Duration;

use memchr::memmem;

use super::header::{ENTRIES_MAX, entries, lines, signature};
use super::keys::{Keyring, Numbered};
use super::part::{Item, Part, TimestampSource, Value};
use super::request::Request;
use super::settings::{Detached, SignatureAt};
use super::verdict::{Place, Reason, Refused};
use super::{SecretError, Signed, division};

/// Checks what [`Detached`] describes.
#[derive(Debug)]
pub(super) struct Check {
    settings: Detached,
    keys: Keyring,
    tolerance: Option<Duration>,
}

/// The timestamp as it was written, and where.
#[derive(Debug, Clone)]
struct Stamp<'a> {
    text: Cow<'a, [u8]>,
    place: Place,
}

/// Signatures that belong to one timestamp.
#[derive(Debug, Default)]
struct Group<'a> {
    stamp: Option<&'a [u8]>,
    written: Vec<&'a [u8]>,
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

    pub(super) fn verify(&self, signed: &Signed<'_>) -> Result<usize, Refused> {
        let request = Request::new(signed, self.settings.document.as_deref())?;
        let values = self.values(&request)?;
        if self.settings.json_body {
            division::require_enclosed(signed.body)?;
        }
        let groups = self.groups(&values)?;
        let shared = self.shared_stamp(&request)?;
        for group in &groups {
            let signatures = self.decoded(group);
            let stamp = match group.stamp {
                Some(text) => Some(Stamp { text: text.into(), place: self.entry_place() }),
                None => shared.clone(),
            };
            let message = self.message(&request, stamp.as_ref())?;
            let message: Vec<&[u8]> = message.iter().map(|piece| &**piece).collect();
            if let Some(secret) = self.keys.find(&message, &signatures) {
                if let Some(Stamp { text, place }) = stamp {
                    let format = self.settings.timestamp_format;
                    format.check(&text, &place, signed, self.tolerance)?;
                }
                return Ok(secret);
            }
        }
        Err(Reason::Mismatch(self.place()).into())
    }

    fn place(&self) -> Place {
        self.settings.at.place()
    }

    fn entry_place(&self) -> Place {
        let prefix = match &self.settings.timestamp {
            Some(TimestampSource::Entry(prefix)) => prefix.clone(),
            Some(TimestampSource::Value(_)) | None => String::new(),
        };
        match self.place() {
            Place::Header(name) => Place::Entry(name, prefix),
            place @ (Place::Entry(..)
            | Place::Member(_)
            | Place::Field(_)
            | Place::Parameter(_)
            | Place::Url
            | Place::Path) => place,
        }
    }

    /// What stands where signatures do: each line of a header that may be repeated, else one value.
    fn values<'r>(&self, request: &'r Request<'_>) -> Result<Vec<Cow<'r, [u8]>>, Refused> {
        match &self.settings.at {
            SignatureAt::Headers(names) => {
                let headers = request.signed.headers;
                let mut values = Vec::new();
                for name in names {
                    if self.settings.repeated {
                        values.extend(lines(headers, name).into_iter().map(Cow::Borrowed));
                    } else {
                        match signature(headers, name) {
                            Ok(value) => values.push(Cow::Borrowed(value)),
                            Err(Refused::Missing(_) | Refused::Empty(_)) => {}
                            Err(refused) => return Err(refused),
                        }
                    }
                }
                let is_there = || names.iter().any(|name| headers.contains_key(name));
                let without = || Refused::without(self.place(), is_there());
                if values.is_empty() { Err(without()) } else { Ok(values) }
            }
            SignatureAt::Value(source) => match request.text(source) {
                Ok(Some(found)) => Ok(vec![found]),
                Ok(None) => Err(Refused::without(self.place(), request.has(source))),
                // A body of another kind is signed in another way, or not at all.
                Err(Reason::Body(_)) => Err(Refused::Missing(self.place())),
                Err(reason) => Err(reason.into()),
            },
        }
    }

    /// Signatures by their timestamp. Where secrets are rotated, some senders write the whole pair
    /// twice; a timestamp behind a signature then begins the next pair.
    fn groups<'v>(&self, values: &'v [Cow<'_, [u8]>]) -> Result<Vec<Group<'v>>, Reason> {
        let Detached { separators, prefix, timestamp, .. } = &self.settings;
        let mut groups = vec![Group::default()];
        let mut found = 0;
        for value in values {
            let list: Vec<&[u8]> = match separators.as_slice() {
                [] => vec![&**value],
                separators => {
                    entries(value, separators).filter(|entry| !entry.is_empty()).collect()
                }
            };
            for (index, entry) in list.into_iter().enumerate() {
                if let Some(TimestampSource::Entry(before)) = timestamp
                    && let Some(text) = stamp_of(before, index, entry)
                {
                    begin(&mut groups, text).map_err(|()| Reason::Repeated(self.entry_place()))?;
                } else if let Some(text) = prefix.strip(entry) {
                    found += 1;
                    if let Some(group) = groups.last_mut() {
                        group.written.push(text);
                    }
                }
            }
        }
        if found > ENTRIES_MAX {
            return Err(Reason::TooMany(self.place()));
        }
        if found == 0 {
            return Err(Reason::Prefix(self.place(), prefix.to_string()));
        }
        let with_entry = matches!(timestamp, Some(TimestampSource::Entry(_)));
        if with_entry && groups.iter().any(|group| group.stamp.is_none()) {
            return Err(Reason::Absent(self.entry_place()));
        }
        if groups.iter().all(|group| self.decoded(group).is_empty()) {
            return Err(Reason::Undecodable(self.place(), self.settings.encoding));
        }
        Ok(groups)
    }

    /// All that can be decoded. While a sender changes its secret or its scheme there are others.
    fn decoded(&self, group: &Group<'_>) -> Vec<Vec<u8>> {
        let decoded = group.written.iter().filter_map(|text| self.settings.encoding.decode(text));
        decoded.filter(|signature| !signature.is_empty()).collect()
    }

    /// The timestamp that stands beside the signatures.
    fn shared_stamp<'r>(&self, request: &'r Request<'_>) -> Result<Option<Stamp<'r>>, Reason> {
        let Some(TimestampSource::Value(source)) = &self.settings.timestamp else {
            return Ok(None);
        };
        // Part of a body that is signed, so it is of use only for its age.
        let is_aside = !self.settings.signs(&Part::Timestamp)
            && !self.settings.signs(&Part::Value(source.clone()));
        if is_aside && self.tolerance.is_none() {
            return Ok(None);
        }
        // Nothing can be taken out of a body that is signed: its sender wrote no time. What is
        // there and cannot be read is another thing.
        if is_aside && matches!(request.read(source)?, Value::Absent) {
            return Ok(None);
        }
        let text = request.required(source)?;
        Ok(Some(Stamp { text, place: source.place() }))
    }

    /// What was signed, piece by piece.
    fn message<'r>(
        &'r self,
        request: &'r Request<'_>,
        stamp: Option<&'r Stamp<'_>>,
    ) -> Result<Vec<Cow<'r, [u8]>>, Reason> {
        let mut message = Vec::new();
        let signed = &self.settings.signed;
        for (index, item) in signed.iter().enumerate() {
            let next = signed.get(index + 1).and_then(|next| next.parts().first());
            let behind = item.parts().iter().skip(1).map(Some).chain([next]);
            let pieces = item.parts().iter().zip(behind).map(|(part, behind)| {
                let piece = piece(part, request, stamp)?;
                require_end(part, &piece, behind)?;
                if self.settings.json_body {
                    division::require_apart(part, &piece, request.signed.target)?;
                }
                Ok(piece)
            });
            let pieces: Result<Vec<_>, Reason> = pieces.collect();
            match (item, pieces) {
                (_, Ok(pieces)) => message.extend(pieces),
                (Item::Together(_), Err(Reason::Absent(_))) => {}
                (_, Err(reason)) => return Err(reason),
            }
        }
        Ok(message)
    }
}

/// Refuses a value that holds the text behind it: with what follows moved into it, or out of it, it
/// would be another value under the same signature.
fn require_end(part: &Part, piece: &[u8], behind: Option<&Part>) -> Result<(), Reason> {
    let (Part::Value(source), Some(Part::Text(end))) = (part, behind) else {
        return Ok(());
    };
    match end.chars().next().filter(|_| memmem::find(piece, end.as_bytes()).is_some()) {
        Some(first) => Err(Reason::Ambiguous(source.place(), first)),
        None => Ok(()),
    }
}

fn piece<'r>(
    part: &'r Part,
    request: &'r Request<'_>,
    stamp: Option<&'r Stamp<'_>>,
) -> Result<Cow<'r, [u8]>, Reason> {
    let signed = &request.signed;
    Ok(match part {
        Part::Body => signed.body.into(),
        Part::Timestamp => stamp.map_or(&[][..], |stamp| &stamp.text).into(),
        Part::Url => signed.url().into_owned().into_bytes().into(),
        Part::Path => signed.target.as_bytes().into(),
        Part::Method => signed.method.as_str().as_bytes().into(),
        Part::Text(literal) => literal.as_bytes().into(),
        Part::Value(source) => request.required(source)?,
    })
}

/// The text of a timestamp, if an entry is one and no signature.
fn stamp_of<'v>(before: &str, index: usize, entry: &'v [u8]) -> Option<&'v [u8]> {
    if before.is_empty() {
        (index == 0).then_some(entry)
    } else {
        entry.strip_prefix(before.as_bytes())
    }
}

/// Gives a timestamp to the signatures that it belongs to. Two different ones for the same
/// signatures are an error.
fn begin<'v>(groups: &mut Vec<Group<'v>>, text: &'v [u8]) -> Result<(), ()> {
    let Some(group) = groups.last_mut() else {
        return Err(());
    };
    match group.stamp {
        None => group.stamp = Some(text),
        Some(stamp) if stamp == text => {}
        Some(_) if group.written.is_empty() => return Err(()),
        Some(_) => groups.push(Group { stamp: Some(text), written: Vec::new() }),
    }
    Ok(())
}
