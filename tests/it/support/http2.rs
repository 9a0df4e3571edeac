//! A sender on HTTP/2 that writes its frames by hand: it can send what no library sends, and take
//! nothing of an answer.

use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::AsyncWriteExt as _;
use tokio::time::timeout;

use super::RawSender;

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
const DATA: u8 = 0x0;
const HEADERS: u8 = 0x1;
const SETTINGS: u8 = 0x4;
const CONTINUATION: u8 = 0x9;
pub const RST_STREAM: u8 = 0x3;
const GOAWAY: u8 = 0x7;
const ACK: u8 = 0x1;
const END_STREAM: u8 = 0x1;
const END_HEADERS: u8 = 0x4;
/// The longest payload that every peer takes (RFC 9113, 6.5.2).
pub const PAYLOAD_MAX: usize = 16_384;

/// One frame that was read.
#[derive(Debug)]
pub struct Frame {
    pub kind: u8,
    pub flags: u8,
    pub stream: u32,
    pub payload: Vec<u8>,
}

/// A connection on HTTP/2, by prior knowledge.
#[derive(Debug)]
pub struct Http2Sender {
    raw: RawSender,
    next_stream: u32,
}

impl Http2Sender {
    /// A connection whose peer may send so much of each answer.
    pub async fn connects(address: SocketAddr, window: u32) -> Self {
        let mut raw = RawSender::connect(address).await;
        // SETTINGS_INITIAL_WINDOW_SIZE
        let mut settings = vec![0, 4];
        settings.extend(window.to_be_bytes());
        raw.writes(&[PREFACE, &frame(SETTINGS, 0, 0, &settings)].concat()).await;
        Self { raw, next_stream: 1 }
    }

    /// Writes a request; its fields are a block of [`field`]s and [`indexed`] ones. Gives its
    /// stream. Without `body` the request stays open.
    pub async fn asks(&mut self, block: &[u8], body: Option<&[u8]>) -> u32 {
        self.asks_in_pieces(block, PAYLOAD_MAX, body).await
    }

    /// The same, with no more than so much of the block in each frame.
    pub async fn asks_in_pieces(&mut self, block: &[u8], piece: usize, body: Option<&[u8]>) -> u32 {
        let stream = self.next_stream;
        let bytes = self.request(block, piece, body);
        self.raw.writes(&bytes).await;
        stream
    }

    /// The bytes of the next request.
    pub fn request(&mut self, block: &[u8], piece: usize, body: Option<&[u8]>) -> Vec<u8> {
        let stream = self.next_stream;
        self.next_stream += 2;
        let mut bytes = head(stream, &mut block.chunks(piece), END_HEADERS);
        if let Some(body) = body {
            bytes.extend(frame(DATA, END_STREAM, stream, body));
        }
        bytes
    }

    /// Writes these bytes, whatever they are.
    pub async fn writes(&mut self, bytes: &[u8]) {
        self.raw.writes(bytes).await;
    }

    /// Writes a part of a request's body.
    pub async fn sends_piece(&mut self, stream: u32, piece: &[u8]) {
        self.raw.writes(&frame(DATA, 0, stream, piece)).await;
    }

    /// Resets one stream with this code (RFC 9113, 7).
    pub async fn resets_stream(&mut self, stream: u32, code: u32) {
        self.raw.writes(&frame(RST_STREAM, 0, stream, &code.to_be_bytes())).await;
    }

    /// Says that it gives the connection up, for an error of this kind, and leaves it open.
    pub async fn says_goodbye(&mut self, error: u32) {
        let last_stream = [0; 4];
        let payload = [last_stream, error.to_be_bytes()].concat();
        self.raw.writes(&frame(GOAWAY, 0, 0, &payload)).await;
    }

    /// Sends no more.
    pub async fn ends(&mut self) {
        self.raw.0.shutdown().await.unwrap();
    }

    /// Closes in good order.
    pub fn hangs_up(self) {
        self.raw.hangs_up();
    }

    /// Closes by a reset.
    pub fn resets(self) {
        self.raw.resets();
    }

