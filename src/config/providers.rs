//! Providers: raw -> `Provider`. Their route settings are checked where a route takes them.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::sync::Arc;

use http::{HeaderName, Method};

use super::check::{Check, text};
use super::leaf::{List, Wanted};
use super::problem::{Found, Key, quoted};
use super::raw_provider::{RawFacts, RawHandshake, RawProvider};
use super::secret_shape;
use crate::json::Pointer;
use crate::provider::{Content, Expected, Facts, Handshake, JsonBody, Provider, signature};
use crate::upstream::StatusRange;

/// The providers that a route may name; none: one with a problem.
pub(super) type Providers = BTreeMap<String, Option<Arc<Provider>>>;

/// Reads what is known of each sender.
pub(super) fn providers(
    check: &mut Check<'_>,
    raw: Option<BTreeMap<String, Option<RawProvider>>>,
) -> Providers {
    let at = Key::of(&["providers"]);
    let mut read = |(name, raw): (String, Option<RawProvider>)| {
        let at = at.join(name.as_str());
        let named = check.named(&at, &name);
        let provider = raw.and_then(|raw| provider(check, &at, &name, raw));
        (name, provider.filter(|_| named).map(Arc::new))
    };
    raw.unwrap_or_default().into_iter().map(&mut read).collect()
}

fn provider(check: &mut Check<'_>, at: &Key, name: &str, raw: RawProvider) -> Option<Provider> {
    let title = text(raw.title).unwrap_or_else(|| name.to_owned());
    let signature = match raw.signature {
        Some(written) => signature(check, &at.join("signature"), written).map(Some),
        // One that could not be read has been reported.
        None => check.sources.value(&at.join("signature")).is_none().then_some(None),
    };
    let at = at.join("handshakes");
    let handshakes = raw.handshakes.unwrap_or_default().into_iter().enumerate();
    let handshakes: Vec<Option<Handshake>> = handshakes
        .map(|(index, raw)| handshake(check, &at.join(index.to_string()), raw?))
        .collect();
    let facts = facts(raw.facts.unwrap_or_default());
    Some(Provider {
        name: name.to_owned(),
        title,
        signature: signature?,
        handshakes: handshakes.into_iter().collect::<Option<_>>()?,
        facts,
    })
}

fn signature(
    check: &mut Check<'_>,
    at: &Key,
    written: signature::Written,
) -> Option<signature::Settings> {
    match written.settings() {
        Ok(settings) => Some(settings),
        Err(mistakes) => {
            for signature::Mistake { key, expected, found } in mistakes {
                let key = key.split('.').fold(at.clone(), |key, part| key.join(part));
                check.wrong(&key, &expected, Found::Written(found));
            }
            None
        }
    }
}

fn handshake(check: &mut Check<'_>, at: &Key, raw: RawHandshake) -> Option<Handshake> {
    let method = raw.method.map_or(Some(Method::POST), |method| text(Some(method)));
    let headers = headers(check, &at.join("header"), raw.header);
    let query = wanted(raw.query);
    let written = RawContent {
        empty: raw.empty_body == Some(true),
        whole: raw.whole_body == Some(true),
        json: raw.json.filter(|members| !members.is_empty()),
        form: raw.form.filter(|fields| !fields.is_empty()),
    };
    let content = content(check, at, written);
    let recognisable = headers.as_ref().is_none_or(|headers| !headers.is_empty())
        || query.as_ref().is_none_or(|query| !query.is_empty())
        || matches!(content, Some(Content::Json(_) | Content::Form(_)) | None);
    if !recognisable {
        // Otherwise every request would be one, and none would be an event.
        let expected = "at least one of `header`, `query`, `json` and `form`";
        let hint = "say what such a request has that no event has: `json = { type = \"ping\" }`";
        check.report(at, expected, "none".to_owned(), Some(hint));
        return None;
    }
    Some(Handshake {
        name: text(raw.name).unwrap_or_else(|| "handshake".to_owned()),
        method: method?,
        headers: headers?,
        query: query?,
        content: content?,
        signed: raw.signed.unwrap_or(true),
    })
}

type RawParts = Option<BTreeMap<String, Option<Wanted>>>;

