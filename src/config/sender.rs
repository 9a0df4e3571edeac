//! A route's sender: who it is, and what its signature is checked with.

use std::sync::Arc;

use http::Uri;

use super::check::Check;
use super::leaf::Text;
use super::problem::{Key, quoted};
use super::providers::Providers;
use super::raw::{RawRoute, RawSecret};
use super::{read, secrets};
use crate::provider::{Provider, presets, signature};
use crate::secret::Secret;

/// Who sends, and the secrets of its signature; none: it is not checked.
#[derive(Debug, Default)]
pub(super) struct Sender {
    pub(super) provider: Option<Arc<Provider>>,
    pub(super) secrets: Vec<Secret>,
}

/// How senders see the proxy, as far as it is written.
#[derive(Debug, Clone)]
pub(super) enum SeenAs {
    /// As this.
    Url(Uri),
    /// Nobody says.
    Unset,
    /// What is written is no URL, which has been reported.
    Reported,
}

impl SeenAs {
    pub(super) fn url(self) -> Option<Uri> {
        match self {
            Self::Url(url) => Some(url),
            Self::Unset | Self::Reported => None,
        }
    }
}

/// Takes what is about the sender out of a route.
pub(super) fn sender(
    check: &mut Check<'_>,
    at: &Key,
    raw: &mut RawRoute,
    providers: &Providers,
    seen: &SeenAs,
) -> Option<Sender> {
    let (name, verify) = (raw.provider.take(), raw.verify.unwrap_or(true));
    let written = raw.secrets.take();
    let secrets = written.map(|written| all(check, &at.join("secrets"), written));
    let provider = match name {
        Some(Text(name)) => Some(known(check, at, &name, providers)?),
        // One that could not be read has been reported.
        None => check.sources.value(&at.join("provider")).is_none().then_some(None)?,
    };
    let url = !verify || has_url(check, at, provider.as_deref(), seen);
    let signs = provider.as_deref().and_then(|it| Some((it, it.signature.as_ref()?)));
    match (signs, secrets) {
        (None, Some(_)) => {
            let found = provider.as_deref().map_or_else(
                || "no provider".to_owned(),
                |provider| format!("`{}`, which does not sign", provider.name),
            );
            let hint = "name the sender with `provider`, or take `secrets` out";
            check.report(&at.join("secrets"), "a `provider` that signs", found, Some(hint));
            None
        }
        (Some((signer, _)), None) if verify => {
            if check.sources.value(&at.join("secrets")).is_none() {
                no_secret(check, at, signer);
            }
            None
        }
        (Some((signer, settings)), Some(secrets)) if verify => {
            let secrets = secrets?;
            if secrets.is_empty() {
                no_secret(check, at, signer);
                return None;
            }
            let usable = usable(check, &at.join("secrets"), settings, &secrets);
            (usable && url).then_some(Sender { provider, secrets })
        }
        (None, None) | (Some(_), _) => Some(Sender { provider, secrets: Vec::new() }),
    }
}

/// What signs the URL cannot be checked without one.
fn has_url(check: &mut Check<'_>, at: &Key, provider: Option<&Provider>, seen: &SeenAs) -> bool {
    let signs_url = |provider: &&Provider| {
        provider.signature.as_ref().is_some_and(signature::Settings::needs_public_url)
    };
    if let (Some(provider), SeenAs::Unset) = (provider.filter(signs_url), seen) {
        let expected = format!("the URL as senders see it, which `{}` signs", provider.name);
        let hint = "`public_url = \"https://hooks.example.com\"` here or in `[server]`";
        check.report(&at.join("public_url"), &expected, "none".to_owned(), Some(hint));
        return false;
    }
    true
}

fn known(
    check: &mut Check<'_>,
    at: &Key,
    name: &str,
    providers: &Providers,
) -> Option<Arc<Provider>> {
    match providers.get(name) {
        Some(Some(provider)) => Some(Arc::clone(provider)),
        // It has been reported.
        Some(None) => None,
        None => {
            let presets = presets().iter().map(|preset| preset.name);
            let known = presets.chain(providers.keys().map(String::as_str));
            let hint = read::nearest(name, known).map_or_else(
                || "`onceward providers` lists them; `[providers.NAME]` makes another".to_owned(),
                |nearest| format!("did you mean `{nearest}`?"),
            );
            let key = at.join("provider");
            check.report(&key, "the name of a provider", quoted(name), Some(&hint));
            None
        }
    }
}

fn all(check: &mut Check<'_>, at: &Key, written: Vec<Option<RawSecret>>) -> Option<Vec<Secret>> {
    let secrets: Vec<Option<Secret>> = written
        .into_iter()
        .enumerate()
        .map(|(index, raw)| secrets::read(check, &at.join(index.to_string()), raw?))
        .collect();
    secrets.into_iter().collect()
}

fn no_secret(check: &mut Check<'_>, at: &Key, provider: &Provider) {
    let what = provider.signature.as_ref().map_or("the secret", signature::Settings::secret_is);
    let expected = format!("{what} of `{}`", provider.name);
    let variable = provider.secret_variable();
    let hint =
        format!("`secrets = [{{ env = \"{variable}\" }}]`; without a check: `verify = false`");
    check.report(&at.join("secrets"), &expected, "none".to_owned(), Some(&hint));
}

/// Reports a secret that cannot be what the sender gave out.
fn usable(
    check: &mut Check<'_>,
    at: &Key,
    settings: &signature::Settings,
    secrets: &[Secret],
) -> bool {
    match signature::Verifier::check_secrets(settings, secrets) {
        Ok(()) => true,
        Err(error) => {
            let key = at.join(error.index.to_string());
            let hint = "the sender shows it where the webhook is set up; copy it as it is";
            check.report(&key, error.expected, "a secret that is not".to_owned(), Some(hint));
            false
        }
    }
}
