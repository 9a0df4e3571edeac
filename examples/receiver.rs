//! An upstream that is slow, fails or breaks HTTP, as the request asks for it:
//!
//! ```sh
//! cargo run --example receiver -- 127.0.0.1:3000
//! ```
//!
//! The last part of the path says how it behaves:
//!
//! | end of the path  | what the upstream does                                   |
//! | ---------------- | -------------------------------------------------------- |
//! | `/slow?ms=3000`  | answers 200 after 3000 ms                                |
//! | `/fail?times=2`  | answers 503 twice for each event, then 200               |
//! | `/hang`          | reads the request and never answers                      |
//! | `/close`         | reads the request and closes the connection              |
//! | `/half`          | closes the connection in the middle of its answer        |
//! | `/garbage`       | answers something that is not HTTP                       |
//! | `/count`         | answers how often each event came                        |
//! | anything else    | answers 200                                              |
//!
//! Behind Onceward: `onceward serve --upstream http://127.0.0.1:3000`.

#![expect(clippy::print_stdout, reason = "the example shows what it gets")]

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Result;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::sleep;

/// The longest request that is read: longer than any webhook.
const BYTES_MAX: usize = 16 * 1024 * 1024;

/// How often each event has come.
type Counts = Arc<Mutex<BTreeMap<String, u64>>>;

#[tokio::main]
async fn main() -> Result<()> {
    let address = std::env::args().nth(1).unwrap_or_else(|| "127.0.0.1:3000".to_owned());
    let listener = TcpListener::bind(&address).await?;
    println!("listening on {}", listener.local_addr()?);
    let counts = Counts::default();
    loop {
        let (connection, _) = listener.accept().await?;
        let counts = Arc::clone(&counts);
        tokio::spawn(async move {
            if let Err(error) = serve(connection, &counts).await {
                println!("  broke off: {error}");
            }
        });
    }
}

/// A request that is read from raw TCP, one on each connection. An HTTP library would refuse to
/// send the broken answers.
struct Request {
    line: String,
    path: String,
    query: String,
    /// The value of `x-idempotency-key`, or the `id` in the body, or the path.
    event: String,
}

async fn serve(mut connection: TcpStream, counts: &Counts) -> Result<()> {
    let Some(request) = read(&mut connection).await? else { return Ok(()) };
    let behaviour = request.path.rsplit('/').next().unwrap_or_default();
    if behaviour == "count" {
        return answer(&mut connection, "200 OK", &table(counts)).await;
    }
    let count = count(counts, &request.event);
    println!("{}  event `{}`, number {count}", request.line, request.event);
    match behaviour {
        "slow" => {
            sleep(Duration::from_millis(number(&request.query, "ms", 3000))).await;
            answer(&mut connection, "200 OK", "slow\n").await
        }
        "fail" if count <= number(&request.query, "times", 1) => {
            answer(&mut connection, "503 Service Unavailable", "failed\n").await
        }
        "hang" => std::future::pending().await,
        "close" => Ok(()),
        "half" => connection.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nhalf").await,
        "garbage" => connection.write_all(b"\x16\x03\x01 this is no HTTP\r\n\r\n").await,
        _ => answer(&mut connection, "200 OK", "done\n").await,
    }
}

/// Reads one request. None if the connection closes first, or the head is too long.
async fn read(connection: &mut TcpStream) -> Result<Option<Request>> {
    let mut bytes = Vec::new();
    let end = loop {
        if let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            break end + 4;
        }
        if bytes.len() > BYTES_MAX || connection.read_buf(&mut bytes).await? == 0 {
            return Ok(None);
        }
    };
    let mut body = bytes.split_off(end);
    let head = String::from_utf8_lossy(&bytes).into_owned();
    let header = |name: &str| {
        let mut fields = head.lines().filter_map(|line| line.split_once(':'));
        fields.find(|(found, _)| found.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim())
    };
    let length = header("content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
    let missing = length.min(BYTES_MAX).saturating_sub(body.len());
    connection.take(missing as u64).read_to_end(&mut body).await?;

    let line = head.lines().next().unwrap_or_default();
    let target = line.split(' ').nth(1).unwrap_or_default();
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let id = || serde_json::from_slice::<serde_json::Value>(&body).ok()?.get("id").cloned();
    let id = || id().map(|id| id.as_str().map_or_else(|| id.to_string(), str::to_owned));
    let key = header("x-idempotency-key").map(str::to_owned);
    let event = key.or_else(id).unwrap_or_else(|| path.to_owned());
    let [line, path, query] = [line, path, query].map(str::to_owned);
    Ok(Some(Request { line, path, query, event }))
}

async fn answer(connection: &mut TcpStream, status: &str, body: &str) -> Result<()> {
    let length = body.len();
    let head =
        format!("HTTP/1.1 {status}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n");
    connection.write_all((head + body).as_bytes()).await
}

fn number(query: &str, name: &str, otherwise: u64) -> u64 {
    let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
    let found = pairs.find(|(found, _)| *found == name);
    found.and_then(|(_, value)| value.parse().ok()).unwrap_or(otherwise)
}

fn count(counts: &Counts, event: &str) -> u64 {
    let mut counts = counts.lock().unwrap_or_else(PoisonError::into_inner);
    let count = counts.entry(event.to_owned()).or_default();
    *count += 1;
    *count
}

fn table(counts: &Counts) -> String {
    let mut table = String::new();
    for (event, count) in &*counts.lock().unwrap_or_else(PoisonError::into_inner) {
        // Writing to a string does not fail.
        let _written = writeln!(table, "{count:>4}  {event}");
    }
    table
}
