//! Keeps the journal's marks and long runs of zeros out of records, by byte stuffing.
//!
//! A record holds the body of an answer, which may have any bytes. But a mark in a journal ends a
//! group, and a run of zeros there is a sector that was never written. By these two signs `journal`
//! decides what may be dropped, so a body must not look like one of them. Therefore a record with
//! [`ZEROS_MAX`] zeros in a row, or with a mark of the journal, is kept with extra bytes stuffed
//! in:
//!
//! ```text
//! byte 0  0xff, which is no version of a record
//! rest    the record, with 0xff after every 64 zeros in a row and after every `FJL`
//! ```

use std::borrow::Cow;

use memchr::memmem;

use crate::store::codec::Corrupt;

/// The most zeros in a row that a kept record has.
pub(super) const ZEROS_MAX: usize = 64;
const STUFFED: u8 = 0xff;
/// The mark of the journal.
const END_MARK: &[u8] = b"FJL\x03";
/// The beginning of every mark.
const MARK: &[u8] = b"FJL";

/// Stuffs a record, if it needs stuffing.
pub(super) fn stuff(record: Vec<u8>) -> Vec<u8> {
    // So many zeros in a row have a whole piece of half as many. To look for pieces is faster.
    let mut pieces = record.chunks_exact(ZEROS_MAX / 2);
    let is_plain = pieces.all(|piece| piece.iter().any(|byte| *byte != 0));
    if is_plain || memmem::find(&record, &[0; ZEROS_MAX]).is_none() {
        return record;
    }
    let mut kept = Vec::with_capacity(record.len() + 16);
    let mut run = Run::default();
    kept.push(STUFFED);
    for byte in record {
        kept.push(byte);
        if run.is_full(byte) {
            kept.push(STUFFED);
        }
    }
    kept
}

/// Undoes [`stuff`].
pub(super) fn unstuff(kept: &[u8]) -> Result<Cow<'_, [u8]>, Corrupt> {
    let Some((&STUFFED, stuffed)) = kept.split_first() else {
        return Ok(Cow::Borrowed(kept));
    };
    let mut record = Vec::with_capacity(stuffed.len());
    let mut run = Run::default();
    let mut bytes = stuffed.iter();
    while let Some(byte) = bytes.next() {
        record.push(*byte);
        if run.is_full(*byte) && bytes.next() != Some(&STUFFED) {
            return Err(Corrupt::Foreign);
        }
    }
    Ok(Cow::Owned(record))
}

/// The length of the current run of zeros, and of the current part of a mark.
#[derive(Default)]
struct Run {
    zeros: usize,
    mark: usize,
}

impl Run {
    /// Whether a byte must be stuffed in after this one.
    fn is_full(&mut self, byte: u8) -> bool {
        self.zeros = if byte == 0 { self.zeros + 1 } else { 0 };
        self.mark = match MARK.get(self.mark) {
            Some(next) if *next == byte => self.mark + 1,
            Some(_) | None => usize::from(MARK.first() == Some(&byte)),
        };
        let is_full = self.zeros == ZEROS_MAX || self.mark == MARK.len();
        if is_full {
            *self = Self::default();
        }
        is_full
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn is_kept_without_zeros(record: &[u8]) {
        let kept = stuff(record.to_vec());
        assert_eq!(*unstuff(&kept).unwrap(), *record);
        let longest = kept.split(|byte| *byte != 0).map(<[u8]>::len).max();
        assert!(longest.unwrap_or(0) <= ZEROS_MAX, "{longest:?}");
        assert!(memmem::find(&kept, END_MARK).is_none() && !kept.ends_with(MARK));
    }

    #[test]
    fn no_record_is_kept_with_a_mark_or_many_zeros() {
        for zeros in [0, 63, 64, 65, 127, 128, 129, 5000] {
            for around in [&b""[..], b"x", b"FJL", b"FJL\x03", b"FFJL\x03FJLFJL\x03\xff"] {
                is_kept_without_zeros(&[&[2], around, &vec![0; zeros], around].concat());
            }
        }
    }

    #[test]
    fn a_record_that_has_nothing_of_that_is_kept_as_it_is() {
        let plain = [&[2, 0, 0, 0][..], b"FJ", &[0; 63], b"FJ"].concat();
        assert_eq!(stuff(plain.clone()), plain);
    }

    #[test]
    fn what_is_stuffed_wrongly_is_corrupt() {
        let zeros = [&[STUFFED][..], &[0; 64], &[1]].concat();
        assert!(unstuff(&zeros).is_err() && unstuff(&zeros[..65]).is_err());
        assert!(unstuff(b"\xffFJL\x03").is_err());
    }

    proptest! {
        #[test]
        fn whatever_is_kept_reads_back(
            parts in prop::collection::vec(
                prop_oneof![
                    Just(vec![0; 64]), Just(vec![0; 17]), Just(b"FJL".to_vec()),
                    Just(b"\x03".to_vec()), Just(b"F".to_vec()), Just(b"\xff".to_vec()),
                    prop::collection::vec(any::<u8>(), 0..9),
                ],
                0..40,
            ),
        ) {
            is_kept_without_zeros(&[vec![vec![2]], parts].concat().concat());
        }
    }
}
