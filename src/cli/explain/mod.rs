//! `onceward explain`: what a captured request would be taken for, and why.

mod captured;
mod explanation;

use std::io;
use std::path::PathBuf;

use http::request::Parts;

use super::output::Ended;
use super::serve;
use crate::config::Config;
use crate::proxy::{self, RouteSettings};
use captured::CapturedError;
use explanation::{Explanation, Refused};

/// Show what a captured request would be taken for, and why
///
/// Route, key and its parts, operation id, fingerprint, and what would become of it. Nothing is
/// forwarded, and no store is asked.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example: onceward explain --config onceward.toml --request captured.http

The captured request is the head and body of HTTP/1.1:
  POST /webhooks/orders HTTP/1.1
  Host: hooks.example.com
  X-Idempotency-Key: k1

  {\"id\":\"evt_1\",\"type\":\"paid\"}")]
pub(super) struct Args {
    /// The configuration
    #[arg(long, value_name = "FILE")]
    pub(super) config: PathBuf,
    /// The captured request
    #[arg(long, value_name = "CAPTURED")]
    pub(super) request: PathBuf,
    /// Print JSON
    #[arg(long)]
    pub(super) json: bool,
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
    /// The explanation cannot be written as JSON.
    #[error("cannot write JSON")]
    Json(#[from] serde_json::Error),
}

/// Explains what `args` name.
pub(super) fn run(args: &Args) -> Ended {
    let config = match Config::from_file(&args.config, serve::environment()) {
        Ok(config) => config,
        Err(problems) => return Ended::misused(format!("error: {problems}\n")),
    };
    let choose = |parts: &Parts| {
        proxy::choose(&config.routes, parts).map_err(|(code, detail)| Refused { code, detail })
    };
    match explain(args, choose) {
        Ok(text) => Ended::done(text),
        Err(error) => Ended { status: 2, ..Ended::failed(&error) },
    }
}

/// The text to print, whatever the request would be taken for; `choose` finds its route.
///
/// # Errors
///
/// If there is no request to explain. One that would be refused is explained, not an error.
pub(super) fn explain<'r>(
    args: &Args,
    choose: impl FnOnce(&Parts) -> Result<&'r RouteSettings, Refused>,
) -> Result<String, ExplainError> {
    let unreadable = |error| ExplainError::Unreadable(args.request.clone(), error);
    let captured = std::fs::read(&args.request).map_err(unreadable)?;
    let no_request = |error| ExplainError::NotARequest(args.request.clone(), error);
    let (parts, body) = captured::read(&captured).map_err(no_request)?.into_parts();
    let explanation = match choose(&parts) {
        Ok(route) => Explanation::of(route, &parts, &body),
        Err(refused) => Explanation::of_refused(refused),
    };
    if args.json { Ok(explanation.to_json()?) } else { Ok(explanation.to_string()) }
}

#[cfg(test)]
mod tests;
