//! The frames that arrive on an HTTP/2 connection, on their way to h2.
//!
//! h2 gets whole frames only, a head only when all of it has arrived, and one head at a time. So a
//! peer that goes away in the middle of a frame leaves nothing half done, and the memory of an
//! unfinished head is known exactly.
//!
//! A head may arrive in any number of frames. h2 itself ends a connection if a head takes more
//! CONTINUATION frames than it would take with full frames. So a head is written to h2 in full
//! frames.

use bytes::{Buf as _, BytesMut};
use tokio::io::ReadBuf;

use super::frames::{
    CONTINUATION, DATA, FrameHeader, GOAWAY, HEADER, HEADERS, PAYLOAD_MAX, RST_STREAM, write_header,
};
use super::incomplete::IncompleteRequests;
use super::partial_head::PartialHead;

/// The frames of one connection on their way to h2.
#[derive(Debug)]
pub(super) struct InboundFrames {
    /// The most bytes of one head.
    head_bytes_max: usize,
    /// Bytes that were read and not sorted yet. In most cases they are a frame whose end has not
    /// arrived.
    unread: BytesMut,
    /// A head whose end has not arrived.
    head: Option<PartialHead>,
    /// The bytes that h2 reads next.
    ready: BytesMut,
    /// h2 got a head, and has not handed its request over yet.
    head_given: bool,
    incomplete: IncompleteRequests,
    stopped: Option<StopReason>,
    goaway_provoked: bool,
}

/// Why no more frames are taken from a connection that is still open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StopReason {
    /// The peer sent GOAWAY with an error. It must close the connection then (RFC 9113, 5.4.1).
    PeerGoaway,
    /// A head is larger than the limit. No later head can be decoded without it, because HPACK's
    /// table carries over from head to head (RFC 7541, 2.2).
    HeadTooLong,
    /// The bytes are not HTTP/2.
    NotHttp2,
}

impl InboundFrames {
    /// The frames of a connection on which only the preface was read.
    pub(super) fn new(head_bytes_max: usize) -> Self {
        Self {
            head_bytes_max,
            unread: BytesMut::new(),
            head: None,
            ready: BytesMut::new(),
            head_given: false,
            incomplete: IncompleteRequests::default(),
            stopped: None,
            goaway_provoked: false,
        }
    }

    /// Takes bytes that were read.
    pub(super) fn take(&mut self, bytes: &[u8]) {
        self.unread.extend_from_slice(bytes);
    }

