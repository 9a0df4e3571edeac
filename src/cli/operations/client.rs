//! Calls to the admin API.

use std::path::{Path, PathBuf};
use std::time::Duration;

use http::HeaderValue;
use reqwest::redirect::Policy;
use reqwest::{Method, Response, Url, header};
use serde_json::Value;
use zeroize::Zeroizing;

use super::error::{Cause, Error, Problem};
use super::text::plain;
use crate::operation::OperationId;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
const TIMEOUT: Duration = Duration::from_secs(30);
/// To resolve many takes a write to the store for each.
const MANY_TIMEOUT: Duration = Duration::from_mins(5);
/// A page of operations with all their attempts is far below this.
const ANSWER_BYTES_MAX: usize = 64 * 1024 * 1024;
const TOKEN_BYTES_MAX: u64 = 64 * 1024;

/// Whom to call.
#[derive(Debug, clap::Args)]
pub(in crate::cli) struct Connection {
    /// The admin listener
    #[arg(
        long,
        global = true,
        display_order = 100,
        value_name = "URL",
        env = "ONCEWARD_ADMIN_URL",
        hide_env_values = true,
        default_value = "http://127.0.0.1:8081"
    )]
    admin: String,
    /// A file with the token; without it, `ONCEWARD_ADMIN_TOKEN` has it
    #[arg(long, global = true, display_order = 100, value_name = "FILE")]
    token_file: Option<PathBuf>,
}

/// The admin API of one process.
#[derive(Debug)]
pub(in crate::cli) struct Client {
    http: reqwest::Client,
    base: Url,
    authorization: Option<HeaderValue>,
}

impl Client {
    /// Nothing is called yet.
    pub(in crate::cli) fn open(connection: &Connection) -> Result<Self, Error> {
        let base = Url::parse(&connection.admin).ok().filter(is_plain).ok_or(Error::Url)?;
        let token = match &connection.token_file {
            Some(file) => Some(token_of(file)?),
            None => std::env::var("ONCEWARD_ADMIN_TOKEN").ok().map(Zeroizing::new),
        };
        let token = token.filter(|token| connection.token_file.is_some() || !token.is_empty());
        let authorization = token.map(|token| bearer(&token).ok_or(Error::Token)).transpose()?;
        let http = reqwest::Client::builder()
            // what the operator calls is named by the operator alone
            .no_proxy()
            .redirect(Policy::none())
            .retry(reqwest::retry::never())
            .connect_timeout(CONNECT_TIMEOUT)
            .build()
            .map_err(|error| Error::Connect { url: base.to_string(), source: Cause::of(&error) })?;
        Ok(Self { http, base, authorization })
    }

    /// One operation.
    pub(super) async fn show(&self, id: OperationId) -> Result<Value, Error> {
        let call = Call::new(Method::GET, id.to_string());
        self.call(call).await.map_err(|error| error.about(id))
    }

    /// A page of a list, with these parameters.
    pub(super) async fn list(&self, query: &[(&str, &str)]) -> Result<Value, Error> {
        self.call(Call { query, ..Call::new(Method::GET, String::new()) }).await
    }

    /// Resolves one operation.
    pub(super) async fn resolve(&self, id: OperationId, body: Value) -> Result<Value, Error> {
        let call = Call::new(Method::POST, format!("{id}/resolve"));
        let call = Call { body: Some(body), ..call };
        self.call(call).await.map_err(|error| error.about(id))
    }

    /// Forgets one operation.
    pub(super) async fn forget(&self, id: OperationId, body: Value) -> Result<Value, Error> {
        let call = Call { body: Some(body), ..Call::new(Method::DELETE, id.to_string()) };
        self.call(call).await.map_err(|error| error.about(id))
    }

    /// Resolves many operations, or says which ones it would.
    pub(super) async fn resolve_many(&self, body: Value) -> Result<Value, Error> {
        let call = Call::new(Method::POST, "resolve".to_owned());
        self.call(Call { body: Some(body), timeout: MANY_TIMEOUT, ..call }).await
    }

