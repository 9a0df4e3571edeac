//! `[providers]`: what is known of each sender.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::sync::Arc;

use super::handshakes::handshake;
use super::inherit::OF_A_PROVIDER;
use super::leaf::FromText;
use super::quantity::Size;
use super::reader::Reported;
use super::shared_settings::{Scope, shared_settings};
use super::signature::{self, signature};
use super::table::{A_TABLE, Table};
use crate::provider::{Facts, Provider, SecretShape};
use crate::upstream::StatusRange;

/// The providers that a route may name.
pub(super) type Providers = BTreeMap<String, Result<Arc<Provider>, Reported>>;

/// Reads `[providers]`.
pub(super) fn providers(table: &mut Table<'_, '_>) -> Result<Providers, Reported> {
    let form = table.form(A_TABLE);
    let providers = table.entries("providers", |reader, key, entry| {
        let named = reader.check_name(key, &entry.name);
        let provider = reader.table(key, entry.value, form, |table| provider(table, &entry.name));
        // A route may name a provider with a mistake, which is no second mistake.
        let provider = named.and(provider).map(Arc::new);
        Ok((entry.name, provider))
    });
    Ok(providers?.unwrap_or_default().into_iter().collect())
}

fn provider(table: &mut Table<'_, '_>, name: &str) -> Result<Provider, Reported> {
    let title = table.optional("title").unwrap_or_else(|| name.to_owned());
    // A signature with a mistake must not count as none: its events would pass unchecked.
    let signature = table.table("signature", signature::EXPECTED, signature);
    let handshakes = table.tables("handshakes", handshake);
    let facts = table.table("facts", A_TABLE, facts);
    // The route that names the provider reads these settings as its own. They are read here as
    // well, so that a mistake is found before a route names the provider.
    let _: Result<_, Reported> =
        table.part(&OF_A_PROVIDER, |part| shared_settings(part, Scope::Provider));
    Ok(Provider {
        name: name.to_owned(),
        title,
        signature: signature?,
        handshakes: handshakes?.unwrap_or_default(),
        facts: facts?.unwrap_or_default(),
    })
}

fn facts(table: &mut Table<'_, '_>) -> Result<Facts, Reported> {
    Ok(Facts {
        success: table.optional("success"),
        patience: table.optional("patience"),
        on_failure: table.optional("on_failure"),
        retry_window: table.optional("retry_window"),
        signed_anew: table.optional("signed_anew").unwrap_or(false),
        retried: statuses(table, "retried"),
        not_retried: statuses(table, "not_retried").unwrap_or_default(),
        final_statuses: statuses(table, "final"),
        resend: table.optional("resend"),
        resend_window: table.optional("resend_window"),
        disabled_after: table.optional("disabled_after"),
        largest_event_bytes: table.optional::<Size>("largest_event").map(|size| size.0),
        batch: table.optional("batch"),
        secret: table.optional("secret"),
        secret_shape: SecretShape {
            prefixes: table.list("secret_prefix").unwrap_or_default(),
            length: table.optional::<Lengths>("secret_length").map(|lengths| lengths.0),
            letters: table.optional("secret_characters"),
        },
        not_the_event: not_the_event(table)?.unwrap_or_default().into_iter().collect(),
        notes: table.list("notes").unwrap_or_default(),
        unconfirmed: table.list("unconfirmed").unwrap_or_default(),
    })
}

fn not_the_event(table: &mut Table<'_, '_>) -> Result<Option<Vec<(String, String)>>, Reported> {
    table.entries("not_the_event", |reader, key, entry| {
        Ok((entry.name, reader.leaf(key, &entry.value)?))
    })
}

fn statuses(table: &mut Table<'_, '_>, name: &'static str) -> Option<Vec<RangeInclusive<u16>>> {
    let ranges = table.list::<StatusRange>(name)?;
    Some(ranges.iter().map(|range| range.first..=range.last).collect())
}

/// How many characters a secret has: `32`, or `10-100`.
#[derive(Debug)]
struct Lengths(RangeInclusive<usize>);

impl FromText for Lengths {
    const EXPECTED: &'static str = "a number of characters such as `32`, or two such as `10-100`";

    fn from_text(text: &str) -> Option<Self> {
        let (first, last) = text.split_once('-').unwrap_or((text, text));
        let shortest = first.parse().ok()?;
        let longest = last.parse().ok()?;
        (1 <= shortest && shortest <= longest).then_some(Self(shortest..=longest))
    }
}
