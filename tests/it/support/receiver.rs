//! A receiver that does as it is told, and counts: its count is the judge.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinHandle;

/// A request as the receiver got it, whole.
#[derive(Debug, Clone)]
pub struct Seen {
    /// Which of its connections it came on.
    pub connection: usize,
    pub method: String,
    pub target: String,
    pub headers: Vec<(String, Vec<u8>)>,
    pub body: Vec<u8>,
}

impl Seen {
    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(n, _)| n.eq_ignore_ascii_case(name));
        found.map(|(_, value)| std::str::from_utf8(value).expect("text"))
    }

    pub fn values(&self, name: &str) -> Vec<&[u8]> {
        let all = self.headers.iter().filter(|(n, _)| n.eq_ignore_ascii_case(name));
        all.map(|(_, value)| value.as_slice()).collect()
    }
}

/// What the receiver does once it has read a request.
#[derive(Debug, Clone)]
pub enum Act {
    Answer(Answer),
    /// After this long.
    After(Duration, Box<Act>),
    /// When the gate is opened.
    When(Gate, Box<Act>),
    /// Nothing, until the proxy closes the connection.
    Hang,
    /// Close without a byte.
    Close,
    /// Close with RST without a byte.
    Reset,
    /// These bytes, then close.
    Raw(Vec<u8>),
    /// These bytes, then nothing until the proxy closes the connection.
    RawThenHang(Vec<u8>),
    /// These bytes, and the connection stays open for the next request.
    RawThenStay(Vec<u8>),
    /// As if the connection were to stay open, but it is closed this long after.
    AnswerThenClose(Answer, Duration),
}

/// A complete answer.
#[derive(Debug, Clone)]
pub struct Answer {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Answer {
    pub fn new(status: u16, body: impl Into<Vec<u8>>) -> Self {
        Self { status, headers: Vec::new(), body: body.into() }
    }

    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// The same, as soon as the gate lets it pass.
    pub fn when(self, gate: &Gate) -> Act {
        Act::When(gate.clone(), Box::new(self.into()))
    }

    pub fn raw(&self) -> Vec<u8> {
        let mut head = format!("HTTP/1.1 {} Some Words\r\n", self.status);
        for (name, value) in &self.headers {
            write!(head, "{name}: {value}\r\n").unwrap();
        }
        write!(head, "content-length: {}\r\n\r\n", self.body.len()).unwrap();
        let mut bytes = head.into_bytes();
        bytes.extend_from_slice(&self.body);
        bytes
    }
}

impl From<Answer> for Act {
    fn from(answer: Answer) -> Self {
        Self::Answer(answer)
    }
}

/// Holds answers back until it is opened, once for each.
#[derive(Debug, Clone)]
pub struct Gate(Arc<Semaphore>);

impl Default for Gate {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(0)))
    }
}

impl Gate {
    pub fn lets_one_pass(&self) {
        self.0.add_permits(1);
    }

    pub fn opens(&self) {
        self.0.add_permits(1 << 20);
    }

    /// Waits until it may pass.
    pub async fn passes(&self) {
        self.0.acquire().await.unwrap().forget();
    }
}

type Script = dyn Fn(&Seen, usize) -> Act + Send + Sync;

/// A receiver of webhooks on a port of its own.
#[derive(Debug)]
pub struct Receiver {
    pub address: SocketAddr,
    seen: Arc<Mutex<Vec<Seen>>>,
    count: watch::Receiver<usize>,
    accepting: JoinHandle<()>,
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

impl Receiver {
    /// Asks `script` what to do with each request: the request, and how often its body (or, with a
    /// key header, its key) has come before.
    pub async fn that(script: impl Fn(&Seen, usize) -> Act + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        Self::on(listener, script)
    }

    pub fn on(
        listener: TcpListener,
        script: impl Fn(&Seen, usize) -> Act + Send + Sync + 'static,
    ) -> Self {
        let address = listener.local_addr().unwrap();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let (counted, count) = watch::channel(0);
        let shared = Arc::new(Shared {
            script: Box::new(script),
            seen: Arc::clone(&seen),
            counted,
            copies: Mutex::default(),
        });
        let accepting = tokio::spawn(async move {
            let mut connection = 0;
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, connection, Arc::clone(&shared)));
                connection += 1;
            }
        });
        Self { address, seen, count, accepting }
    }

    /// Answers everything with this status and body.
    pub async fn that_answers(status: u16, body: &'static str) -> Self {
        Self::that(move |_, _| Answer::new(status, body).into()).await
    }

    /// Answers with this status and body as often as the gate lets it.
    pub async fn behind(gate: &Gate, status: u16, body: &'static str) -> Self {
        let gate = gate.clone();
        let answer = move || Act::from(Answer::new(status, body));
        Self::that(move |_, _| Act::When(gate.clone(), Box::new(answer()))).await
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// How many requests it has read, whole.
    pub fn count(&self) -> usize {
        *self.count.borrow()
    }

    pub fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }

    /// Waits until it has read this many.
    pub async fn has_counted(&self, count: usize) {
        let mut counted = self.count.clone();
        let enough = counted.wait_for(|so_far| *so_far >= count);
        let waited = tokio::time::timeout(Duration::from_secs(20), enough).await;
        assert!(waited.is_ok(), "the receiver counts {} instead of {count}", self.count());
    }

    #[track_caller]
    pub fn was_called(&self, times: usize) {
        assert_eq!(self.count(), times, "the receiver's own count");
    }
}

