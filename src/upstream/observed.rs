//! The stream under HTTP. It observes how much was written, whether the server still reads, and
//! whether the server refused a client certificate.
//!
//! These three facts decide whether a request can be sent again, so they are recorded here, where
//! the bytes pass, and not derived from an error of hyper's.

use std::io::{self, ErrorKind, IoSlice, Read as _};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll, ready};

use rustls::AlertDescription;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_rustls::client::TlsStream;

use super::socket::{CountingSocket, Socket};

/// A socket, or TLS over a socket.
#[derive(Debug)]
pub(super) enum Transport<S = Socket> {
    Plain(S),
    Tls(Box<TlsStream<CountingSocket<S>>>),
}

impl<S> Transport<S> {
    /// How many bytes TLS has sent, as records. Zero without TLS, where a write either takes bytes
    /// or fails.
    fn sent_by_tls(&self) -> u64 {
        match self {
            Self::Plain(_) => 0,
            Self::Tls(tls) => tls.get_ref().0.sent(),
        }
    }

    /// Reads what TLS has already decrypted.
    fn read_decrypted(&mut self, buf: &mut ReadBuf<'_>) {
        if let Self::Tls(tls) = self {
            let read = tls.get_mut().1.reader().read(buf.initialize_unfilled());
            buf.advance(read.unwrap_or_default());
        }
    }
}

/// What was observed on one connection. It outlives the connection: the count of bytes is final
/// only when nothing can be written any more.
#[derive(Debug, Clone, Default)]
pub(super) struct Observations(Arc<Observed>);

#[derive(Debug, Default)]
struct Observed {
    bytes_written: AtomicU64,
    write_failed: AtomicBool,
    certificate_refused: AtomicBool,
}

impl Observations {
    /// How many bytes the connection has accepted for writing, above TLS. If a write failed, the
    /// count includes the bytes that TLS had sent before the failure.
    pub(super) fn bytes_written(&self) -> u64 {
        self.0.bytes_written.load(Ordering::Acquire)
    }

    /// Whether a write failed because the server has closed its side.
    pub(super) fn write_failed(&self) -> bool {
        self.0.write_failed.load(Ordering::Acquire)
    }

    /// Records a failed write.
    #[cfg(test)]
    pub(super) fn record_write_failure(&self) {
        self.0.write_failed.store(true, Ordering::Release);
    }

    /// Whether the server asked for a client certificate and refused to go on without one.
    pub(super) fn certificate_refused(&self) -> bool {
        self.0.certificate_refused.load(Ordering::Acquire)
    }
}

/// The stream of one connection, with its observations.
///
/// A server may answer before it has read the whole request, and close the connection. RFC 9112,
/// 9.6 describes how the answer is lost if the client stops reading because its write failed. So a
/// write that fails like this reports success and discards its bytes, and reading goes on.
#[derive(Debug)]
pub(super) struct ObservedStream<S = Socket> {
    transport: Transport<S>,
    observations: Observations,
    /// The server asked for a client certificate and has sent no data since then.
    may_refuse_certificate: bool,
    /// An error of reading that is reported after the data that arrived before it.
    deferred_error: Option<io::Error>,
}

impl<S> ObservedStream<S> {
    /// `may_refuse_certificate`: whether the server asked for a client certificate over TLS 1.3.
    pub(super) fn new(transport: Transport<S>, may_refuse_certificate: bool) -> Self {
        Self {
            transport,
            observations: Observations::default(),
            may_refuse_certificate,
            deferred_error: None,
        }
    }

    /// Whether an alert from the server can still prove that it took nothing.
    #[cfg(test)]
    pub(super) const fn may_refuse_certificate(&self) -> bool {
        self.may_refuse_certificate
    }

    pub(super) fn observations(&self) -> Observations {
        self.observations.clone()
    }

