//! `onceward explain`: what a captured request would be taken for, and why.

mod captured;
mod explanation;

use std::io;
use std::path::PathBuf;

use http::request::Parts;

use super::output::Exit;
use crate::clock::Clock;
use crate::config::Config;
use crate::operation::Timestamp;
use crate::provider::signature::{Certificates, CertificatesError, SecretError};
use crate::proxy::{self, Examination, Examined, ExplainedRefusal, RouteSettings, Sender};
use captured::CapturedError;
use explanation::Explanation;

/// Show what a captured request would be taken for, and why
///
/// Route, key and its parts, operation id, fingerprint, and what would become of it. Nothing is
/// forwarded, and no store is asked.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  onceward explain --config onceward.toml --request captured.http
  onceward explain --config onceward.toml --request captured.http --at 2026-11-29T12:00:00Z

The captured request is the head and body of HTTP/1.1:
  POST /webhooks/orders HTTP/1.1
  Host: hooks.example.com
  X-Idempotency-Key: k1

  {\"id\":\"evt_1\",\"type\":\"paid\"}")]
pub(super) struct Args {
    /// The configuration
    #[arg(long, short, value_name = "FILE")]
    pub(super) config: PathBuf,
    /// The captured request
    #[arg(long, value_name = "CAPTURED")]
    pub(super) request: PathBuf,
    /// When it arrived, for the timestamp of its signature; else now. RFC 3339
    #[arg(long, value_name = "TIME")]
    pub(super) at: Option<jiff::Timestamp>,
    /// Take this file for the certificate, or the answer with a key, at a URL, instead of fetching
    /// it
    #[arg(long, value_name = "URL=FILE", value_parser = certificate)]
    pub(super) certificate: Vec<(String, PathBuf)>,
    /// Print JSON
    #[arg(long)]
    pub(super) json: bool,
}

fn certificate(text: &str) -> Result<(String, PathBuf), &'static str> {
    let (url, file) = text.rsplit_once('=').ok_or("expected URL=FILE")?;
    Ok((url.to_owned(), file.into()))
}

/// Why nothing could be explained. Exit status 2.
#[derive(Debug, thiserror::Error)]
pub(super) enum ExplainError {
    /// The captured request cannot be read.
    #[error("cannot read `{}`", .0.display())]
    Unreadable(PathBuf, #[source] io::Error),
    /// It is not a captured request.
    #[error("`{}` is not a captured request", .0.display())]
    NotARequest(PathBuf, #[source] CapturedError),
    /// No certificate can be used.
    #[error("senders' certificates cannot be used")]
    Certificates(#[from] CertificatesError),
    /// A secret cannot be what its sender gives out.
    #[error("the route's signatures cannot be checked")]
    Secret(#[from] SecretError),
    /// Nothing can be run.
    #[error("the check of the signature cannot be run")]
    Runtime(#[source] io::Error),
    /// The explanation cannot be written as JSON.
    #[error("cannot write JSON")]
    Json(#[from] serde_json::Error),
}

/// How a captured request begins.
const SHAPE: &str = "it begins with a line such as `POST /webhooks/orders HTTP/1.1`; after it a line \
    for each header, an empty line, and the body: `onceward explain --help` shows one";

/// Explains what `args` name.
pub(super) fn run(args: &Args) -> Exit {
    let config = match Config::from_file(&args.config, std::env::vars_os()) {
        Ok(config) => config,
        Err(problems) => return Exit::misused(format!("error: {problems}\n")),
    };
    match explain(args, |parts| proxy::choose(&config.routes, parts)) {
        Ok(text) => Exit::done(text),
        Err(error) => {
            let exit = Exit { status: 2, ..Exit::failed(&error) };
            if let ExplainError::NotARequest(_, why) = &error
                && why.is_of_the_head()
            {
                return exit.with_hint(SHAPE);
            }
            exit
        }
    }
}

/// The text to print, whatever the request would be taken for; `choose` finds its route.
///
/// # Errors
///
/// If there is no request to explain. One that would be refused is explained, not an error.
pub(super) fn explain<'r>(
    args: &Args,
    choose: impl FnOnce(&Parts) -> Result<&'r RouteSettings, ExplainedRefusal>,
) -> Result<String, ExplainError> {
    let unreadable = |error| ExplainError::Unreadable(args.request.clone(), error);
    let captured = std::fs::read(&args.request).map_err(unreadable)?;
    let no_request = |error| ExplainError::NotARequest(args.request.clone(), error);
    let (parts, body) = captured::read(&captured).map_err(no_request)?.into_parts();
    let explanation = match choose(&parts) {
        Ok(route) => {
            let whole = Request { route, head: &parts, body: &body };
            let examined = examine(args, whole)?;
            let mut explanation = Explanation::of(whole, &examined);
            if explanation.signature.is_invalid()
                && let Some(body) = without_its_last_newline(&body)
                && examine(args, Request { body, ..whole })?.signature.is_ok()
            {
                explanation.signature.hint = Some(OF_AN_EDITOR);
            }
            explanation
        }
        Err(refusal) => Explanation::of_refusal(refusal),
    };
    if args.json { Ok(explanation.to_json()?) } else { Ok(explanation.to_string()) }
}

/// What an editor does to a file.
const OF_AN_EDITOR: &str = "without the newline at the end of the file the signature is valid: an editor \
    may have added it (`Content-Length` says where the body ends)";

fn without_its_last_newline(body: &[u8]) -> Option<&[u8]> {
    body.strip_suffix(b"\r\n").or_else(|| body.strip_suffix(b"\n"))
}

/// A captured request, and the route that would take it.
#[derive(Clone, Copy)]
struct Request<'a> {
    route: &'a RouteSettings,
    head: &'a Parts,
    body: &'a [u8],
}

/// Verifies and identifies a request as the proxy would, at the time that was asked for.
fn examine(args: &Args, request: Request<'_>) -> Result<Examined, ExplainError> {
    let Request { route, head, body } = request;
    let clock = Clock::system();
    let read = |(url, file): &(String, PathBuf)| {
        let pem = std::fs::read(file);
        Ok((url.clone(), pem.map_err(|error| ExplainError::Unreadable(file.clone(), error))?))
    };
    let trusted: Vec<_> = args.certificate.iter().map(read).collect::<Result<_, ExplainError>>()?;
    let certificates = Certificates::with_trusted(clock.clone(), trusted)?;
    let sender = Sender::of(route, &certificates)?;
    let millis = args.at.map(|at| u64::try_from(at.as_millisecond()).unwrap_or(0));
    let now = millis.map_or_else(|| clock.wall(), Timestamp);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(ExplainError::Runtime)?;
    let examination = Examination { route, sender: sender.as_ref(), head, body };
    Ok(runtime.block_on(examination.explain(now)))
}

#[cfg(test)]
mod tests;
