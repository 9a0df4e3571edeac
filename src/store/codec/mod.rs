//! Encodes an operation as the bytes of a record: a version, a checksum, the content.
//!
//! ```text
//! byte 0      version of the content
//! bytes 1..5  CRC-32 of bytes 5.., big-endian
//! bytes 5..   content: an `Operation` in postcard, in the shape that the version had
//! ```
//!
//! Every version that was ever written stays readable. A store may remember an operation for
//! months, and a program that could not read the record would have to refuse the event.

mod v1;
mod v2;

use postcard::ser_flavors::Flavor;
use serde::de::DeserializeOwned;

use crate::operation::Operation;

/// The version of the records that this program writes.
const VERSION: u8 = 3;
/// Most records have no more bytes.
const USUAL: usize = 512;
/// The number of bytes before the content. They hold the version and the checksum.
const HEAD: usize = 5;

/// Why a record cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum Corrupt {
    /// The record is shorter than its head.
    #[error("the record is cut off")]
    CutOff,
    /// A newer version of this program wrote the record, or the record's first byte is damaged.
    #[error("the record has version {0}, which this program does not know")]
    UnknownVersion(u8),
    /// The bytes have changed since they were written.
    #[error("the record's checksum does not match")]
    Checksum,
    /// The place of the record holds something else, such as the record of another operation.
    #[error("the place of the record holds something else")]
    Foreign,
    /// The checksum is right, but the content is not an operation.
    #[error("the record's content does not parse")]
    Content(#[source] postcard::Error),
}

/// Encodes an operation in the current version.
///
/// # Errors
/// [`Corrupt::Content`] if the operation cannot be written in this form.
pub fn encode(operation: &Operation) -> Result<Vec<u8>, Corrupt> {
    let mut bytes = Vec::with_capacity(USUAL);
    bytes.extend_from_slice(&[VERSION, 0, 0, 0, 0]);
    let mut bytes =
        postcard::serialize_with_flavor(operation, Appended(bytes)).map_err(Corrupt::Content)?;
    let checksum = crc32fast::hash(bytes.get(HEAD..).unwrap_or_default()).to_be_bytes();
    if let Some(place) = bytes.get_mut(1..HEAD) {
        place.copy_from_slice(&checksum);
    }
    Ok(bytes)
}

/// Appends what is serialized, a slice at a time. `postcard::to_extend` does so byte by byte.
struct Appended(Vec<u8>);

impl Flavor for Appended {
    type Output = Vec<u8>;

    fn try_extend(&mut self, bytes: &[u8]) -> postcard::Result<()> {
        self.0.extend_from_slice(bytes);
        Ok(())
    }

    fn try_push(&mut self, byte: u8) -> postcard::Result<()> {
        self.0.push(byte);
        Ok(())
    }

    fn finalize(self) -> postcard::Result<Vec<u8>> {
        Ok(self.0)
    }
}

/// Decodes a record of any version.
///
/// # Errors
/// Why the bytes are no record of an operation.
pub fn decode(bytes: &[u8]) -> Result<Operation, Corrupt> {
    let (head, record) = bytes.split_at_checked(HEAD).ok_or(Corrupt::CutOff)?;
    let [version, checksum @ ..] = head else {
        return Err(Corrupt::CutOff);
    };
    let read: fn(&[u8]) -> Result<Operation, postcard::Error> = match *version {
        1 => |record| parse::<v1::Operation>(record).map(Into::into),
        2 => |record| parse::<v2::Operation>(record).map(Into::into),
        VERSION => parse::<Operation>,
        unknown => return Err(Corrupt::UnknownVersion(unknown)),
    };
    // The version is checked first, because another version might have another checksum.
    if *checksum != crc32fast::hash(record).to_be_bytes() {
        return Err(Corrupt::Checksum);
    }
    read(record).map_err(Corrupt::Content)
}

