//! What arrives on an HTTP/2 connection, frame by frame.
//!
//! h2 gets whole frames, a head when all of it has come, and one head at a time. So a peer that goes
//! away in the middle of something leaves nothing half done, and what is in memory of a head is
//! known to the byte. A head may come in as many frames as its sender likes: h2 would end a
//! connection on which it comes in more CONTINUATION frames than full ones would take.

use std::collections::BTreeSet;

use bytes::{Buf as _, BytesMut};
use tokio::io::ReadBuf;

use super::frames::{
    CANCEL, CONTINUATION, DATA, END_HEADERS, FrameHead, GOAWAY, HEADER, HEADERS, PAYLOAD_MAX,
    RST_STREAM, begin,
};

/// The frames of one connection on their way to h2.
#[derive(Debug)]
pub(super) struct Arriving {
    /// The most that is taken of one head.
    head_bytes_max: usize,
    /// What was read and not looked at, mostly a frame whose end has not come.
    unread: BytesMut,
    /// A head whose end has not come.
    head: Option<PartialHead>,
    /// What h2 reads next.
    ready: BytesMut,
    /// h2 has got a head and has not handed it over yet.
    head_given: bool,
    /// The streams of requests whose head h2 has, and whose end has not come. h2 resets those that
    /// are too many.
    incomplete: BTreeSet<u32>,
    over: Option<Over>,
    goodbye_provoked: bool,
}

/// Why nothing more is taken from a connection that is open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Over {
    /// Its peer has given it up: it must close after a GOAWAY with an error (RFC 9113, section 5.4.1).
    GivenUp,
    /// More has come of a head than is taken. Without it no later one can be decoded.
    HeadTooLong,
    /// What comes is not HTTP/2.
    Broken,
}

#[derive(Debug)]
struct PartialHead {
    begins: FrameHead,
    /// Its HEADERS frame, as it came.
    first: BytesMut,
    /// What is in its CONTINUATION frames.
    rest: BytesMut,
    /// How much of it has come. An empty frame counts as one byte.
    length: usize,
}

impl PartialHead {
    fn begin(begins: FrameHead, first: BytesMut) -> Self {
        Self { begins, first, rest: BytesMut::new(), length: begins.length }
    }

    /// Writes it in as few frames as it takes.
    fn write(mut self, frames: &mut BytesMut) {
        frames.extend_from_slice(&self.first);
        loop {
            let piece = self.rest.split_to(self.rest.len().min(PAYLOAD_MAX));
            let flags = if self.rest.is_empty() { END_HEADERS } else { 0 };
            let begins =
                FrameHead { length: piece.len(), kind: CONTINUATION, flags, ..self.begins };
            begin(frames, begins);
            frames.extend_from_slice(&piece);
            if self.rest.is_empty() {
                return;
            }
        }
    }
}

impl Arriving {
    /// Of a connection that has said nothing behind its preface. So much is taken of one head.
    pub(super) fn new(head_bytes_max: usize) -> Self {
        Self {
            head_bytes_max,
            unread: BytesMut::new(),
            head: None,
            ready: BytesMut::new(),
            head_given: false,
            incomplete: BTreeSet::new(),
            over: None,
            goodbye_provoked: false,
        }
    }

    /// Takes what was read.
    pub(super) fn take(&mut self, bytes: &[u8]) {
        self.unread.extend_from_slice(bytes);
    }

    /// Gives h2 what it reads next, if there is anything.
    pub(super) fn give(&mut self, buffer: &mut ReadBuf<'_>) -> bool {
        while !self.head_given
            && self.over.is_none()
            && let Some(begins) = self.next_frame()
        {
            let frame = self.unread.split_to(HEADER + begins.length);
            self.sort(begins, frame);
        }
        if self.unread.is_empty() {
            self.unread = BytesMut::new();
        }
        let length = self.ready.len().min(buffer.remaining());
        buffer.put_slice(&self.ready.split_to(length));
        if self.ready.is_empty() {
            self.ready = BytesMut::new();
        }
        length > 0
    }

    /// Whether h2 has got a head since this was asked last.
    pub(super) const fn take_head_given(&mut self) -> bool {
        std::mem::replace(&mut self.head_given, false)
    }

    /// Why nothing more is taken, if so.
    pub(super) const fn over(&self) -> Option<Over> {
        self.over
    }

    /// Whether a frame or a head has begun and not ended: a peer that stays there makes everybody
    /// behind it wait.
    pub(super) fn is_within(&self) -> bool {
        !self.unread.is_empty() || self.head.is_some()
    }

    /// What is in memory of what has not come to its end.
    pub(super) fn held_bytes(&self) -> usize {
        let head = self.head.as_ref().map_or(0, |head| head.first.len() + head.rest.len());
        self.unread.len() + head
    }

    /// h2 has reset this stream.
    pub(super) fn forget(&mut self, stream: u32) {
        self.incomplete.remove(&stream);
    }

