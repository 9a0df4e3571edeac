//! A signature over parts of the request, in a header or another value: what most senders use.

use std::borrow::Cow;
use std::time::Duration;

use memchr::memmem;

use super::division;
use super::header::{entries, lines, signature};
use super::keys::{Keyring, NumberedSecret, SecretError};
use super::part::{Item, Part, TimestampSelector, Value};
use super::request::RequestReader;
use super::scheme::{Detached, SignatureAt};
use super::verdict::{InvalidReason, Location, SIGNATURES_MAX, SignatureError};
use crate::provider::ReceivedRequest;

/// Checks what [`Detached`] describes.
#[derive(Debug)]
pub(super) struct DetachedVerifier {
    settings: Detached,
    keys: Keyring,
    tolerance: Option<Duration>,
}

/// The text of a timestamp, and its location.
#[derive(Debug, Clone)]
struct TimestampText<'a> {
    text: Cow<'a, [u8]>,
    location: Location,
}

/// The signatures that belong to one timestamp.
#[derive(Debug, Default)]
struct SignatureGroup<'a> {
    timestamp: Option<&'a [u8]>,
    /// Still encoded.
    signatures: Vec<&'a [u8]>,
}

impl DetachedVerifier {
    pub(super) fn new(
        settings: &Detached,
        secrets: &[NumberedSecret<'_>],
        tolerance: Option<Duration>,
    ) -> Result<Self, SecretError> {
        let keys = Keyring::new(settings.algorithm, settings.secret, secrets)?;
        Ok(Self { settings: settings.clone(), keys, tolerance })
    }

    pub(super) fn verify(&self, received: &ReceivedRequest<'_>) -> Result<usize, SignatureError> {
        let request = RequestReader::new(received, self.settings.document.as_deref())?;
        let values = self.values(&request)?;
        if self.settings.json_body {
            division::require_enclosed(received.body)?;
        }
        let groups = self.groups(&values)?;
        let shared = self.shared_timestamp(&request)?;
        for group in &groups {
            let signatures = self.decoded(group);
            let timestamp = match group.timestamp {
                Some(text) => {
                    Some(TimestampText { text: text.into(), location: self.entry_location() })
                }
                None => shared.clone(),
            };
            let message = self.message(&request, timestamp.as_ref())?;
            let message: Vec<&[u8]> = message.iter().map(|piece| &**piece).collect();
            if let Some(secret) = self.keys.find(&message, &signatures) {
                if let Some(TimestampText { text, location }) = timestamp {
                    let format = self.settings.timestamp_format;
                    format.check(&text, &location, received, self.tolerance)?;
                }
                return Ok(secret);
            }
        }
        Err(InvalidReason::Mismatch(self.location()).into())
    }

    fn location(&self) -> Location {
        self.settings.at.location()
    }

    fn entry_location(&self) -> Location {
        let prefix = match &self.settings.timestamp {
            Some(TimestampSelector::Entry(prefix)) => prefix.clone(),
            Some(TimestampSelector::Value(_)) | None => String::new(),
        };
        match self.location() {
            Location::Header(name) => Location::Entry(name, prefix),
            location @ (Location::Entry(..)
            | Location::Member(_)
            | Location::Field(_)
            | Location::Parameter(_)
            | Location::Url
            | Location::Path) => location,
        }
    }

    /// The values that hold signatures: each line of a header that may be repeated, else one value.
    fn values<'r>(
        &self,
        request: &'r RequestReader<'_>,
    ) -> Result<Vec<Cow<'r, [u8]>>, SignatureError> {
        match &self.settings.at {
            SignatureAt::Headers(names) => {
                let headers = request.received.headers;
                let mut values = Vec::new();
                for name in names {
                    if self.settings.repeated {
                        values.extend(lines(headers, name).into_iter().map(Cow::Borrowed));
                    } else {
                        match signature(headers, name) {
                            Ok(value) => values.push(Cow::Borrowed(value)),
                            // DocuSign sends a numbered header for each active key, so some are
                            // absent.
                            Err(SignatureError::Missing(_) | SignatureError::Empty(_)) => {}
                            Err(error) => return Err(error),
                        }
                    }
                }
                let is_there = || names.iter().any(|name| headers.contains_key(name));
                let without = || SignatureError::without(self.location(), is_there());
                if values.is_empty() { Err(without()) } else { Ok(values) }
            }
            SignatureAt::Value(selector) => match request.text(selector) {
                Ok(Some(found)) => Ok(vec![found]),
                Ok(None) => Err(SignatureError::without(self.location(), request.has(selector))),
                // A body of another kind belongs to another signing method.
                Err(InvalidReason::Body(_)) => Err(SignatureError::Missing(self.location())),
                Err(reason) => Err(reason.into()),
            },
        }
    }

    /// The signatures, grouped by their timestamp. While a secret is rotated, some senders
    /// (Persona) write timestamp and signature twice: a timestamp after a signature begins the next
    /// group.
    fn groups<'v>(
        &self,
        values: &'v [Cow<'_, [u8]>],
    ) -> Result<Vec<SignatureGroup<'v>>, InvalidReason> {
        let Detached { separators, prefix, timestamp, .. } = &self.settings;
        let mut groups = vec![SignatureGroup::default()];
        let mut found = 0;
        for value in values {
            let list: Vec<&[u8]> = match separators.as_slice() {
                [] => vec![&**value],
                separators => {
                    entries(value, separators).filter(|entry| !entry.is_empty()).collect()
                }
            };
            for (index, entry) in list.into_iter().enumerate() {
                if let Some(TimestampSelector::Entry(before)) = timestamp
                    && let Some(text) = timestamp_of(before, index, entry)
                {
                    begin(&mut groups, text)
                        .map_err(|()| InvalidReason::Repeated(self.entry_location()))?;
                } else if let Some(text) = prefix.strip(entry) {
                    found += 1;
                    if let Some(group) = groups.last_mut() {
                        group.signatures.push(text);
                    }
                }
            }
        }
        // Counted before any is decoded: each one costs as many computations as there are keys.
        if found > SIGNATURES_MAX {
            return Err(InvalidReason::TooMany(self.location()));
        }
        if found == 0 {
            return Err(InvalidReason::Prefix(self.location(), prefix.to_string()));
        }
        let with_entry = matches!(timestamp, Some(TimestampSelector::Entry(_)));
        if with_entry && groups.iter().any(|group| group.timestamp.is_none()) {
            return Err(InvalidReason::Absent(self.entry_location()));
        }
        if groups.iter().all(|group| self.decoded(group).is_empty()) {
            return Err(InvalidReason::Undecodable(self.location(), self.settings.encoding));
        }
        Ok(groups)
    }

    /// The signatures of a group that can be decoded. Others are skipped: while a sender changes
    /// its scheme, it writes signatures in two encodings.
    fn decoded(&self, group: &SignatureGroup<'_>) -> Vec<Vec<u8>> {
        let decoded =
            group.signatures.iter().filter_map(|text| self.settings.encoding.decode(text));
        decoded.filter(|signature| !signature.is_empty()).collect()
    }

    /// The timestamp that stands beside the signatures, and belongs to all of them.
    fn shared_timestamp<'r>(
        &self,
        request: &'r RequestReader<'_>,
    ) -> Result<Option<TimestampText<'r>>, InvalidReason> {
        let Some(TimestampSelector::Value(selector)) = &self.settings.timestamp else {
            return Ok(None);
        };
        // A member or field of a signed body: it is not signed once more, and is read only to be
        // compared with the time of day.
        let is_aside = !self.settings.signs(&Part::Timestamp)
            && !self.settings.signs(&Part::Value(selector.clone()));
        if is_aside && self.tolerance.is_none() {
            return Ok(None);
        }
        // Nobody can take a member out of a signed body, so the sender itself wrote no time, and
        // the request passes. A time that is present and cannot be read is refused below: an old
        // request would pass otherwise.
        if is_aside && matches!(request.read(selector)?, Value::Absent) {
            return Ok(None);
        }
        let text = request.required(selector)?;
        Ok(Some(TimestampText { text, location: selector.location() }))
    }

    /// The signed text, in pieces.
    fn message<'r>(
        &'r self,
        request: &'r RequestReader<'_>,
        timestamp: Option<&'r TimestampText<'_>>,
    ) -> Result<Vec<Cow<'r, [u8]>>, InvalidReason> {
        let mut message = Vec::new();
        let signed = &self.settings.signed;
        for (index, item) in signed.iter().enumerate() {
            let next = signed.get(index + 1).and_then(|next| next.parts().first());
            let behind = item.parts().iter().skip(1).map(Some).chain([next]);
            let pieces = item.parts().iter().zip(behind).map(|(part, behind)| {
                let piece = piece(part, request, timestamp)?;
                require_end(part, &piece, behind)?;
                if self.settings.json_body {
                    division::require_apart(part, &piece, request.received.target)?;
                }
                Ok(piece)
            });
            let pieces: Result<Vec<_>, InvalidReason> = pieces.collect();
            match (item, pieces) {
                // Mercado Pago leaves out what a request does not have, together with its label.
                (_, Ok(pieces)) => message.extend(pieces),
                (Item::Together(_), Err(InvalidReason::Absent(_))) => {}
                (_, Err(reason)) => return Err(reason),
            }
        }
        Ok(message)
    }
}