    /// Fills the buffer with the bytes that h2 reads next. False if there are none.
    pub(super) fn give(&mut self, buffer: &mut ReadBuf<'_>) -> bool {
        while !self.head_given
            && self.stopped.is_none()
            && let Some(header) = self.next_frame()
        {
            let frame = self.unread.split_to(HEADER + header.length);
            self.sort(header, frame);
        }
        // An idle connection must not keep a buffer.
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

    /// Whether h2 got a head since the last call.
    pub(super) const fn take_head_given(&mut self) -> bool {
        std::mem::replace(&mut self.head_given, false)
    }

    /// Why no more frames are taken. None while frames are taken.
    pub(super) const fn stop_reason(&self) -> Option<StopReason> {
        self.stopped
    }

    /// Whether a frame or a head has begun and not ended. All other streams of the peer wait until
    /// it ends, so its time is limited.
    pub(super) fn is_mid_frame(&self) -> bool {
        !self.unread.is_empty() || self.head.is_some()
    }

    /// The bytes in memory of a frame and a head that have not ended.
    pub(super) fn unfinished_bytes(&self) -> usize {
        self.unread.len() + self.head.as_ref().map_or(0, PartialHead::bytes)
    }

    /// Notes that h2 has reset a stream.
    pub(super) fn forget(&mut self, stream: u32) {
        self.incomplete.forget(stream);
    }

    /// Tells h2 that the peer has cancelled all incomplete requests: nothing more will arrive for
    /// them, and their handlers must not wait. Returns whether there were such requests.
    pub(super) fn cancel_incomplete(&mut self) -> bool {
        self.head = None;
        self.unread = BytesMut::new();
        self.incomplete.cancel_all(&mut self.ready)
    }

    /// Makes h2 send GOAWAY with an error if the peer made an error. Returns true once, when there
    /// is something for h2 to read.
    ///
    /// hyper has no call for that. So h2 gets a frame that is too large, and refuses it.
    pub(super) fn provoke_goaway(&mut self) -> bool {
        let is_error = matches!(self.stopped, Some(StopReason::HeadTooLong | StopReason::NotHttp2));
        let provokes = is_error && !self.goaway_provoked;
        if provokes {
            self.goaway_provoked = true;
            let length = PAYLOAD_MAX + 1;
            let header = FrameHeader { length, kind: HEADERS, flags: 0, stream: 1 };
            write_header(&mut self.ready, header);
        }
        provokes
    }

    /// The header of the next frame, if all of the frame has arrived.
    fn next_frame(&mut self) -> Option<FrameHeader> {
        let header = FrameHeader::of(*self.unread.first_chunk()?);
        // The frame is refused by its header, before memory is spent on it.
        if header.length > PAYLOAD_MAX {
            self.stopped = Some(StopReason::NotHttp2);
            return None;
        }
        (self.unread.remaining() >= HEADER + header.length).then_some(header)
    }

    /// Adds a frame to the head that is arriving, begins a head with it, or passes it to h2.
    fn sort(&mut self, header: FrameHeader, frame: BytesMut) {
        match self.head.take() {
            Some(head) => self.continue_head(head, header, &frame),
            None if header.kind == HEADERS && !header.ends_head() => {
                self.head = Some(PartialHead::begin(header, frame));
            }
            None => self.pass(header, &frame),
        }
    }

    fn continue_head(&mut self, mut head: PartialHead, header: FrameHeader, frame: &[u8]) {
        if !head.is_continued_by(header) {
            self.stopped = Some(StopReason::NotHttp2);
            return;
        }
        if head.length_with(header) > self.head_bytes_max {
            self.stopped = Some(StopReason::HeadTooLong);
            return;
        }
        head.add(header, frame.get(HEADER..).unwrap_or_default());
        if header.ends_head() {
            self.note_head(head.header());
            head.write(&mut self.ready);
        } else {
            self.head = Some(head);
        }
    }

    fn pass(&mut self, header: FrameHeader, frame: &[u8]) {
        match header.kind {
            HEADERS => self.note_head(header),
            DATA if header.ends_stream() => self.incomplete.forget(header.stream),
            // h2 gets a cancellation in its place.
            RST_STREAM if self.incomplete.cancel(header.stream, &mut self.ready) => return,
            // The frame continues a head, but no head has begun.
            CONTINUATION => self.stopped = Some(StopReason::NotHttp2),
            GOAWAY if has_error(frame) => self.stopped = Some(StopReason::PeerGoaway),
            // h2 reads the other kinds, and ignores kinds that it does not know (RFC 9113, 4.1).
            _ => {}
        }
        if self.stopped.is_none() {
            self.ready.extend_from_slice(frame);
        }
    }

    fn note_head(&mut self, header: FrameHeader) {
        self.head_given = true;
        self.incomplete.note_head(header);
    }
}

/// Whether a GOAWAY frame has an error code. The code comes after the number of the last stream
/// (RFC 9113, 6.8).
fn has_error(frame: &[u8]) -> bool {
    let code = frame.get(HEADER + 4..HEADER + 8);
    code.is_some_and(|code| code != [0; 4])
}

#[cfg(test)]
mod tests {
    use super::super::frames::{CANCEL, END_HEADERS};
    use super::*;

    const PING: &[u8] = b"\x00\x00\x08\x06\x00\x00\x00\x00\x0012345678";
    const SETTINGS: &[u8] = b"\x00\x00\x00\x04\x00\x00\x00\x00\x00";

    fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
        let mut bytes = BytesMut::new();
        write_header(&mut bytes, FrameHeader { length: payload.len(), kind, flags, stream });
        [&bytes, payload].concat()
    }

    /// The bytes that h2 gets until it has to hand a head over.
    fn given(inbound: &mut InboundFrames) -> Vec<u8> {
        let mut all = Vec::new();
        let mut space = [0; 1000];
        loop {
            let mut buffer = ReadBuf::new(&mut space);
            if !inbound.give(&mut buffer) {
                return all;
            }
            all.extend_from_slice(buffer.filled());
        }
    }

    fn after(bytes: &[u8]) -> InboundFrames {
        let mut inbound = InboundFrames::new(1 << 20);
        inbound.take(bytes);
        inbound
    }

    #[test]
    fn whole_frames_pass_as_they_are() {
        let bytes = [PING, SETTINGS, PING].concat();
        let mut inbound = after(&bytes);
        assert_eq!(given(&mut inbound), bytes);
        assert!(!inbound.is_mid_frame());
        assert_eq!((inbound.unfinished_bytes(), inbound.stop_reason()), (0, None));
    }

    #[test]
    fn a_frame_passes_with_its_last_byte() {
        let mut inbound = InboundFrames::new(1 << 20);
        for byte in &PING[..PING.len() - 1] {
            inbound.take(&[*byte]);
            assert_eq!(given(&mut inbound), b"");
            assert!(inbound.is_mid_frame());
        }
        inbound.take(b"8");
        assert_eq!(given(&mut inbound), PING);
        assert!(!inbound.is_mid_frame());
    }