fn headers(check: &mut Check<'_>, at: &Key, raw: RawParts) -> Option<Vec<(HeaderName, Expected)>> {
    let mut header = |(name, expected): (String, Expected)| {
        let parsed = name.parse().ok();
        if parsed.is_none() {
            check.wrong(&at.join(name.as_str()), "the name of a header", quoted(&name));
        }
        Some((parsed?, expected))
    };
    let headers: Vec<Option<_>> = wanted(raw)?.into_iter().map(&mut header).collect();
    headers.into_iter().collect()
}

/// What a handshake says of its body.
struct RawContent {
    empty: bool,
    whole: bool,
    json: RawParts,
    form: RawParts,
}

fn content(check: &mut Check<'_>, at: &Key, written: RawContent) -> Option<Content> {
    let RawContent { empty, whole, json, form } = written;
    if whole && json.is_none() {
        let hint = "`json` says which members the body has and no others";
        let key = at.join("whole_body");
        check.report(&key, "`json` beside it", "none".to_owned(), Some(hint));
        return None;
    }
    match (json, form, empty) {
        (None, None, false) => Some(Content::Any),
        (None, None, true) => Some(Content::Empty),
        (json @ Some(_), None, false) => {
            let members = members(check, &at.join("json"), json)?;
            Some(Content::Json(JsonBody { members, whole }))
        }
        (None, form @ Some(_), false) => wanted(form).map(Content::Form),
        (Some(_), Some(_), _) | (Some(_), None, true) | (None, Some(_), true) => {
            let expected = "one of `json`, `form` and `empty_body`";
            check.report(at, expected, "several".to_owned(), Some("keep one of them"));
            None
        }
    }
}

/// A name is that of a member at the top; what begins with `/` is a pointer.
fn members(check: &mut Check<'_>, at: &Key, raw: RawParts) -> Option<Vec<(Pointer, Expected)>> {
    let mut member = |(name, expected): (String, Expected)| {
        let pointer: Option<Pointer> = if name.starts_with('/') {
            name.parse().ok()
        } else {
            format!("/{}", name.replace('~', "~0").replace('/', "~1")).parse().ok()
        };
        if pointer.is_none() {
            let expected = "the name of a member, or a pointer such as `/data/code` or `/*/code`";
            check.wrong(&at.join(name.as_str()), expected, quoted(&name));
        }
        Some((pointer?, expected))
    };
    let members: Vec<Option<_>> = wanted(raw)?.into_iter().map(&mut member).collect();
    members.into_iter().collect()
}

/// None if one of them has been reported.
fn wanted(raw: RawParts) -> Option<BTreeMap<String, Expected>> {
    let parts = raw.unwrap_or_default().into_iter();
    parts.map(|(name, value)| value.map(|Wanted(expected)| (name, expected))).collect()
}

fn facts(mut raw: RawFacts) -> Facts {
    let secret_shape = secret_shape::shape(&mut raw);
    let named = raw.not_the_event.unwrap_or_default().into_iter();
    Facts {
        success: text(raw.success),
        patience: text(raw.patience),
        on_failure: text(raw.on_failure),
        retry_window: text(raw.retry_window),
        signed_anew: raw.signed_anew == Some(true),
        retried: raw.retried.and_then(List::complete).map(statuses),
        not_retried: raw.not_retried.and_then(List::complete).map(statuses).unwrap_or_default(),
        final_statuses: raw.final_statuses.and_then(List::complete).map(statuses),
        resend: text(raw.resend),
        resend_window: text(raw.resend_window),
        disabled_after: text(raw.disabled_after),
        largest_event_bytes: text(raw.largest_event).map(|size| size.0),
        batch: text(raw.batch),
        secret: text(raw.secret),
        secret_shape,
        not_the_event: named.filter_map(|(at, what)| Some((at, text(what)?))).collect(),
        notes: raw.notes.and_then(List::complete).unwrap_or_default(),
        unconfirmed: raw.unconfirmed.and_then(List::complete).unwrap_or_default(),
    }
}

fn statuses(ranges: Vec<StatusRange>) -> Vec<RangeInclusive<u16>> {
    ranges.into_iter().map(|range| range.first..=range.last).collect()
}
