//! A TCP socket that can be inspected while a connection uses it, and a wrapper that counts bytes.

use std::io;
use std::mem::MaybeUninit;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use socket2::SockRef;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};

/// A TCP socket, as hyper reads and writes it.
#[derive(Debug)]
pub(super) struct Socket {
    /// tokio knows without a further call of the kernel that a read which did not fill its buffer
    /// has emptied the socket.
    reader: OwnedReadHalf,
    shared: SharedSocket,
}

/// The same socket, as the pool inspects it.
#[derive(Debug, Clone)]
pub(super) struct SharedSocket(Arc<OwnedWriteHalf>);

impl Socket {
    pub(super) fn new(stream: TcpStream) -> Self {
        let (reader, writer) = stream.into_split();
        Self { reader, shared: SharedSocket(Arc::new(writer)) }
    }

    /// The socket for the pool.
    pub(super) fn shared(&self) -> SharedSocket {
        self.shared.clone()
    }
}

impl SharedSocket {
    fn stream(&self) -> &TcpStream {
        (*self.0).as_ref()
    }

    /// Whether an idle socket can be used: it is open, and holds no bytes that nobody asked for.
    ///
    /// This asks the kernel directly. tokio's readiness could be out of date, because the event of
    /// a close may wait for the driver while this task runs.
    pub(super) fn is_quiet(&self) -> bool {
        let mut byte = [MaybeUninit::uninit()];
        let peeked = SockRef::from(self.stream()).peek(&mut byte);
        // A closed socket gives zero bytes, and a socket with bytes that nobody asked for gives
        // some. Both results are `Ok`.
        matches!(peeked, Err(error) if error.kind() == io::ErrorKind::WouldBlock)
    }

    /// Waits until an idle socket is no longer quiet: it has bytes, was closed, or failed.
    pub(super) async fn readable(&self) {
        let _bytes_or_end = self.stream().peek(&mut [0]).await;
    }
}

impl AsyncRead for Socket {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.reader).poll_read(cx, buf)
    }
}

impl AsyncWrite for Socket {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.poll_write_vectored(cx, &[io::IoSlice::new(bytes)])
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let stream = self.shared.stream();
        loop {
            ready!(stream.poll_write_ready(cx))?;
            match stream.try_write_vectored(bytes) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                result => return Poll::Ready(result),
            }
        }
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        // A TCP socket has no buffer of its own above the kernel's.
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        // The `poll_shutdown` of the half needs exclusive access, and the half is shared.
        let stream = SockRef::from(self.shared.stream());
        Poll::Ready(stream.shutdown(std::net::Shutdown::Write))
    }
}

/// The socket below TLS, with a count of the bytes that it has sent.
#[derive(Debug)]
pub(super) struct CountingSocket<S> {
    socket: S,
    sent: u64,
}

impl<S> CountingSocket<S> {
    pub(super) const fn new(socket: S) -> Self {
        Self { socket, sent: 0 }
    }

    pub(super) const fn sent(&self) -> u64 {
        self.sent
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for CountingSocket<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_read(cx, buf)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for CountingSocket<S> {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.poll_write_vectored(cx, &[io::IoSlice::new(bytes)])
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let sent = ready!(Pin::new(&mut self.socket).poll_write_vectored(cx, bytes))?;
        self.sent += sent as u64;
        Poll::Ready(Ok(sent))
    }

    fn is_write_vectored(&self) -> bool {
        self.socket.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_shutdown(cx)
    }
}