    fn count(&self, bytes: u64) {
        self.observations.0.bytes_written.fetch_add(bytes, Ordering::AcqRel);
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> ObservedStream<S> {
    /// Reads. An error is reported only when all data that arrived before it was read: rustls
    /// reports an alert as soon as it processes it, even if data of the same read comes first.
    fn poll_transport(
        &mut self,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        let read = match (self.deferred_error.take(), &mut self.transport) {
            (Some(error), _) => Err(error),
            (None, Transport::Plain(socket)) => ready!(Pin::new(socket).poll_read(cx, buf)),
            (None, Transport::Tls(tls)) => ready!(Pin::new(tls).poll_read(cx, buf)),
        };
        if let Err(error) = read {
            self.transport.read_decrypted(buf);
            if buf.filled().len() == before {
                return Poll::Ready(Err(error));
            }
            self.deferred_error = Some(error);
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for ObservedStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        match ready!(self.poll_transport(cx, buf)) {
            // Once the server has sent data, an alert no longer proves that it took nothing.
            Ok(()) if buf.filled().len() > before => self.may_refuse_certificate = false,
            // The failed write has consumed the socket's error, so the reset reads as a plain end.
            // An answer whose body ends with its connection (RFC 9112, 6.3) must not count as
            // complete in this case.
            Ok(()) if self.observations.write_failed() => {
                return Poll::Ready(Err(ErrorKind::ConnectionReset.into()));
            }
            Ok(()) => {}
            Err(error) => {
                if self.may_refuse_certificate && is_certificate_refusal(&error) {
                    self.observations.0.certificate_refused.store(true, Ordering::Release);
                }
                return Poll::Ready(Err(error));
            }
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for ObservedStream<S> {
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
        if self.observations.write_failed() {
            return Poll::Ready(Ok(all));
        }
        let before = self.transport.sent_by_tls();
        let taken = ready!(match &mut self.transport {
            Transport::Plain(socket) => Pin::new(socket).poll_write_vectored(cx, bytes),
            Transport::Tls(tls) => Pin::new(tls).poll_write_vectored(cx, bytes),
        });
        match taken {
            Ok(taken) => {
                self.count(taken as u64);
                Poll::Ready(Ok(taken))
            }
            Err(error) => {
                // TLS sends record by record. Some records may have left before the record that
                // failed, and the server may have read them.
                self.count(self.transport.sent_by_tls() - before);
                if !is_close(&error) {
                    return Poll::Ready(Err(error));
                }
                self.observations.0.write_failed.store(true, Ordering::Release);
                Poll::Ready(Ok(all))
            }
        }
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.observations.write_failed() {
            return Poll::Ready(Ok(()));
        }
        let flushed = ready!(match &mut self.transport {
            Transport::Plain(socket) => Pin::new(socket).poll_flush(cx),
            Transport::Tls(tls) => Pin::new(tls).poll_flush(cx),
        });
        match flushed {
            Err(error) if is_close(&error) => {
                self.observations.0.write_failed.store(true, Ordering::Release);
                Poll::Ready(Ok(()))
            }
            flushed => Poll::Ready(flushed),
        }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.transport {
            Transport::Plain(socket) => Pin::new(socket).poll_shutdown(cx),
            Transport::Tls(tls) => Pin::new(tls).poll_shutdown(cx),
        }
    }
}

/// Whether a write failed because the server has closed the connection.
fn is_close(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::BrokenPipe | ErrorKind::ConnectionReset | ErrorKind::ConnectionAborted
    )
}

/// Whether the server refused the client's certificate, or refused to go on without one.
///
/// With TLS 1.3 the client has finished the handshake before the server looks at the certificate
/// (RFC 8446, 4.4.2.4 and the figure in section 2). So the refusal may come after the request was
/// written. The server reads no data before it has accepted the certificate, so the refusal proves
/// that the request was not taken. RFC 8446, 6.2 defines these alerts.
fn is_certificate_refusal(error: &io::Error) -> bool {
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