/// Parses the whole content. If bytes are left over, this program did not write the content.
fn parse<T: DeserializeOwned>(record: &[u8]) -> Result<T, postcard::Error> {
    match postcard::take_from_bytes(record)? {
        (parsed, []) => Ok(parsed),
        (_, [..]) => Err(postcard::Error::DeserializeBadEncoding),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::operation::state::{
        ClaimRequest, Ending, Forgetting, LookupLease, Rule as _, Settlement, State,
    };
    use crate::operation::{
        AnswerBody, Attempt, ClaimId, Outcome, Reason, RequestMode, Step, StepHold, StepState,
        StoredAnswer, Timestamp,
    };

    fn in_flight() -> Operation {
        ClaimRequest::example().apply(None, Timestamp(1_000)).operation.unwrap()
    }

    fn settled(outcome: Outcome) -> Operation {
        let server = http::HeaderValue::from_bytes(b"caf\xe9").unwrap();
        let answer = StoredAnswer {
            status: http::StatusCode::CREATED,
            headers: vec![(http::header::SERVER, server)],
            body: AnswerBody::Kept("ok".into()),
        };
        let reference = None;
        let ending = match outcome {
            Outcome::Succeeded => Ending::Succeeded { answer: answer.into(), reference },
            Outcome::Failed => Ending::Failed { status: answer.status, reference },
            Outcome::Uncertain => Ending::Uncertain { answer: answer.into(), reference },
        };
        let ClaimRequest { subject, claim_id, holder, durations, .. } = ClaimRequest::example();
        let end = Settlement { subject, claim_id, attempt: 1, holder, durations, ending };
        end.apply(Some(in_flight()), Timestamp(2_000)).operation.unwrap()
    }

    fn succeeded() -> Operation {
        settled(Outcome::Succeeded)
    }

    fn forgotten() -> Operation {
        let succeeded = succeeded();
        let operation = succeeded.subject.id;
        let forgetting = Forgetting { operation, by: "ops".to_owned(), reason: "again".to_owned() };
        forgetting.apply(Some(succeeded), Timestamp(3_000)).operation.unwrap()
    }

    /// Every version that was ever written stays readable. Lines may be added here, but none may
    /// change.
    fn version_1() -> [(Operation, &'static str); 5] {
        [
            (
                in_flight(),
                "0178328c7201010101010101010101010101010101066f726465727304504f5354022f6f0001\
                 016b230d8358dc8e8890e3b0c44298fc1c149afbf4c8996fb924e80700020202020202020202\
                 020202020202020468657265807dc8dc03809a9e010000010102020202020202020202020202\
                 0202020468657265e807000100000000010100",
            ),
            (
                settled(Outcome::Uncertain),
                "01b11c2a4c01010101010101010101010101010101066f726465727304504f5354022f6f0001\
                 016b230d8358dc8e8890e3b0c44298fc1c149afbf4c8996fb924e80701020202020202020202\
                 0202020202020200d00fc8dc03809a9e0100d09ffbd3090001c9010106736572766572046361\
                 66e900026f6b0101020202020202020202020202020202020468657265e80701d00f01010201\
                 0001c90100010101d00f0e7768656e5f756e6365727461696e0008616e73776572656400",
            ),
            (
                succeeded(),
                "010421514301010101010101010101010101010101066f726465727304504f5354022f6f0001\
                 016b230d8358dc8e8890e3b0c44298fc1c149afbf4c8996fb924e80702010202020202020202\
                 0202020202020202d00fd0c79929c901010673657276657204636166e900026f6b0101020202\
                 020202020202020202020202020468657265e80701d00f010100010001c90100010100",
            ),
            (
                settled(Outcome::Failed),
                "0197aa7bca01010101010101010101010101010101066f726465727304504f5354022f6f0001\
                 016b230d8358dc8e8890e3b0c44298fc1c149afbf4c8996fb924e80703010202020202020202\
                 0202020202020202d00fd0c799290101020202020202020202020202020202020468657265e8\
                 0701d00f010101010001c90100010100",
            ),
            (
                forgotten(),
                "011d2c89e301010101010101010101010101010101066f726465727304504f5354022f6f0001\
                 016b230d8358dc8e8890e3b0c44298fc1c149afbf4c8996fb924e80704d0c799290101020202\
                 020202020202020202020202020468657265e80701d00f010100010001c90100010101b81703\
                 6f70730305616761696e00",
            ),
        ]
    }

    /// An operation with everything that version 2 added to version 1.
    fn looked_up() -> Operation {
        let mut operation = settled(Outcome::Uncertain);
        let line = operation.attempts.of(ClaimId::from_random([2; 16]), None).unwrap();
        line.step = Some("mail".into());
        line.forward_key = Some("x-dedup".into());
        line.reference = Some("pay_1".to_owned());
        let State::Uncertain(hold) = &mut operation.state else { panic!() };
        let id = ClaimId::from_random([3; 16]);
        let until = Timestamp(9_000);
        hold.lookup = Some(LookupLease { id, until, step: Some("mail".into()) });
        let claim_id = ClaimId::from_random([2; 16]);
        let ends_at = Timestamp(61_000);
        let answer = Arc::new(StoredAnswer::empty(http::StatusCode::OK));
        let reason = Reason::TimedOut;
        let since = Timestamp(2_000);
        let hold = StepHold { claim_id, reason, since, ends_at, answer: None };
        let states = [
            StepState::Waiting,
            StepState::InFlight { claim_id, ends_at },
            StepState::Uncertain(hold),
            StepState::Succeeded { claim_id: Some(claim_id), answer },
            StepState::Failed { claim_id: None },
        ];
        let named = |(number, state)| Step { name: format!("s{number}").into(), state };
        operation.steps = (1..).zip(states).map(named).collect();
        operation
    }

    fn version_2() -> [(Operation, &'static str); 2] {
        [
            (
                succeeded(),
                "02b705eae501010101010101010101010101010101066f726465727304504f5354022f6f0001\
                 016b230d8358dc8e8890e3b0c44298fc1c149afbf4c8996fb924e80702010202020202020202\
                 0202020202020202d00fd0c79929c901010673657276657204636166e900026f6b0101020202\
                 0202020202020202020202020204686572650000e80701d00f010100010001c9010000010100\
                 00",
            ),
            (
                looked_up(),
                "0265f5233a01010101010101010101010101010101066f726465727304504f5354022f6f0001\
                 016b230d8358dc8e8890e3b0c44298fc1c149afbf4c8996fb924e80701020202020202020202\
                 0202020202020200d00fc8dc03809a9e0100d09ffbd3090001c9010106736572766572046361\
                 66e900026f6b0103030303030303030303030303030303a84601046d61696c01010202020202\
                 0202020202020202020202046865726501046d61696c0107782d6465647570e80701d00f0101\
                 02010001c90101057061795f3100010101d00f0e7768656e5f756e6365727461696e0008616e\
                 7377657265640005027331000273320102020202020202020202020202020202c8dc03027333\
                 020202020202020202020202020202020208d00fc8dc03000273340301020202020202020202\
                 02020202020202c8010000000273350400",
            ),
        ]
    }

    /// An operation with dropped attempts, which version 3 counts and version 2 did not.
    fn tried_often() -> Operation {
        let mut operation = settled(Outcome::Failed);
        let line = operation.attempts.kept().next().unwrap().clone();
        for number in 2..=66 {
            let outcome = Some(Outcome::Uncertain);
            operation.attempts.push(Attempt { number, outcome, ..line.clone() });
        }
        operation
    }

    /// A success on a route that only observes.
    fn observed() -> Operation {
        let mut operation = succeeded();
        Arc::make_mut(&mut operation.subject).mode = RequestMode::Observe { genuine: true };
        operation
    }

    fn version_3() -> [(Operation, &'static str); 3] {
        [
            (
                succeeded(),
                "032d5032b101010101010101010101010101010101066f726465727304504f5354022f6f0001\
                 016b230d8358dc8e8890e3b0c44298fc1c149afbf4c8996fb92400e807020102020202020202\
                 020202020202020202d00fd0c79929c901010673657276657204636166e900026f6b01010202\
                 020202020202020202020202020204686572650000e80701d00f010100010001c90100000101\
                 000000",
            ),
            (
                looked_up(),
                "03a160c15401010101010101010101010101010101066f726465727304504f5354022f6f0001\
                 016b230d8358dc8e8890e3b0c44298fc1c149afbf4c8996fb92400e807010202020202020202\
                 020202020202020200d00fc8dc03809a9e0100d09ffbd3090001c90101067365727665720463\
                 6166e900026f6b0103030303030303030303030303030303a84601046d61696c010102020202\
                 020202020202020202020202046865726501046d61696c0107782d6465647570e80701d00f01\
                 0102010001c90101057061795f310001010001d00f0e7768656e5f756e6365727461696e0008\
                 616e7377657265640005027331000273320102020202020202020202020202020202c8dc0302\
                 7333020202020202020202020202020202020208d00fc8dc0300027334030102020202020202\
                 020202020202020202c8010000000273350400",
            ),
            (
                observed(),
                "03b155ef8a01010101010101010101010101010101066f726465727304504f5354022f6f0001\
                 016b230d8358dc8e8890e3b0c44298fc1c149afbf4c8996fb9240101e8070201020202020202\
                 02020202020202020202d00fd0c79929c901010673657276657204636166e900026f6b010102\
                 02020202020202020202020202020204686572650000e80701d00f010100010001c901000001\
                 01000000",
            ),
        ]
    }

    #[test]
    fn the_bytes_of_a_record_are_those_of_version_3() {
        for (operation, bytes) in version_3() {
            assert_eq!(hex::encode(encode(&operation).unwrap()), bytes);
        }
        let bytes = hex::encode(encode(&tried_often()).unwrap());
        assert!(bytes.ends_with("42420100020000"), "{bytes}");
    }

    #[test]
    fn a_record_of_version_3_is_read() {
        for (operation, bytes) in version_3() {
            assert_eq!(decode(&hex::decode(bytes).unwrap()).unwrap(), operation);
        }
        let bytes = encode(&tried_often()).unwrap();
        assert_eq!(decode(&bytes).unwrap(), tried_often());
    }

    #[test]
    fn a_record_of_version_2_is_read() {
        for (operation, bytes) in version_2() {
            assert_eq!(decode(&hex::decode(bytes).unwrap()).unwrap(), operation);
        }
    }

    #[test]
    fn a_record_of_version_1_is_read() {
        for (operation, bytes) in version_1() {
            assert_eq!(decode(&hex::decode(bytes).unwrap()).unwrap(), operation);
        }
    }

    #[test]
    fn a_record_with_any_bit_changed_is_corrupt() {
        let bytes = encode(&succeeded()).unwrap();
        for at in 0..bytes.len() * 8 {
            let mut damaged = bytes.clone();
            damaged[at / 8] ^= 1 << (at % 8);
            assert!(decode(&damaged).is_err(), "bit {at}");
        }
    }

    #[test]
    fn a_record_of_any_other_length_is_corrupt() {
        let mut bytes = encode(&succeeded()).unwrap();
        for length in 0..bytes.len() {
            assert!(decode(&bytes[..length]).is_err(), "{length} bytes");
        }
        bytes.push(0);
        assert!(decode(&bytes).is_err());
    }

    #[test]
    fn what_is_wrong_with_a_record_is_told_apart() {
        let with_checksum = |record: &[u8]| {
            let checksum = crc32fast::hash(record).to_be_bytes();
            [&[VERSION], checksum.as_slice(), record].concat()
        };
        assert!(matches!(decode(b"1234"), Err(Corrupt::CutOff)));
        assert!(matches!(decode(b"\x04xxxx"), Err(Corrupt::UnknownVersion(4))));
        assert!(matches!(decode(b"\x01xxxxy"), Err(Corrupt::Checksum)));
        assert!(matches!(decode(&with_checksum(b"")), Err(Corrupt::Content(_))));
        let mut longer = postcard::to_allocvec(&succeeded()).unwrap();
        longer.push(0);
        assert!(matches!(decode(&with_checksum(&longer)), Err(Corrupt::Content(_))));
    }
}