    /// Says that it is known that the store came back empty.
    pub(in crate::cli) async fn acknowledge(&self, body: Value) -> Result<Value, Error> {
        let call = Call::new(Method::POST, "acknowledge".to_owned());
        self.call(Call { about: "store", body: Some(body), ..call }).await
    }

    async fn call(&self, call: Call<'_>) -> Result<Value, Error> {
        let mut url = self.base.clone();
        if let Ok(mut path) = url.path_segments_mut() {
            let below = call.path.split('/').filter(|part| !part.is_empty());
            path.pop_if_empty().extend(["api", call.about]).extend(below);
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
            let (url, source) = (self.base.to_string(), Cause::of(error));
            if error.is_connect() {
                Error::Connect { url, source }
            } else {
                Error::NoAnswer { url, source, may_have_changed }
            }
        };
        let mut response = request.send().await.map_err(|error| failed(&error))?;
        let mut body = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(|error| failed(&error))? {
            if body.len() + chunk.len() > ANSWER_BYTES_MAX {
                return Err(self.stranger(&response));
            }
            body.extend_from_slice(&chunk);
        }
        self.read(&response, &body)
    }

    fn read(&self, response: &Response, body: &[u8]) -> Result<Value, Error> {
        if response.status().is_success() {
            return serde_json::from_slice(body).map_err(|_| self.stranger(response));
        }
        let problem = serde_json::from_slice(body).ok().filter(Problem::is_of_admin);
        let mut problem = problem.ok_or_else(|| self.stranger(response))?;
        let retry_after = response.headers().get(header::RETRY_AFTER);
        problem.retry_after = retry_after.and_then(|value| value.to_str().ok()?.parse().ok());
        match (&problem.state, problem.attempt) {
            (Some(state), Some(attempt)) => Err(Error::Stands { state: plain(state), attempt }),
            (Some(_) | None, _) => Err(Error::Refused(Box::new(problem))),
        }
    }

    fn stranger(&self, response: &Response) -> Error {
        Error::Stranger { url: self.base.to_string(), status: response.status().as_u16() }
    }
}

/// One call, below `/api/operations` or what else it is about.
#[derive(Debug)]
struct Call<'a> {
    about: &'static str,
    method: Method,
    path: String,
    query: &'a [(&'a str, &'a str)],
    body: Option<Value>,
    timeout: Duration,
}

impl Call<'_> {
    const fn new(method: Method, path: String) -> Self {
        Self { about: "operations", method, path, query: &[], body: None, timeout: TIMEOUT }
    }
}

/// Whether it names a server, and at most a path there.
fn is_plain(url: &Url) -> bool {
    matches!(url.scheme(), "http" | "https")
        && url.has_host()
        && url.username().is_empty()
        && url.password().is_none()
        && url.query().is_none()
        && url.fragment().is_none()
}

/// The token in a file. One newline at its end is cut off, as the proxy does.
fn token_of(file: &Path) -> Result<Zeroizing<String>, Error> {
    use std::io::Read as _;
    let unreadable = |error| Error::TokenFile(file.to_owned(), error);
    let mut token = Zeroizing::new(String::new());
    let opened = std::fs::File::open(file).map_err(unreadable)?;
    opened.take(TOKEN_BYTES_MAX).read_to_string(&mut token).map_err(unreadable)?;
    let cut = token.strip_suffix("\r\n").or_else(|| token.strip_suffix('\n'));
    Ok(cut.map(|cut| Zeroizing::new(cut.to_owned())).unwrap_or(token))
}

fn bearer(token: &str) -> Option<HeaderValue> {
    if token.is_empty() || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
        return None;
    }
    let value = Zeroizing::new(format!("Bearer {token}"));
    let mut value = HeaderValue::from_str(&value).ok()?;
    value.set_sensitive(true);
    Some(value)
}