    /// Reads until the peer has closed.
    pub async fn is_closed(&mut self) {
        let closed = timeout(Duration::from_mins(1), self.raw.reads_to_the_end()).await;
        closed.expect("it closes");
    }

    /// Writes the beginning of a request whose head does not end, for as long as the peer reads.
    pub async fn begins_to_ask(&mut self, block: &[u8]) {
        let head = head(self.next_stream, &mut block.chunks(PAYLOAD_MAX), 0);
        self.raw.tries_to_write(&head).await;
    }

    /// The next frame that is none of the connection's own.
    pub async fn reads_frame(&mut self) -> Frame {
        loop {
            let head = timeout(Duration::from_mins(1), self.raw.reads_exactly(9)).await;
            let head = head.expect("a frame");
            let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
            let payload = self.raw.reads_exactly(length as usize).await;
            let stream = u32::from_be_bytes([head[5], head[6], head[7], head[8]]);
            let (kind, flags) = (head[3], head[4]);
            if kind == SETTINGS && flags & ACK == 0 {
                // The peer may have closed; what it said before is still to be read.
                let _closed = self.raw.0.write_all(&frame(SETTINGS, ACK, 0, &[])).await;
            }
            if stream != 0 {
                return Frame { kind, flags, stream, payload };
            }
        }
    }

    /// The body of the next answer on this stream, once it is whole.
    pub async fn reads_body(&mut self, stream: u32) -> String {
        let mut body = Vec::new();
        loop {
            let frame = self.reads_frame().await;
            if frame.stream == stream {
                assert_ne!(frame.kind, RST_STREAM, "{frame:?}");
                if frame.kind == DATA {
                    body.extend(frame.payload);
                }
                if frame.flags & END_STREAM != 0 {
                    return String::from_utf8(body).unwrap();
                }
            }
        }
    }
}

/// The pseudo fields of a request to this path (RFC 7541, appendix A), each as it stands in the
/// static table or as a literal that is kept nowhere.
pub fn post(path: &str) -> Vec<u8> {
    let mut block = vec![0x83, 0x86];
    block.extend(literal(&[0x04], path.as_bytes()));
    block.extend(literal(&[0x01], b"hooks.example"));
    block
}

/// A field that the table of fields does not keep.
pub fn field(name: &str, value: &str) -> Vec<u8> {
    [literal(&[0x00], name.as_bytes()), length(value.len()), value.as_bytes().to_vec()].concat()
}

/// A field that the table keeps: after it, [`LAST_KEPT`] stands for it.
pub fn kept_field(name: &str, value: &str) -> Vec<u8> {
    [literal(&[0x40], name.as_bytes()), length(value.len()), value.as_bytes().to_vec()].concat()
}

/// The field that the table has kept last: its first index behind the static table.
pub const LAST_KEPT: u8 = 0xbe;

/// A head of which each piece is a frame; the last one has these flags.
fn head(stream: u32, pieces: &mut dyn Iterator<Item = &[u8]>, last: u8) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut pieces = pieces.peekable();
    let mut kind = HEADERS;
    while let Some(piece) = pieces.next() {
        let flags = if pieces.peek().is_none() { last } else { 0 };
        bytes.extend(frame(kind, flags, stream, piece));
        kind = CONTINUATION;
    }
    bytes
}

fn literal(begin: &[u8], text: &[u8]) -> Vec<u8> {
    [begin, &length(text.len()), text].concat()
}

/// An integer with a prefix of 7 bits (RFC 7541, 5.1).
fn length(length: usize) -> Vec<u8> {
    if length < 127 {
        return vec![u8::try_from(length).unwrap()];
    }
    let (mut bytes, mut rest) = (vec![127], length - 127);
    while rest >= 128 {
        bytes.push(u8::try_from(rest % 128).unwrap() | 0x80);
        rest /= 128;
    }
    bytes.push(u8::try_from(rest).unwrap());
    bytes
}

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    let mut bytes = length[1..].to_vec();
    bytes.extend([kind, flags]);
    bytes.extend(stream.to_be_bytes());
    bytes.extend_from_slice(payload);
    bytes
}
