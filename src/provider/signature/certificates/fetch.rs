//! The only requests that Onceward makes because a sender says so.

use std::sync::Arc;
use std::time::Duration;

use http::StatusCode;
use http::header::CONTENT_TYPE;
use reqwest::redirect::Policy;
use rustls::crypto::ring;
use rustls::{ClientConfig, RootCertStore};
use rustls_pki_types::TrustAnchor;
use tokio::sync::{Semaphore, SemaphorePermit};

use super::{CertificateError, DEADLINE};

/// A chain of three with long names is a third of it.
const BYTES_MAX: usize = 32 * 1024;
const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);
/// At a time, for all URLs of which none is known: more than that comes only from somebody who makes
/// them up.
const FETCHES_MAX: usize = 4;
/// At a time, for URLs by whose certificates a message was signed. Nobody else gets in between.
const CONFIRMED_FETCHES_MAX: usize = 2;
/// Who waits for one of the first. With more there would be no end to it within the deadline.
const WAITING_MAX: usize = 32;

/// Which of the fetches are meant for a URL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Room {
    /// A message for us was signed with what stands there.
    Confirmed,
    /// Nobody knows who wrote it.
    Unknown,
}

/// Fetches from a host that has been found to be the sender's.
#[derive(Debug)]
pub(super) struct Fetcher {
    client: reqwest::Client,
    anchors: Vec<TrustAnchor<'static>>,
    certificates: Rooms,
    keys: Rooms,
}

/// How many fetches there are at a time.
#[derive(Debug)]
struct Rooms {
    permits: Semaphore,
    confirmed: Semaphore,
    waiting: Semaphore,
}

/// What the host said to a question.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: StatusCode,
    pub(super) body: Vec<u8>,
}

impl Rooms {
    const fn new() -> Self {
        Self {
            permits: Semaphore::const_new(FETCHES_MAX),
            confirmed: Semaphore::const_new(CONFIRMED_FETCHES_MAX),
            waiting: Semaphore::const_new(WAITING_MAX),
        }
    }

    async fn enter(&self, room: Room) -> Result<SemaphorePermit<'_>, &'static str> {
        let closing = |_| "it is closing";
        match room {
            Room::Confirmed => self.confirmed.acquire().await.map_err(closing),
            Room::Unknown => {
                let waiting = self.waiting.try_acquire();
                let _waiting = waiting.map_err(|_| "too many others are asked for")?;
                self.permits.acquire().await.map_err(closing)
            }
        }
    }
}

impl Fetcher {
    pub(super) fn new() -> reqwest::Result<Self> {
        let mut anchors = webpki_roots::TLS_SERVER_ROOTS.to_vec();
        // Where TLS is intercepted, as in many companies, the machine knows by whom.
        let own = rustls_native_certs::load_native_certs().certs;
        let own = own.iter().filter_map(|root| webpki::anchor_from_trusted_cert(root).ok());
        anchors.extend(own.map(|anchor| anchor.to_owned()));
        Self::trusting(anchors, |builder| builder)
    }

    pub(super) fn trusting(
        anchors: Vec<TrustAnchor<'static>>,
        change: impl FnOnce(reqwest::ClientBuilder) -> reqwest::ClientBuilder,
    ) -> reqwest::Result<Self> {
        let mut builder = reqwest::Client::builder()
            .https_only(true)
            .no_proxy()
            .redirect(Policy::none())
            .retry(reqwest::retry::never())
            .referer(false)
            .connect_timeout(CONNECT_TIMEOUT)
            .timeout(DEADLINE);
        let roots = RootCertStore { roots: anchors.clone() };
        // If it cannot be made, reqwest's own is, and says why it cannot.
        let tls = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions();
        if let Ok(tls) = tls {
            let config = tls.with_root_certificates(roots).with_no_client_auth();
            builder = builder.tls_backend_preconfigured(config);
        }
        let client = change(builder).build()?;
        Ok(Self { client, anchors, certificates: Rooms::new(), keys: Rooms::new() })
    }

    /// Who may sign a certificate.
    pub(super) fn anchors(&self) -> &[TrustAnchor<'static>] {
        &self.anchors
    }

    /// What stands at `url`.
    pub(super) async fn fetch(&self, url: &str, room: Room) -> Result<Vec<u8>, CertificateError> {
        let _permit = self.certificates.enter(room).await.map_err(unreachable)?;
        let sent = self.client.get(url).send().await;
        let response = sent.map_err(|error| unreachable(why(&error)))?;
        match response.status() {
            StatusCode::OK => {}
            status if status.is_server_error() || status == StatusCode::TOO_MANY_REQUESTS => {
                return Err(unreachable("its host cannot answer now"));
            }
            status => return Err(CertificateError::Status(status.as_u16())),
        }
        let body = body(response).await.map_err(|error| unreachable(why(&error)))?;
        body.ok_or(CertificateError::NotACertificate("larger than a certificate"))
    }

    /// What the API at `url` says to a question in JSON.
    pub(super) async fn ask(
        &self,
        url: &str,
        question: String,
        room: Room,
    ) -> Result<Answer, CertificateError> {
        let failed = |error: reqwest::Error| CertificateError::KeyUnreachable(why(&error));
        let _permit = self.keys.enter(room).await.map_err(CertificateError::KeyUnreachable)?;
        let request = self.client.post(url).header(CONTENT_TYPE, "application/json");
        let response = request.body(question).send().await.map_err(failed)?;
        let status = response.status();
        let body = body(response).await.map_err(failed)?;
        let body = body.ok_or(CertificateError::NotAKey("larger than a key"))?;
        Ok(Answer { status, body })
    }
}

/// None: it is too large.
async fn body(mut response: reqwest::Response) -> reqwest::Result<Option<Vec<u8>>> {
    let mut bytes = Vec::new();
    while let Some(chunk) = response.chunk().await? {
        if bytes.len() + chunk.len() > BYTES_MAX {
            return Ok(None);
        }
        bytes.extend_from_slice(&chunk);
    }
    Ok(Some(bytes))
}

fn why(error: &reqwest::Error) -> &'static str {
    if error.is_timeout() {
        "it took too long"
    } else if error.is_connect() {
        "no connection"
    } else {
        "the connection broke"
    }
}

const fn unreachable(why: &'static str) -> CertificateError {
    CertificateError::Unreachable(why)
}
