//! The stream below HTTP: it knows what left, whether the server still reads, and what it refused.

use std::io::{self, ErrorKind, IoSlice, Read as _};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll, ready};

use rustls::AlertDescription;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_rustls::client::TlsStream;

use super::socket::{Raw, Socket};

/// A socket, or TLS over one.
#[derive(Debug)]
pub(super) enum Stream<S = Socket> {
    Plain(S),
    Tls(Box<TlsStream<Raw<S>>>),
}

impl<S> Stream<S> {
    /// How many bytes TLS has sent; none where there is no TLS to divide what it was given.
    fn sent_by_tls(&self) -> u64 {
        match self {
            Self::Plain(_) => 0,
            Self::Tls(tls) => tls.get_ref().0.sent(),
        }
    }

    /// Reads what TLS has decrypted already.
    fn read_decrypted(&mut self, buf: &mut ReadBuf<'_>) {
        if let Self::Tls(tls) = self {
            let read = tls.get_mut().1.reader().read(buf.initialize_unfilled());
            buf.advance(read.unwrap_or_default());
        }
    }
}

/// What a connection has seen. It outlives the connection, so that it can be asked afterwards.
#[derive(Debug, Clone, Default)]
pub(super) struct Witness(Arc<Seen>);

#[derive(Debug, Default)]
struct Seen {
    written: AtomicU64,
    write_failed: AtomicBool,
    certificate_refused: AtomicBool,
}

impl Witness {
    /// How many bytes the connection has taken for writing, above TLS, and of a write that failed
    /// those that TLS had sent all the same.
    pub(super) fn written(&self) -> u64 {
        self.0.written.load(Ordering::Acquire)
    }

    /// Whether the server no longer takes anything.
    pub(super) fn write_failed(&self) -> bool {
        self.0.write_failed.load(Ordering::Acquire)
    }

    /// Has it see a failed write.
    #[cfg(test)]
    pub(super) fn sees_a_write_fail(&self) {
        self.0.write_failed.store(true, Ordering::Release);
    }

    /// Whether the server wanted a certificate, and refused to go on without one or with this one.
    pub(super) fn certificate_refused(&self) -> bool {
        self.0.certificate_refused.load(Ordering::Acquire)
    }
}

/// The stream of one connection, with its witness.
///
/// A server may answer before it has read the whole request, and close: RFC 9112, 9.6 describes how
/// the reset that follows takes the answer with it if the client gives up at its failing write. So
/// what is written then is dropped without an error, and what was received is still read.
#[derive(Debug)]
pub(super) struct Witnessed<S = Socket> {
    stream: Stream<S>,
    witness: Witness,
    /// The server wants a certificate and has not sent any data yet.
    may_refuse: bool,
    /// What reading ended with, to be told behind the data that came before it.
    failed: Option<io::Error>,
}

impl<S> Witnessed<S> {
    /// `asked` says whether the server, over TLS 1.3, asked for a certificate.
    pub(super) fn new(stream: Stream<S>, asked: bool) -> Self {
        Self { stream, witness: Witness::default(), may_refuse: asked, failed: None }
    }

    /// Whether an alert of the server's may still prove that it took nothing.
    #[cfg(test)]
    pub(super) const fn may_refuse(&self) -> bool {
        self.may_refuse
    }

    pub(super) fn witness(&self) -> Witness {
        self.witness.clone()
    }

    fn count(&self, bytes: u64) {
        self.witness.0.written.fetch_add(bytes, Ordering::AcqRel);
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> Witnessed<S> {
    /// Reads, and tells of an error when all that came before it was read. TLS tells of an alert as
    /// soon as it sees it, even behind data that came in the same piece.
    fn poll_stream(&mut self, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        let read = match (self.failed.take(), &mut self.stream) {
            (Some(failed), _) => Err(failed),
            (None, Stream::Plain(socket)) => ready!(Pin::new(socket).poll_read(cx, buf)),
            (None, Stream::Tls(tls)) => ready!(Pin::new(tls).poll_read(cx, buf)),
        };
        if let Err(error) = read {
            self.stream.read_decrypted(buf);
            if buf.filled().len() == before {
                return Poll::Ready(Err(error));
            }
            self.failed = Some(error);
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for Witnessed<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        match ready!(self.poll_stream(cx, buf)) {
            Ok(()) if buf.filled().len() > before => self.may_refuse = false,
            // A failed write has taken the reset that would be read here. An answer that ends with
            // its connection must not be complete because of it.
            Ok(()) if self.witness.write_failed() => {
                return Poll::Ready(Err(ErrorKind::ConnectionReset.into()));
            }
            Ok(()) => {}
            Err(error) => {
                if self.may_refuse && is_refusal(&error) {
                    self.witness.0.certificate_refused.store(true, Ordering::Release);
                }
                return Poll::Ready(Err(error));
            }
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Witnessed<S> {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.poll_write_vectored(cx, &[IoSlice::new(bytes)])
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let all = bytes.iter().map(|slice| slice.len()).sum();
        if self.witness.write_failed() {
            return Poll::Ready(Ok(all));
        }
        let before = self.stream.sent_by_tls();
        let taken = ready!(match &mut self.stream {
            Stream::Plain(socket) => Pin::new(socket).poll_write_vectored(cx, bytes),
            Stream::Tls(tls) => Pin::new(tls).poll_write_vectored(cx, bytes),
        });
        match taken {
            Ok(taken) => {
                self.count(taken as u64);
                Poll::Ready(Ok(taken))
            }
            Err(error) => {
                // TLS sends record by record: some may have left before the one that failed.
                self.count(self.stream.sent_by_tls() - before);
                if !is_close(&error) {
                    return Poll::Ready(Err(error));
                }
                self.witness.0.write_failed.store(true, Ordering::Release);
                Poll::Ready(Ok(all))
            }
        }
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.witness.write_failed() {
            return Poll::Ready(Ok(()));
        }
        let flushed = ready!(match &mut self.stream {
            Stream::Plain(socket) => Pin::new(socket).poll_flush(cx),
            Stream::Tls(tls) => Pin::new(tls).poll_flush(cx),
        });
        match flushed {
            Err(error) if is_close(&error) => {
                self.witness.0.write_failed.store(true, Ordering::Release);
                Poll::Ready(Ok(()))
            }
            flushed => Poll::Ready(flushed),
        }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.stream {
            Stream::Plain(socket) => Pin::new(socket).poll_shutdown(cx),
            Stream::Tls(tls) => Pin::new(tls).poll_shutdown(cx),
        }
    }
}

/// Whether a write failed because the other side has closed.
fn is_close(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::BrokenPipe | ErrorKind::ConnectionReset | ErrorKind::ConnectionAborted
    )
}

/// Whether the server refused a client's certificate, or that there was none.
///
/// With TLS 1.3 the client is done with the handshake before the server has looked at its
/// certificate (RFC 8446, 4.4.2.4 and the figure in 2), so the refusal comes when the request may
/// have been sent already. Until the certificate is accepted the server takes no data; RFC 8446, 6.2
/// says what each of these alerts means.
fn is_refusal(error: &io::Error) -> bool {
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
    let Some(rustls::Error::AlertReceived(alert)) = inner else { return false };
    [
        AlertDescription::CertificateRequired,
        AlertDescription::BadCertificate,
        AlertDescription::UnsupportedCertificate,
        AlertDescription::CertificateRevoked,
        AlertDescription::CertificateExpired,
        AlertDescription::CertificateUnknown,
        AlertDescription::UnknownCA,
        AlertDescription::AccessDenied,
    ]
    .contains(alert)
}