/// Refuses a value that contains the literal text that follows it in the signed text. Where the
/// value ends would be open, and another value would fit the same signature.
fn require_end(part: &Part, piece: &[u8], behind: Option<&Part>) -> Result<(), InvalidReason> {
    let (Part::Value(selector), Some(Part::Text(end))) = (part, behind) else {
        return Ok(());
    };
    match end.chars().next().filter(|_| memmem::find(piece, end.as_bytes()).is_some()) {
        Some(first) => Err(InvalidReason::Ambiguous(selector.location(), first)),
        None => Ok(()),
    }
}

/// The bytes of one part.
fn piece<'r>(
    part: &'r Part,
    request: &'r RequestReader<'_>,
    timestamp: Option<&'r TimestampText<'_>>,
) -> Result<Cow<'r, [u8]>, InvalidReason> {
    let received = &request.received;
    Ok(match part {
        Part::Body => received.body.into(),
        Part::Timestamp => timestamp.map_or(&[][..], |timestamp| &timestamp.text).into(),
        Part::Url => received.url().into_owned().into_bytes().into(),
        Part::Path => received.target.as_bytes().into(),
        Part::Method => received.method.as_str().as_bytes().into(),
        Part::Text(literal) => literal.as_bytes().into(),
        Part::Value(selector) => request.required(selector)?,
    })
}

/// The text of a timestamp, if an entry of a list is a timestamp and no signature.
fn timestamp_of<'v>(before: &str, index: usize, entry: &'v [u8]) -> Option<&'v [u8]> {
    if before.is_empty() {
        (index == 0).then_some(entry)
    } else {
        entry.strip_prefix(before.as_bytes())
    }
}

/// Begins the group of a timestamp. The error is two different timestamps before one signature:
/// nobody could say which of them is signed.
fn begin<'v>(groups: &mut Vec<SignatureGroup<'v>>, text: &'v [u8]) -> Result<(), ()> {
    let Some(group) = groups.last_mut() else {
        return Err(());
    };
    match group.timestamp {
        None => group.timestamp = Some(text),
        Some(timestamp) if timestamp == text => {}
        Some(_) if group.signatures.is_empty() => return Err(()),
        Some(_) => groups.push(SignatureGroup { timestamp: Some(text), signatures: Vec::new() }),
    }
    Ok(())
}
