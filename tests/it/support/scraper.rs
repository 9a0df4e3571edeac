//! Reads the metrics of a process.

use std::io;
use std::net::SocketAddr;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::Mutex;

use super::Reply;

/// Keeps one connection for all that it reads, so that a test which counts open connections knows
/// how many of them are its own.
#[derive(Debug, Default)]
pub struct Scraper(Mutex<Option<TcpStream>>);

impl Scraper {
    /// The page as it is now.
    pub async fn page(&self, admin: SocketAddr) -> String {
        let mut kept = self.0.lock().await;
        // Taken out meanwhile: whoever is stopped in the middle of an answer leaves no half of it.
        if let Some(stream) = kept.take()
            && let Ok((stream, page)) = read(stream).await
        {
            *kept = Some(stream);
            return page;
        }
        let (stream, page) = read(TcpStream::connect(admin).await.unwrap()).await.unwrap();
        *kept = Some(stream);
        page
    }
}

async fn read(mut stream: TcpStream) -> io::Result<(TcpStream, String)> {
    stream.write_all(b"GET /metrics HTTP/1.1\r\nhost: localhost\r\n\r\n").await?;
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await?);
    }
    let length = Reply::head(&head).header("content-length").unwrap().parse().unwrap();
    let mut page = vec![0; length];
    stream.read_exact(&mut page).await?;
    Ok((stream, String::from_utf8(page).unwrap()))
}

/// The value of a line of the metrics; 0 if there is none.
pub fn metric(page: &str, line: &str) -> f64 {
    let found = page.lines().find_map(|found| found.strip_prefix(line)?.strip_prefix(' '));
    found.map_or(0.0, |value| value.parse().unwrap())
}