struct Shared {
    script: Box<Script>,
    seen: Arc<Mutex<Vec<Seen>>>,
    counted: watch::Sender<usize>,
    copies: Mutex<HashMap<Vec<u8>, usize>>,
}

async fn serve(mut stream: TcpStream, connection: usize, shared: Arc<Shared>) {
    let mut buffer = Vec::new();
    while let Some(seen) = read(&mut stream, &mut buffer, connection).await {
        let copies = {
            let key = seen.header("x-idempotency-key").map(|key| key.as_bytes().to_vec());
            let mut copies = shared.copies.lock().unwrap();
            let count = copies.entry(key.unwrap_or_else(|| seen.body.clone())).or_default();
            *count += 1;
            *count - 1
        };
        let act = (shared.script)(&seen, copies);
        shared.seen.lock().unwrap().push(seen);
        shared.counted.send_modify(|count| *count += 1);
        let (bytes, end) = match in_its_time(act).await {
            Act::Answer(answer) => (answer.raw(), End::Stay),
            Act::Raw(bytes) => (bytes, End::Close),
            Act::AnswerThenClose(answer, pause) => (answer.raw(), End::CloseAfter(pause)),
            Act::RawThenHang(bytes) => (bytes, End::Hang),
            Act::RawThenStay(bytes) => (bytes, End::Stay),
            Act::Hang => (Vec::new(), End::Hang),
            Act::Close => (Vec::new(), End::Close),
            Act::Reset => {
                stream.set_zero_linger().unwrap();
                return;
            }
            Act::After(..) | Act::When(..) => unreachable!("unwrapped above"),
        };
        if stream.write_all(&bytes).await.is_err() {
            return;
        }
        match end {
            End::Stay => {}
            End::Close => return,
            // The server closes after a while: that is what is tested.
            End::CloseAfter(pause) => return tokio::time::sleep(pause).await,
            End::Hang => {
                let mut rest = [0; 64];
                while stream.read(&mut rest).await.is_ok_and(|read| read > 0) {}
                return;
            }
        }
    }
}

/// What is left to do once all that it waits for has come.
async fn in_its_time(mut act: Act) -> Act {
    loop {
        act = match act {
            Act::After(pause, then) => {
                // The upstream is slow: that is what is tested.
                tokio::time::sleep(pause).await;
                *then
            }
            Act::When(gate, then) => {
                gate.passes().await;
                *then
            }
            Act::Answer(_)
            | Act::AnswerThenClose(..)
            | Act::Hang
            | Act::Close
            | Act::Reset
            | Act::Raw(_)
            | Act::RawThenHang(_)
            | Act::RawThenStay(_) => return act,
        }
    }
}

enum End {
    Stay,
    Close,
    CloseAfter(Duration),
    Hang,
}

/// Reads one whole request. The proxy frames every body by its length.
pub(super) async fn read(
    stream: &mut TcpStream,
    buffer: &mut Vec<u8>,
    connection: usize,
) -> Option<Seen> {
    loop {
        if let Some((mut seen, head, length)) = parse(buffer, connection)
            && buffer.len() >= head + length
        {
            seen.body = buffer[head..head + length].to_vec();
            buffer.drain(..head + length);
            return Some(seen);
        }
        if stream.read_buf(buffer).await.ok()? == 0 {
            return None;
        }
    }
}

fn parse(buffer: &[u8], connection: usize) -> Option<(Seen, usize, usize)> {
    let mut headers = [httparse::EMPTY_HEADER; 400];
    let mut request = httparse::Request::new(&mut headers);
    let httparse::Status::Complete(head) = request.parse(buffer).ok()? else { return None };
    let headers: Vec<(String, Vec<u8>)> =
        request.headers.iter().map(|h| (h.name.to_owned(), h.value.to_vec())).collect();
    let (method, target) = (request.method?.to_owned(), request.path?.to_owned());
    let seen = Seen { connection, method, target, headers, body: Vec::new() };
    assert_eq!(seen.header("transfer-encoding"), None, "the proxy frames by length");
    let length = seen.header("content-length").map_or(0, |length| length.parse().unwrap());
    Some((seen, head, length))
}
