//! A sender that writes exactly the bytes it is given, and reads until the connection ends.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep, timeout};

use crate::process::IDLE_TIMEOUT;
use crate::template::Piece;

/// Every connection ends by a limit of the product long before.
const PATIENCE: Duration = Duration::from_secs(20);

/// An answer that was received whole.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: HashMap<String, String>,
    pub(crate) body: Vec<u8>,
}

/// What one connection brought.
#[derive(Debug)]
pub(crate) struct Exchange {
    /// The final answers.
    pub(crate) answers: Vec<Answer>,
    /// What came and was no whole answer.
    pub(crate) rest: Vec<u8>,
    /// Whether it was closed for a reason other than that nobody used it.
    pub(crate) closed: bool,
}

impl Exchange {
    pub(crate) async fn play(
        address: SocketAddr,
        pieces: Vec<Piece>,
        half_close: bool,
    ) -> Result<Self, String> {
        let stream = TcpStream::connect(address).await.map_err(|error| error.to_string())?;
        let (mut reader, mut writer) = stream.into_split();
        let write = async {
            for piece in pieces {
                match piece {
                    // To be refused early is an answer, and no reason to stop.
                    Piece::Bytes(bytes) => writer.write_all(&bytes).await.unwrap_or_default(),
                    Piece::Pause(pause) => sleep(pause).await,
                }
            }
            if half_close {
                writer.shutdown().await.ok();
            }
        };
        let read = async {
            let (mut bytes, mut last) = (Vec::new(), Instant::now());
            while matches!(reader.read_buf(&mut bytes).await, Ok(1..)) {
                last = Instant::now();
            }
            (bytes, last.elapsed())
        };
        let both = async { tokio::join!(write, read).1 };
        let (bytes, quiet) = timeout(PATIENCE, both).await.map_err(|_| "it was never closed")?;
        let (answers, rest) = parse_all(&bytes);
        let said = answers.last().is_some_and(|answer: &Answer| {
            answer.headers.get("connection").is_some_and(|value| value.contains("close"))
        });
        Ok(Self { answers, rest, closed: said || quiet < IDLE_TIMEOUT * 7 / 10 })
    }

    /// The status of the first answer; 0 if there is none.
    pub(crate) fn status(&self) -> u16 {
        self.answers.first().map_or(0, |answer| answer.status)
    }
}

/// All final answers, and what is left.
fn parse_all(mut bytes: &[u8]) -> (Vec<Answer>, Vec<u8>) {
    let mut answers = Vec::new();
    while let Some((answer, length)) = parse(bytes) {
        bytes = &bytes[length..];
        if answer.status >= 200 {
            answers.push(answer);
        }
    }
    (answers, bytes.to_vec())
}

fn parse(bytes: &[u8]) -> Option<(Answer, usize)> {
    let end = bytes.windows(4).position(|window| window == b"\r\n\r\n")?;
    let head = str::from_utf8(&bytes[..end]).ok()?;
    let (first, lines) = head.split_once("\r\n").unwrap_or((head, ""));
    let status: u16 = first.strip_prefix("HTTP/1.")?.get(2..5)?.parse().ok()?;
    let headers: HashMap<String, String> = lines
        .split("\r\n")
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_ascii_lowercase()))
        .collect();
    let rest = &bytes[end + 4..];
    let (body, length) = if status < 200 || status == 204 || status == 304 {
        (Vec::new(), 0)
    } else if headers.contains_key("transfer-encoding") {
        chunked(rest)?
    } else if let Some(length) = headers.get("content-length") {
        let length = length.parse().ok()?;
        (rest.get(..length)?.to_vec(), length)
    } else {
        // Such a body ends with the connection: nobody knows whether it is whole.
        return None;
    };
    Some((Answer { status, headers, body }, end + 4 + length))
}

fn chunked(mut rest: &[u8]) -> Option<(Vec<u8>, usize)> {
    let (mut body, whole) = (Vec::new(), rest.len());
    loop {
        let end = rest.windows(2).position(|window| window == b"\r\n")?;
        let size = usize::from_str_radix(str::from_utf8(&rest[..end]).ok()?, 16).ok()?;
        body.extend_from_slice(rest.get(end + 2..end + 2 + size)?);
        rest = rest.get(end + 2 + size + 2..)?;
        if size == 0 {
            return Some((body, whole - rest.len()));
        }
    }
}