    #[test]
    fn a_head_passes_with_its_last_frame_and_in_as_few_as_it_takes() {
        let first = frame(HEADERS, 0x1, 1, b"h");
        let mut inbound = after(&first);
        for byte in 0..=255 {
            inbound.take(&frame(CONTINUATION, 0, 1, &[byte; 100]));
            assert_eq!(given(&mut inbound), b"");
        }
        assert!(inbound.is_mid_frame());
        inbound.take(&frame(CONTINUATION, END_HEADERS, 1, b""));
        let rest: Vec<u8> = (0..=255).flat_map(|byte| [byte; 100]).collect();
        let full = frame(CONTINUATION, 0, 1, &rest[..PAYLOAD_MAX]);
        let last = frame(CONTINUATION, END_HEADERS, 1, &rest[PAYLOAD_MAX..]);
        assert!(given(&mut inbound) == [first, full, last].concat());
        assert!(!inbound.is_mid_frame());
    }

    #[test]
    fn one_head_is_given_at_a_time() {
        let heads = [1, 3].map(|stream| frame(HEADERS, END_HEADERS, stream, b"h"));
        let mut inbound = after(&heads.concat());
        for head in heads {
            assert_eq!(given(&mut inbound), head);
            assert!(inbound.take_head_given());
        }
        assert_eq!(given(&mut inbound), b"");
        assert!(!inbound.take_head_given());
    }

    #[test]
    fn of_a_head_no_more_is_taken_than_may_be() {
        for payload in [&b"x"[..], b""] {
            let mut inbound = InboundFrames::new(1000);
            inbound.take(&frame(HEADERS, 0, 1, b"h"));
            inbound.take(&frame(CONTINUATION, 0, 1, payload).repeat(999));
            assert_eq!(given(&mut inbound), b"");
            assert_eq!(inbound.stop_reason(), None);
            inbound.take(&frame(CONTINUATION, END_HEADERS, 1, payload));
            assert_eq!(given(&mut inbound), b"");
            assert_eq!(inbound.stop_reason(), Some(StopReason::HeadTooLong));
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
            let mut inbound = after(&[PING, &broken, PING].concat());
            assert_eq!(given(&mut inbound), PING);
            assert_eq!(inbound.stop_reason(), Some(StopReason::NotHttp2));
            assert!(!inbound.cancel_incomplete());
            assert!(inbound.provoke_goaway());
            assert_eq!(given(&mut inbound), b"\x00\x40\x01\x01\x00\x00\x00\x00\x01");
            assert!(!inbound.provoke_goaway());
        }
    }

    #[test]
    fn only_a_goodbye_with_an_error_is_the_end() {
        let goodbye = |code| frame(GOAWAY, 0, 0, &[0, 0, 0, 0, 0, 0, 0, code]);
        let mut inbound = after(&[&goodbye(0), PING].concat());
        assert_eq!(given(&mut inbound), [&goodbye(0), PING].concat());
        inbound.take(&[&goodbye(2), PING].concat());
        assert_eq!(given(&mut inbound), b"");
        assert_eq!(inbound.stop_reason(), Some(StopReason::PeerGoaway));
        assert!(!inbound.provoke_goaway());
    }

    #[test]
    fn a_reset_of_an_incomplete_request_is_a_cancellation_whatever_its_code() {
        for code in [0_u32, 2, 8] {
            let head = frame(HEADERS, END_HEADERS, 1, b"h");
            let mut inbound = after(&head);
            assert_eq!(given(&mut inbound), head);
            inbound.take_head_given();
            inbound.take(&frame(RST_STREAM, 0, 1, &code.to_be_bytes()));
            assert_eq!(given(&mut inbound), frame(RST_STREAM, 0, 1, &CANCEL.to_be_bytes()));
            assert!(!inbound.cancel_incomplete());
        }
        let complete = frame(HEADERS, END_HEADERS | 0x1, 1, b"h");
        let reset = frame(RST_STREAM, 0, 1, &[0; 4]);
        let mut inbound = after(&complete);
        assert_eq!(given(&mut inbound), complete);
        inbound.take_head_given();
        inbound.take(&reset);
        assert_eq!(given(&mut inbound), reset);
    }

    #[test]
    fn what_is_incomplete_is_cancelled_and_nothing_else() {
        let head = |stream, flags| frame(HEADERS, END_HEADERS | flags, stream, b"h");
        let mut inbound = after(
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
        while !given(&mut inbound).is_empty() {
            inbound.take_head_given();
        }
        inbound.forget(1);
        assert!(inbound.cancel_incomplete());
        assert_eq!(given(&mut inbound), frame(RST_STREAM, 0, 7, &CANCEL.to_be_bytes()));
        assert!(!inbound.is_mid_frame());
    }
}