    /// Nothing more will come. So nobody waits for the rest of what is incomplete: h2 hears that the
    /// peer has cancelled it. Says whether there was any.
    pub(super) fn cancel_incomplete(&mut self) -> bool {
        self.head = None;
        self.unread = BytesMut::new();
        for &stream in &self.incomplete {
            begin(&mut self.ready, FrameHead { length: 4, kind: RST_STREAM, flags: 0, stream });
            self.ready.extend_from_slice(&CANCEL.to_be_bytes());
        }
        !std::mem::take(&mut self.incomplete).is_empty()
    }

    /// Has h2 say goodbye if the peer is to hear that it did something wrong: a frame of this size is
    /// refused. Says whether there is something for h2 to read, which is so once.
    pub(super) fn provoke_goodbye(&mut self) -> bool {
        let provokes =
            !self.goodbye_provoked && matches!(self.over, Some(Over::HeadTooLong | Over::Broken));
        if provokes {
            self.goodbye_provoked = true;
            let length = PAYLOAD_MAX + 1;
            begin(&mut self.ready, FrameHead { length, kind: HEADERS, flags: 0, stream: 1 });
        }
        provokes
    }

    /// The next frame, if all of it is here.
    fn next_frame(&mut self) -> Option<FrameHead> {
        let begins = FrameHead::of(*self.unread.first_chunk()?);
        if begins.length > PAYLOAD_MAX {
            self.over = Some(Over::Broken);
            return None;
        }
        (self.unread.remaining() >= HEADER + begins.length).then_some(begins)
    }

    fn sort(&mut self, begins: FrameHead, frame: BytesMut) {
        match self.head.take() {
            Some(head) => self.go_on(head, begins, &frame),
            None if begins.kind == HEADERS && !begins.ends_head() => {
                self.head = Some(PartialHead::begin(begins, frame));
            }
            None => self.pass(begins, &frame),
        }
    }

    /// Nothing may stand between the frames of one head (RFC 9113, section 6.10).
    fn go_on(&mut self, mut head: PartialHead, begins: FrameHead, frame: &[u8]) {
        if begins.kind != CONTINUATION || begins.stream != head.begins.stream {
            self.over = Some(Over::Broken);
            return;
        }
        head.length = head.length.saturating_add(begins.length.max(1));
        if head.length > self.head_bytes_max {
            self.over = Some(Over::HeadTooLong);
            return;
        }
        head.rest.extend_from_slice(frame.get(HEADER..).unwrap_or_default());
        if begins.ends_head() {
            self.note_head(head.begins);
            head.write(&mut self.ready);
        } else {
            self.head = Some(head);
        }
    }

    fn pass(&mut self, begins: FrameHead, frame: &[u8]) {
        match begins.kind {
            HEADERS => self.note_head(begins),
            DATA if begins.ends_stream() => self.forget(begins.stream),
            RST_STREAM => self.forget(begins.stream),
            // A frame of this kind goes on with a head.
            CONTINUATION => self.over = Some(Over::Broken),
            GOAWAY if has_error(frame) => self.over = Some(Over::GivenUp),
            _ => {}
        }
        if self.over.is_none() {
            self.ready.extend_from_slice(frame);
        }
    }

    fn note_head(&mut self, begins: FrameHead) {
        self.head_given = true;
        if begins.ends_stream() {
            self.forget(begins.stream);
        } else {
            self.incomplete.insert(begins.stream);
        }
    }
}

/// Whether a GOAWAY frame names an error, behind the last stream.
fn has_error(frame: &[u8]) -> bool {
    let code = frame.get(HEADER + 4..HEADER + 8);
    code.is_some_and(|code| code != [0; 4])
}

#[cfg(test)]
mod tests {
    use super::*;

    const PING: &[u8] = b"\x00\x00\x08\x06\x00\x00\x00\x00\x0012345678";
    const SETTINGS: &[u8] = b"\x00\x00\x00\x04\x00\x00\x00\x00\x00";

    fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
        let mut bytes = BytesMut::new();
        begin(&mut bytes, FrameHead { length: payload.len(), kind, flags, stream });
        [&bytes, payload].concat()
    }

    /// What h2 gets until it has to hand a head over.
    fn given(arriving: &mut Arriving) -> Vec<u8> {
        let mut all = Vec::new();
        let mut space = [0; 1000];
        loop {
            let mut buffer = ReadBuf::new(&mut space);
            if !arriving.give(&mut buffer) {
                return all;
            }
            all.extend_from_slice(buffer.filled());
        }
    }

    fn after(bytes: &[u8]) -> Arriving {
        let mut arriving = Arriving::new(1 << 20);
        arriving.take(bytes);
        arriving
    }

    #[test]
    fn whole_frames_pass_as_they_are() {
        let bytes = [PING, SETTINGS, PING].concat();
        let mut arriving = after(&bytes);
        assert_eq!(given(&mut arriving), bytes);
        assert!(!arriving.is_within());
        assert_eq!((arriving.held_bytes(), arriving.over()), (0, None));
    }

    #[test]
    fn a_frame_passes_with_its_last_byte() {
        let mut arriving = Arriving::new(1 << 20);
        for byte in &PING[..PING.len() - 1] {
            arriving.take(&[*byte]);
            assert_eq!(given(&mut arriving), b"");
            assert!(arriving.is_within());
        }
        arriving.take(b"8");
        assert_eq!(given(&mut arriving), PING);
        assert!(!arriving.is_within());
    }

    #[test]
    fn a_head_passes_with_its_last_frame_and_in_as_few_as_it_takes() {
        let first = frame(HEADERS, 0x1, 1, b"h");
        let mut arriving = after(&first);
        for byte in 0..=255 {
            arriving.take(&frame(CONTINUATION, 0, 1, &[byte; 100]));
            assert_eq!(given(&mut arriving), b"");
        }
        assert!(arriving.is_within());
        arriving.take(&frame(CONTINUATION, END_HEADERS, 1, b""));
        let rest: Vec<u8> = (0..=255).flat_map(|byte| [byte; 100]).collect();
        let full = frame(CONTINUATION, 0, 1, &rest[..PAYLOAD_MAX]);
        let last = frame(CONTINUATION, END_HEADERS, 1, &rest[PAYLOAD_MAX..]);
        assert!(given(&mut arriving) == [first, full, last].concat());
        assert!(!arriving.is_within());
    }

    #[test]
    fn one_head_is_given_at_a_time() {
        let heads = [1, 3].map(|stream| frame(HEADERS, END_HEADERS, stream, b"h"));
        let mut arriving = after(&heads.concat());
        for head in heads {
            assert_eq!(given(&mut arriving), head);
            assert!(arriving.take_head_given());
        }
        assert_eq!(given(&mut arriving), b"");
        assert!(!arriving.take_head_given());
    }

    #[test]
    fn of_a_head_no_more_is_taken_than_may_be() {
        for payload in [&b"x"[..], b""] {
            let mut arriving = Arriving::new(1000);
            arriving.take(&frame(HEADERS, 0, 1, b"h"));
            arriving.take(&frame(CONTINUATION, 0, 1, payload).repeat(999));
            assert_eq!(given(&mut arriving), b"");
            assert_eq!(arriving.over(), None);
            arriving.take(&frame(CONTINUATION, END_HEADERS, 1, payload));
            assert_eq!(given(&mut arriving), b"");
            assert_eq!(arriving.over(), Some(Over::HeadTooLong));
        }
    }

    #[test]
    fn what_is_not_http2_is_the_end_of_what_is_taken() {
        let begins = frame(HEADERS, 0, 1, b"h");
        for broken in [
            b"GET / HTTP/1.1\r\n\r\n".to_vec(),
            [&begins, PING].concat(),
            [begins, frame(CONTINUATION, END_HEADERS, 3, b"h")].concat(),
            frame(CONTINUATION, END_HEADERS, 1, b"h"),
        ] {
            let mut arriving = after(&[PING, &broken, PING].concat());
            assert_eq!(given(&mut arriving), PING);
            assert_eq!(arriving.over(), Some(Over::Broken));
            assert!(!arriving.cancel_incomplete());
            assert!(arriving.provoke_goodbye());
            assert_eq!(given(&mut arriving), b"\x00\x40\x01\x01\x00\x00\x00\x00\x01");
            assert!(!arriving.provoke_goodbye());
        }
    }

    #[test]
    fn only_a_goodbye_with_an_error_is_the_end() {
        let goodbye = |code| frame(GOAWAY, 0, 0, &[0, 0, 0, 0, 0, 0, 0, code]);
        let mut arriving = after(&[&goodbye(0), PING].concat());
        assert_eq!(given(&mut arriving), [&goodbye(0), PING].concat());
        arriving.take(&[&goodbye(2), PING].concat());
        assert_eq!(given(&mut arriving), b"");
        assert_eq!(arriving.over(), Some(Over::GivenUp));
        assert!(!arriving.provoke_goodbye());
    }

    #[test]
    fn what_is_incomplete_is_cancelled_and_nothing_else() {
        let head = |stream, flags| frame(HEADERS, END_HEADERS | flags, stream, b"h");
        let mut arriving = after(
            &[
                head(1, 0),
                head(3, 0x1),
                head(5, 0),
                head(7, 0),
                head(9, 0),
                head(11, 0),
                frame(DATA, 0x1, 5, b""),
                frame(DATA, 0, 7, b"half"),
                frame(RST_STREAM, 0, 9, &[0; 4]),
                head(11, 0x1),
                frame(HEADERS, 0, 13, b"half a head"),
                PING[..5].to_vec(),
            ]
            .concat(),
        );
        while !given(&mut arriving).is_empty() {
            arriving.take_head_given();
        }
        arriving.forget(1);
        assert!(arriving.cancel_incomplete());
        assert_eq!(given(&mut arriving), frame(RST_STREAM, 0, 7, &CANCEL.to_be_bytes()));
        assert!(!arriving.is_within());
    }
}
