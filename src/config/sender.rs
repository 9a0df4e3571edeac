//! The sender of a route: its provider, and the secrets that its signature is checked with.

use std::sync::Arc;

use http::Uri;

use super::hint;
use super::providers::Providers;
use super::reader::{ListForm, Reported};
use super::shown::quoted;
use super::table::Table;
use crate::provider::{Provider, looks_like_a_secret, preset, presets, signature};
use crate::secret::Secret;

/// What a route says of its sender.
#[derive(Debug)]
pub(super) struct Sender {
    pub(super) provider: Option<Arc<Provider>>,
    /// The secrets of the signature; none if it is not checked.
    pub(super) secrets: Vec<Secret>,
    /// Whether a signature has to be checked if the provider has one.
    pub(super) verify: bool,
}

impl Sender {
    /// Whether the provider is a preset, or changes one.
    pub(super) fn has_preset(&self) -> bool {
        self.provider.as_ref().is_some_and(|provider| preset(&provider.name).is_some())
    }
}

/// Reads what a route says of its sender. `public_url` is how senders see the route.
pub(super) fn sender(
    table: &mut Table<'_, '_>,
    providers: &Providers,
    public_url: &Result<Option<Uri>, Reported>,
) -> Result<Sender, Reported> {
    let name = table.written::<String>("provider");
    let secrets = table.items("secrets", "a list", ListForm::Tables, |reader, key, secret| {
        reader.secret(key, secret)
    });
    let verify = table.written::<bool>("verify");
    let provider = match name? {
        Some(name) => Some(known(table, &name, providers)?),
        None => None,
    };
    // A signature is checked unless somebody writes that it is not.
    let verify = verify?.unwrap_or(true);
    let signing = provider.as_deref().and_then(|it| Some((it, it.signature.as_ref()?)));
    let Some((signer, settings)) = signing else {
        return match secrets {
            Ok(None) => Ok(Sender { provider, secrets: Vec::new(), verify }),
            Ok(Some(_)) | Err(_) => Err(unneeded_secrets(table, provider.as_deref())),
        };
    };
    if !verify {
        // The secrets may stay in the file for the time when the check is on again.
        return secrets.map(|_| Sender { provider, secrets: Vec::new(), verify });
    }
    // Both are looked at before either one ends the reading, so that both are reported.
    let url = check_url(table, signer, settings, public_url);
    let secrets = secrets?.unwrap_or_default();
    if secrets.is_empty() {
        return Err(missing_secrets(table, signer, settings));
    }
    check_secrets(table, settings, &secrets)?;
    url?;
    Ok(Sender { provider, secrets, verify })
}

fn known(
    table: &mut Table<'_, '_>,
    name: &str,
    providers: &Providers,
) -> Result<Arc<Provider>, Reported> {
    // A provider with a mistake is known, and its mistake has been reported.
    if let Some(provider) = providers.get(name) {
        return provider.clone();
    }
    let presets = presets().iter().map(|preset| preset.name);
    let own = providers.keys().map(String::as_str).filter(|name| !looks_like_a_secret(name));
    let known = presets.chain(own);
    let hint = hint::nearest(name, known).map_or_else(
        || "`onceward providers` lists them; `[providers.NAME]` makes another".to_owned(),
        |nearest| format!("did you mean `{nearest}`?"),
    );
    let key = table.key("provider");
    Err(table.reader.report(&key, "the name of a provider", quoted(name), Some(&hint)))
}

fn unneeded_secrets(table: &mut Table<'_, '_>, provider: Option<&Provider>) -> Reported {
    let found = provider.map_or_else(
        || "no provider".to_owned(),
        |provider| format!("`{}`, which does not sign", provider.name),
    );
    let hint = "name the sender with `provider`, or take `secrets` out";
    let key = table.key("secrets");
    table.reader.report(&key, "a `provider` that signs", found, Some(hint))
}

fn missing_secrets(
    table: &mut Table<'_, '_>,
    signer: &Provider,
    settings: &signature::Settings,
) -> Reported {
    let expected = format!("{} of `{}`", settings.secret_is(), signer.name);
    let variable = signer.secret_variable();
    let hint =
        format!("`secrets = [{{ env = \"{variable}\" }}]`; without a check: `verify = false`");
    let key = table.key("secrets");
    table.reader.report(&key, expected, "none", Some(&hint))
}

/// A signature that covers the URL can only be checked if Onceward knows the URL.
fn check_url(
    table: &mut Table<'_, '_>,
    signer: &Provider,
    settings: &signature::Settings,
    public_url: &Result<Option<Uri>, Reported>,
) -> Result<(), Reported> {
    if !settings.needs_public_url() || !matches!(public_url, Ok(None)) {
        return Ok(());
    }
    let expected = format!("the URL as senders see it, which `{}` signs", signer.name);
    let hint = "`public_url = \"https://hooks.example.com\"` here or in `[server]`";
    let key = table.key("public_url");
    Err(table.reader.report(&key, expected, "none", Some(hint)))
}

/// Reports a secret that cannot be what the sender gave out.
fn check_secrets(
    table: &mut Table<'_, '_>,
    settings: &signature::Settings,
    secrets: &[Secret],
) -> Result<(), Reported> {
    signature::Verifier::check_secrets(settings, secrets).map_err(|error| {
        let key = table.key("secrets").join(error.index.to_string());
        let hint = "the sender shows it where the webhook is set up; copy it as it is";
        table.reader.report(&key, error.expected, "a secret that is not", Some(hint))
    })
}
