//! Fetches of certificates and keys: the only requests that Onceward makes because a request says
//! so.

use std::sync::Arc;
use std::time::Duration;

use http::StatusCode;
use http::header::CONTENT_TYPE;
use reqwest::redirect::Policy;
use rustls::crypto::ring;
use rustls::{ClientConfig, RootCertStore};
use rustls_pki_types::TrustAnchor;
use tokio::sync::{Semaphore, SemaphorePermit};

use super::error::CertificateError;

/// A chain of three certificates with long names has a third of these bytes.
const BYTES_MAX: usize = 32 * 1024;
/// The limit for a fetch as a whole: waiting for other fetches, connecting, reading. It is below
/// the patience of every sender that signs with a certificate.
pub(super) const DEADLINE: Duration = Duration::from_secs(5);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);
/// How many unconfirmed URLs are fetched at a time. Only somebody who makes URLs up needs more.
const FETCHES_MAX: usize = 4;
/// How many confirmed URLs are fetched at a time. Made-up URLs do not count against this limit.
const CONFIRMED_FETCHES_MAX: usize = 2;
/// How many fetches of unconfirmed URLs may wait. More could not be made within the deadline.
const WAITING_MAX: usize = 32;

/// The quota that a fetch counts against.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FetchQuota {
    /// A genuine request was signed with the certificate or key.
    Confirmed,
    /// Anybody may have written the request that names it.
    Unconfirmed,
}

/// Fetches from hosts that a policy or the configuration has named.
#[derive(Debug)]
pub(super) struct Fetcher {
    client: reqwest::Client,
    anchors: Vec<TrustAnchor<'static>>,
    certificates: FetchQuotas,
    keys: FetchQuotas,
}

/// Limits how many fetches are made at a time.
#[derive(Debug)]
struct FetchQuotas {
    permits: Semaphore,
    confirmed: Semaphore,
    waiting: Semaphore,
}

/// The answer of a sender's API.
#[derive(Debug)]
pub(super) struct ApiResponse {
    pub(super) status: StatusCode,
    pub(super) body: Vec<u8>,
}

impl FetchQuotas {
    const fn new() -> Self {
        Self {
            permits: Semaphore::const_new(FETCHES_MAX),
            confirmed: Semaphore::const_new(CONFIRMED_FETCHES_MAX),
            waiting: Semaphore::const_new(WAITING_MAX),
        }
    }

    /// Waits until a fetch may be made. The error says why none may.
    async fn enter(&self, quota: FetchQuota) -> Result<SemaphorePermit<'_>, &'static str> {
        let closing = |_| "it is closing";
        match quota {
            FetchQuota::Confirmed => self.confirmed.acquire().await.map_err(closing),
            FetchQuota::Unconfirmed => {
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
        // Many companies intercept TLS with an authority of their own, which their machines trust.
        let own = rustls_native_certs::load_native_certs().certs;
        let own = own.iter().filter_map(|root| webpki::anchor_from_trusted_cert(root).ok());
        anchors.extend(own.map(|anchor| anchor.to_owned()));
        Self::trusting(anchors, |builder| builder)
    }

    pub(super) fn trusting(
        anchors: Vec<TrustAnchor<'static>>,
        change: impl FnOnce(reqwest::ClientBuilder) -> reqwest::ClientBuilder,
    ) -> reqwest::Result<Self> {
        // A redirect or a proxy would lead away from the host that was allowed, and a retry would
        // not count against the quotas.
        let mut builder = reqwest::Client::builder()
            .https_only(true)
            .no_proxy()
            .redirect(Policy::none())
            .retry(reqwest::retry::never())
            .referer(false)
            .connect_timeout(CONNECT_TIMEOUT)
            .timeout(DEADLINE);
        let roots = RootCertStore { roots: anchors.clone() };
        // If this configuration cannot be made, reqwest makes its own one below, and reports the
        // error.
        let tls = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions();
        if let Ok(tls) = tls {
            let config = tls.with_root_certificates(roots).with_no_client_auth();
            builder = builder.tls_backend_preconfigured(config);
        }
        let client = change(builder).build()?;
        Ok(Self { client, anchors, certificates: FetchQuotas::new(), keys: FetchQuotas::new() })
    }

    /// The roots that may have signed a certificate.
    pub(super) fn anchors(&self) -> &[TrustAnchor<'static>] {
        &self.anchors
    }

    /// The bytes at `url`.
    pub(super) async fn fetch(
        &self,
        url: &str,
        quota: FetchQuota,
    ) -> Result<Vec<u8>, CertificateError> {
        let _permit = self.certificates.enter(quota).await.map_err(unreachable)?;
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

    /// The answer of the API at `url` to a question in JSON.
    pub(super) async fn ask(
        &self,
        url: &str,
        question: String,
        quota: FetchQuota,
    ) -> Result<ApiResponse, CertificateError> {
        let failed = |error: reqwest::Error| CertificateError::KeyUnreachable(why(&error));
        let _permit = self.keys.enter(quota).await.map_err(CertificateError::KeyUnreachable)?;
        let request = self.client.post(url).header(CONTENT_TYPE, "application/json");
        let response = request.body(question).send().await.map_err(failed)?;
        let status = response.status();
        let body = body(response).await.map_err(failed)?;
        let body = body.ok_or(CertificateError::NotAKey("larger than a key"))?;
        Ok(ApiResponse { status, body })
    }
}

/// The body of an answer. None: it is too large.
async fn body(mut response: reqwest::Response) -> reqwest::Result<Option<Vec<u8>>> {
    let mut bytes = Vec::new();
    // Counted while it is read: `Content-Length` may be absent.
    while let Some(chunk) = response.chunk().await? {
        if bytes.len() + chunk.len() > BYTES_MAX {
            return Ok(None);
        }
        bytes.extend_from_slice(&chunk);
    }
    Ok(Some(bytes))
}

/// What failed, without the URL, which may hold a secret.
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
