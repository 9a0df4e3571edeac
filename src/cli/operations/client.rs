//! Calls to the admin API.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use http::HeaderValue;
use reqwest::redirect::Policy;
use reqwest::{Method, Response, Url, header};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use zeroize::Zeroizing;

use super::error::{Cause, Error, Refusal};
use super::text::plain;
use crate::admin::ADDRESS;
use crate::admin::api::{
    Acknowledge, Acknowledged, Decided, EMPTIED, Forget, Operation, Page, Resolve, ResolveMany,
    ResolvedMany, STORE,
};
use crate::operation::OperationId;
use crate::problem::Document;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
const TIMEOUT: Duration = Duration::from_secs(30);
/// To resolve many operations takes a write to the store for each. The process begins no further
/// one after a minute.
const MANY_TIMEOUT: Duration = Duration::from_mins(5);
/// The longest answer that is read. A page of operations with all their attempts is far below it.
const ANSWER_BYTES_MAX: usize = 64 * 1024 * 1024;
const TOKEN_BYTES_MAX: u64 = 64 * 1024;

/// Which process to call, and with which token.
#[derive(Debug, clap::Args)]
pub(in crate::cli) struct Connection {
    // No `env` of clap's, for the reason given at `decider::name`.
    #[arg(long, global = true, display_order = 100, value_name = "URL")]
    #[arg(help = format!("The admin listener [env: ONCEWARD_ADMIN_URL] [default: http://{ADDRESS}]"))]
    admin: Option<String>,
    /// A file with the token; without it, `ONCEWARD_ADMIN_TOKEN` has it
    #[arg(long, global = true, display_order = 100, value_name = "FILE")]
    token_file: Option<PathBuf>,
}

impl Connection {
    /// The URL that was given, or that of the environment, or the default.
    fn url(&self) -> Result<String, Error> {
        if let Some(given) = &self.admin {
            return Ok(given.clone());
        }
        let set = std::env::var_os("ONCEWARD_ADMIN_URL");
        let set = set.map(|url| url.into_string().map_err(|_| Error::Url)).transpose()?;
        Ok(set.unwrap_or_else(|| format!("http://{ADDRESS}")))
    }
}

/// The admin API of one process.
#[derive(Debug)]
pub(in crate::cli) struct Client {
    http: reqwest::Client,
    base: Url,
    authorization: Option<HeaderValue>,
    /// Whether an answer has said that the store came back empty.
    store_is_emptied: AtomicBool,
}

impl Client {
    /// Reads the token and prepares calls. Nothing is called yet.
    pub(in crate::cli) fn open(connection: &Connection) -> Result<Self, Error> {
        let base = connection.url()?;
        let base = Url::parse(&base).ok().filter(is_plain).ok_or(Error::Url)?;
        let token = match &connection.token_file {
            Some(file) => Some(token_of(file)?),
            None => std::env::var_os("ONCEWARD_ADMIN_TOKEN")
                .map(|token| token.into_string().map(Zeroizing::new).map_err(|_| Error::Token))
                .transpose()?,
        };
        let token = token.filter(|token| connection.token_file.is_some() || !token.is_empty());
        let authorization = token.map(|token| bearer(&token).ok_or(Error::Token)).transpose()?;
        let http = reqwest::Client::builder()
            // A proxy that the environment names would see the token.
            .no_proxy()
            // A redirect could send the token and the decision to another server.
            .redirect(Policy::none())
            // A decision that gets no answer may have been made. The operator has to look first.
            .retry(reqwest::retry::never())
            .connect_timeout(CONNECT_TIMEOUT)
            .build()
            .map_err(|error| Error::Connect { url: base.to_string(), source: Cause::of(&error) })?;
        Ok(Self { http, base, authorization, store_is_emptied: AtomicBool::new(false) })
    }

