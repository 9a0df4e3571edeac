//! An upstream that takes nothing but clean requests, and remembers all that it got.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use crate::case::Case;
use crate::template::{Values, bytes};

/// A request that was received whole and clean.
#[derive(Debug, Clone)]
pub(crate) struct Seen {
    /// What `c=` in its target says.
    pub(crate) case: String,
    /// Request line and headers, in lower case.
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

/// What the upstream answers, and whether it closes then.
type Script = (Vec<u8>, bool);

/// The upstream.
pub(crate) struct Upstream {
    pub(crate) address: SocketAddr,
    scripts: HashMap<String, Script>,
    seen: Mutex<Vec<Seen>>,
    faults: Mutex<Vec<String>>,
}

impl Upstream {
    pub(crate) async fn start(cases: &[Case]) -> Arc<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let scripts = cases.iter().filter_map(|case| {
            let none = Values { path: "", id: &case.id, key: "", host: "", evil: "" };
            let raw = bytes(case.upstream_raw.as_deref()?, &none);
            Some((case.id.clone(), (raw, case.upstream_close)))
        });
        let upstream = Arc::new(Self {
            address: listener.local_addr().unwrap(),
            scripts: scripts.collect(),
            seen: Mutex::default(),
            faults: Mutex::default(),
        });
        let serving = Arc::clone(&upstream);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(Arc::clone(&serving).serve(stream));
            }
        });
        upstream
    }

    /// What it saw of a case: the requests of its own, in order, and those that were smuggled.
    pub(crate) fn seen(&self, id: &str) -> Vec<Seen> {
        let mine = [id.to_owned(), format!("{id}-2"), format!("SMUGGLED-{id}")];
        let all = self.seen.lock().unwrap();
        all.iter().filter(|seen| mine.contains(&seen.case)).cloned().collect()
    }

    /// What it got that was no clean request.
    pub(crate) fn faults(&self) -> Vec<String> {
        self.faults.lock().unwrap().clone()
    }

    async fn serve(self: Arc<Self>, mut stream: TcpStream) {
        let mut unread = Vec::new();
        loop {
            let (seen, length) = loop {
                match parse(&unread) {
                    Ok(Some(whole)) => break whole,
                    Ok(None) => {}
                    Err(why) => return self.fault(why, &unread),
                }
                match stream.read_buf(&mut unread).await {
                    Ok(0) | Err(_) if unread.is_empty() => return,
                    Ok(0) | Err(_) => return self.fault("it breaks off", &unread),
                    Ok(_) => {}
                }
            };
            unread.drain(..length);
            let plain = format!(
                "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{}",
                seen.case.len(),
                seen.case
            );
            let script = self.scripts.get(&seen.case).cloned();
            let (answer, close) = script.unwrap_or((plain.into_bytes(), false));
            self.seen.lock().unwrap().push(seen);
            if stream.write_all(&answer).await.is_err() || close {
                return;
            }
        }
    }

    fn fault(&self, why: &str, bytes: &[u8]) {
        let start = &bytes[..bytes.len().min(300)];
        let fault = format!("the upstream got what is no request, {why}: {}", start.escape_ascii());
        self.faults.lock().unwrap().push(fault);
    }
}

/// The first request in these bytes, and its length; none if more must be read.
fn parse(bytes: &[u8]) -> Result<Option<(Seen, usize)>, &'static str> {
    let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") else {
        return Ok(None);
    };
    let head = str::from_utf8(&bytes[..end]).map_err(|_| "its head is no text")?;
    let mut lines = head.split("\r\n");
    let target = request_target(lines.next().unwrap_or_default())?;
    let mut headers: HashMap<String, &str> = HashMap::new();
    for line in lines {
        let (name, value) = line.split_once(':').ok_or("a line has no colon")?;
        if name.is_empty() || !name.bytes().all(is_token) {
            return Err("a name is no token");
        }
        if value.bytes().any(|byte| byte.is_ascii_control() && byte != b'\t') {
            return Err("a value has control bytes");
        }
        let first = headers.insert(name.to_ascii_lowercase(), value.trim()).is_none();
        if !first
            && ["host", "content-length", "transfer-encoding"]
                .contains(&&*name.to_ascii_lowercase())
        {
            return Err("a header that counts is there twice");
        }
    }
    if !headers.contains_key("host") {
        return Err("it has no host");
    }
    let rest = &bytes[end + 4..];
    let body = match (headers.get("content-length"), headers.get("transfer-encoding")) {
        (Some(_), Some(_)) => return Err("it has two lengths"),
        (None, Some(&"chunked")) => chunked(rest)?,
        (None, Some(_)) => return Err("its coding is unknown"),
        (Some(length), None) => {
            let digits = !length.is_empty() && length.bytes().all(|byte| byte.is_ascii_digit());
            let length: usize = length.parse().map_err(|_| "its length is no number")?;
            if !digits {
                return Err("its length is no number");
            }
            rest.get(..length).map(|body| (body.to_vec(), length))
        }
        (None, None) => Some((Vec::new(), 0)),
    };
    Ok(body.map(|(body, length)| {
        let seen = Seen { case: case_of(target), head: head.to_ascii_lowercase(), body };
        (seen, end + 4 + length)
    }))
}

fn request_target(line: &str) -> Result<&str, &'static str> {
    let mut parts = line.split(' ');
    let (Some(method), Some(target), Some("HTTP/1.1"), None) =
        (parts.next(), parts.next(), parts.next(), parts.next())
    else {
        return Err("its first line is none of HTTP/1.1");
    };
    if method.is_empty() || !method.bytes().all(is_token) {
        return Err("its method is no token");
    }
    if !target.starts_with('/') || !target.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err("its target is no path");
    }
    Ok(target)
}

fn chunked(mut rest: &[u8]) -> Result<Option<(Vec<u8>, usize)>, &'static str> {
    let (mut body, whole) = (Vec::new(), rest.len());
    loop {
        let Some(end) = rest.windows(2).position(|window| window == b"\r\n") else {
            return Ok(None);
        };
        let size = str::from_utf8(&rest[..end]).map_err(|_| "a chunk's size is no number")?;
        if size.is_empty() || !size.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err("a chunk's size is no number");
        }
        let size = usize::from_str_radix(size, 16).map_err(|_| "a chunk's size is no number")?;
        let Some(chunk) = rest.get(end + 2..end + 2 + size + 2) else {
            return Ok(None);
        };
        if !chunk.ends_with(b"\r\n") {
            return Err("a chunk does not end where it should");
        }
        body.extend_from_slice(&chunk[..size]);
        rest = &rest[end + 2 + size + 2..];
        if size == 0 {
            return Ok(Some((body, whole - rest.len())));
        }
    }
}

fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

/// What `c=` says; what cannot be part of an id ends it.
fn case_of(target: &str) -> String {
    let value = target.split_once("?c=").map_or("", |(_, value)| value);
    let part = |c: char| c.is_ascii_alphanumeric() || "-._".contains(c);
    value.chars().take_while(|c| part(*c)).collect()
}