    /// What the operator should know of the answers.
    pub(super) fn warning(&self) -> &'static str {
        if self.store_is_emptied.load(Ordering::Relaxed) {
            "warning: the store came back empty, and what it had before is not shown: see \
             `onceward store acknowledge`\n"
        } else {
            ""
        }
    }

    /// Shows one operation as JSON, which is printed as it is.
    pub(super) async fn show(&self, id: OperationId) -> Result<Value, Error> {
        let call = Call::new(Method::GET, format!("operations/{id}"));
        self.call(call).await.map_err(|error| error.about(id))
    }

    /// Shows one operation.
    pub(super) async fn operation(&self, id: OperationId) -> Result<Operation, Error> {
        let call = Call::new(Method::GET, format!("operations/{id}"));
        self.call(call).await.map_err(|error| error.about(id))
    }

    /// Lists one page of operations, with these parameters.
    pub(super) async fn list(&self, query: &[(&str, &str)]) -> Result<Page<Value>, Error> {
        self.call(Call { query, ..Call::new(Method::GET, "operations".to_owned()) }).await
    }

    /// Resolves one operation.
    pub(super) async fn resolve(&self, id: OperationId, body: &Resolve) -> Result<Decided, Error> {
        let call = Call::new(Method::POST, format!("operations/{id}/resolve")).with(body);
        self.call(call).await.map_err(|error| error.about(id))
    }

    /// Forgets one operation.
    pub(super) async fn forget(&self, id: OperationId, body: &Forget) -> Result<Decided, Error> {
        let call = Call::new(Method::DELETE, format!("operations/{id}")).with(body);
        self.call(call).await.map_err(|error| error.about(id))
    }

    /// Resolves many operations, or says which ones it would resolve.
    pub(super) async fn resolve_many(&self, body: &ResolveMany) -> Result<ResolvedMany, Error> {
        let call = Call::new(Method::POST, "operations/resolve".to_owned()).with(body);
        self.call(Call { timeout: MANY_TIMEOUT, ..call }).await
    }

    /// Tells the process that the operator knows that the store came back empty.
    pub(in crate::cli) async fn acknowledge(
        &self,
        body: &Acknowledge,
    ) -> Result<Acknowledged, Error> {
        self.call(Call::new(Method::POST, "store/acknowledge".to_owned()).with(body)).await
    }

    async fn call<T: DeserializeOwned>(&self, call: Call<'_>) -> Result<T, Error> {
        let mut url = self.base.clone();
        // The base may have a path of its own, where a proxy stands in front of the admin listener.
        if let Ok(mut path) = url.path_segments_mut() {
            path.pop_if_empty().push("api").extend(call.path.split('/'));
        }
        if !call.query.is_empty() {
            url.query_pairs_mut().extend_pairs(call.query);
        }
        let may_have_changed = call.method != Method::GET;
        let mut request = self.http.request(call.method, url).timeout(call.timeout);
        if let Some(authorization) = &self.authorization {
            request = request.header(header::AUTHORIZATION, authorization);
        }
        if let Some(body) = &call.body {
            request = request.json(body);
        }
        let failed = |error: &reqwest::Error| {
            let url = self.base.to_string();
            let source = Cause::of(error);
            // Without a connection nothing was sent, so nothing can have changed.
            if error.is_connect() {
                Error::Connect { url, source }
            } else {
                Error::NoAnswer { url, source, may_have_changed }
            }
        };
        let mut response = request.send().await.map_err(|error| failed(&error))?;
        if response.headers().get(STORE).is_some_and(|value| value == EMPTIED) {
            self.store_is_emptied.store(true, Ordering::Relaxed);
        }
        // Whatever listens at the address may send an endless body.
        let mut body = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(|error| failed(&error))? {
            if body.len() + chunk.len() > ANSWER_BYTES_MAX {
                return Err(self.not_admin(&response));
            }
            body.extend_from_slice(&chunk);
        }
        self.read(&response, &body)
    }

    fn read<T: DeserializeOwned>(&self, response: &Response, body: &[u8]) -> Result<T, Error> {
        if response.status().is_success() {
            // Two steps: something that is no JSON comes from another server, and JSON that does
            // not fit comes from another version of Onceward.
            let json: Value = serde_json::from_slice(body).map_err(|_| self.not_admin(response))?;
            return serde_json::from_value(json).map_err(|_| Error::NotUnderstood);
        }
        let document: Document<'static> =
            serde_json::from_slice(body).map_err(|_| self.not_admin(response))?;
        // Only the listener for senders has routes.
        if document.code == "no-route" {
            return Err(self.not_admin(response));
        }
        let retry_after = response.headers().get(header::RETRY_AFTER);
        let retry_after = retry_after.and_then(|value| value.to_str().ok()?.parse().ok());
        match (&document.state, document.attempt) {
            (Some(state), Some(attempt)) => Err(Error::WrongState { state: plain(state), attempt }),
            (Some(_) | None, _) => Err(Error::Refused(Box::new(Refusal { document, retry_after }))),
        }
    }

    fn not_admin(&self, response: &Response) -> Error {
        Error::NotAdmin { url: self.base.to_string(), status: response.status().as_u16() }
    }
}

/// One call to a path below `/api`.
#[derive(Debug)]
struct Call<'a> {
    method: Method,
    path: String,
    query: &'a [(&'a str, &'a str)],
    body: Option<Value>,
    timeout: Duration,
}

impl Call<'_> {
    const fn new(method: Method, path: String) -> Self {
        Self { method, path, query: &[], body: None, timeout: TIMEOUT }
    }

    fn with(self, body: &impl Serialize) -> Self {
        // Serialization cannot fail: the bodies have only texts, numbers and lists.
        Self { body: Some(serde_json::to_value(body).unwrap_or_default()), ..self }
    }
}

/// Whether a URL names a server and at most a path there. A user and a password in it would be
/// taken for a login that the admin listener does not have.
fn is_plain(url: &Url) -> bool {
    matches!(url.scheme(), "http" | "https")
        && url.has_host()
        && url.username().is_empty()
        && url.password().is_none()
        && url.query().is_none()
        && url.fragment().is_none()
}

/// Reads the token in a file. One newline at its end is cut off, as the process does with its own
/// file: editors and `echo` write one.
fn token_of(file: &Path) -> Result<Zeroizing<String>, Error> {
    use std::io::Read as _;
    let unreadable = |error| Error::TokenFile(file.to_owned(), error);
    let mut token = Zeroizing::new(String::new());
    // Somebody may name a device or a very large file.
    let opened = std::fs::File::open(file).map_err(unreadable)?;
    opened.take(TOKEN_BYTES_MAX).read_to_string(&mut token).map_err(unreadable)?;
    let cut = token.strip_suffix("\r\n").or_else(|| token.strip_suffix('\n'));
    Ok(cut.map(|cut| Zeroizing::new(cut.to_owned())).unwrap_or(token))
}

/// The header that carries a token. None if the token is empty or could not be sent in a header.
fn bearer(token: &str) -> Option<HeaderValue> {
    if token.is_empty() || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
        return None;
    }
    let value = Zeroizing::new(format!("Bearer {token}"));
    let mut value = HeaderValue::from_str(&value).ok()?;
    value.set_sensitive(true);
    Some(value)
}
