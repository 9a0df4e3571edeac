//! Stores on servers of their own: what is written of them, and what it means.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use serde::Deserialize;
use serde::de::{Deserializer, Error, SeqAccess, Unexpected, Visitor};

use super::check::{Check, count, text};
use super::leaf::{Count, Text, Written, text_for_a_list};
use super::problem::{Found, Key};
use super::raw::RawSecret;
use super::secrets::{self, TextOrSecret};
use crate::secret::Secret;
use crate::store::{self, Certificates, SetupError, WhenEmptied, postgres, redis};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub(super) struct RawRedis {
    urls: Option<RawUrls>,
    mode: Option<Text<ModeWord>>,
    master: Option<Text<String>>,
    prefix: Option<Text<Prefix>>,
    replica_acks: Option<Replicas>,
    when_store_emptied: Option<Text<WhenEmptied>>,
    timeout: Option<Text<Duration>>,
    username: Option<Text<String>>,
    password: Option<RawSecret>,
    ca: Option<Text<PathBuf>>,
    certificate: Option<Text<PathBuf>>,
    key: Option<Text<PathBuf>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub(super) struct RawPostgres {
    url: Option<TextOrSecret>,
    listen_url: Option<TextOrSecret>,
    schema: Option<Text<Schema>>,
    connections_max: Option<Count>,
    when_store_emptied: Option<Text<WhenEmptied>>,
    timeout: Option<Text<Duration>>,
    ca: Option<Text<PathBuf>>,
    certificate: Option<Text<PathBuf>>,
    key: Option<Text<PathBuf>>,
}

#[derive(Debug)]
struct RawUrls(Vec<Option<TextOrSecret>>);

/// How many replicas, none included.
#[derive(Debug, Clone, Copy)]
struct Replicas(u8);

#[derive(Debug, Clone, Copy)]
enum ModeWord {
    Single,
    Sentinel,
    Cluster,
}

/// What keys begin with.
#[derive(Debug)]
struct Prefix(String);

/// The name of a schema.
#[derive(Debug)]
struct Schema(String);

/// The settings of `[store.redis]`.
pub(super) fn redis(check: &mut Check<'_>, raw: RawRedis) -> Option<store::Settings> {
    let at = Key::of(&["store", "redis"]);
    let urls = urls(check, &at.join("urls"), raw.urls);
    let master = text(raw.master);
    let mode = match text(raw.mode) {
        None => None,
        Some(ModeWord::Single) => Some(redis::Mode::Single),
        Some(ModeWord::Cluster) => Some(redis::Mode::Cluster),
        Some(ModeWord::Sentinel) => {
            if master.is_none() {
                let expected = "the name that the sentinels monitor, such as `mymaster`";
                check.wrong(&at.join("master"), expected, "nothing".to_owned());
            }
            master.map(|master| redis::Mode::Sentinel { master })
        }
    };
    let timeout = check.above_zero(&at.join("timeout"), text(raw.timeout));
    let meant = raw.password.is_some();
    let password = raw.password.and_then(|raw| secrets::read(check, &at.join("password"), raw));
    let own = (text(raw.certificate), text(raw.key));
    let certificates = certificates(check, &at, text(raw.ca), own);
    (password.is_some() || !meant).then_some(())?;
    let settings = redis::Settings {
        urls: urls?,
        mode: mode?,
        prefix: text(raw.prefix)?.0,
        replica_acks: raw.replica_acks?.0.into(),
        when_emptied: text(raw.when_store_emptied)?,
        timeout: timeout?,
        username: text(raw.username),
        password,
        certificates: certificates?,
    };
    usable(check, &at, settings.check()).then_some(store::Settings::Redis(settings))
}

/// The settings of `[store.postgres]`.
pub(super) fn postgres(check: &mut Check<'_>, raw: RawPostgres) -> Option<store::Settings> {
    let at = Key::of(&["store", "postgres"]);
    let url = raw.url.and_then(|raw| raw.read(check, &at.join("url")));
    let listens = raw.listen_url.is_some();
    let listen_url = raw.listen_url.and_then(|raw| raw.read(check, &at.join("listen_url")));
    let timeout = check.above_zero(&at.join("timeout"), text(raw.timeout));
    let own = (text(raw.certificate), text(raw.key));
    let certificates = certificates(check, &at, text(raw.ca), own);
    let connections_max = check.within(
        &at.join("connections_max"),
        count(raw.connections_max),
        &(2..=10_000),
        "a whole number from 2 to 10000",
    );
    (listen_url.is_some() || !listens).then_some(())?;
    let settings = postgres::Settings {
        url: url?,
        listen_url,
        schema: text(raw.schema)?.0,
        connections_max: connections_max?,
        when_emptied: text(raw.when_store_emptied)?,
        timeout: timeout?,
        certificates: certificates?,
    };
    usable(check, &at, settings.check()).then_some(store::Settings::Postgres(settings))
}

/// Whether a connection can be made of the settings; else it is said why not, without a URL.
fn usable(check: &mut Check<'_>, at: &Key, checked: Result<(), SetupError>) -> bool {
    let problem = checked.map_err(|error| crate::telemetry::chain(&error));
    let expected = "what a connection can be made of";
    let problem = problem.map_err(|found| Found::Written(format!("a mistake: {found}")));
    let hint = "`onceward check --config FILE --probe` connects once all is read";
    problem.map_err(|found| check.report(at, expected, found, Some(hint))).is_ok()
}

fn urls(check: &mut Check<'_>, key: &Key, raw: Option<RawUrls>) -> Option<Vec<Secret>> {
    let RawUrls(items) = raw?;
    if items.is_empty() {
        check.wrong(key, "at least one URL", "none".to_owned());
        return None;
    }
    let read: Vec<_> = items
        .into_iter()
        .enumerate()
        .map(|(index, raw)| raw?.read(check, &key.join(index.to_string())))
        .collect();
    read.into_iter().collect()
}

fn certificates(
    check: &mut Check<'_>,
    at: &Key,
    ca: Option<PathBuf>,
    own: (Option<PathBuf>, Option<PathBuf>),
) -> Option<Certificates> {
    let (missing, other) = match own {
        (None, None) => return Some(Certificates { ca, identity: None }),
        (Some(certificate), Some(key)) => {
            return Some(Certificates { ca, identity: Some((certificate, key)) });
        }
        (Some(_), None) => ("key", "certificate"),
        (None, Some(_)) => ("certificate", "key"),
    };
    let expected = format!("a path beside `{other}`");
    let hint = "a client certificate and its key are given together";
    check.report(&at.join(missing), &expected, "nothing".to_owned(), Some(hint));
    None
}

impl Written for ModeWord {
    const EXPECTED: &'static str = "`single`, `sentinel` or `cluster`";

    fn read(text: &str) -> Option<Self> {
        match text {
            "single" => Some(Self::Single),
            "sentinel" => Some(Self::Sentinel),
            "cluster" => Some(Self::Cluster),
            _ => None,
        }
    }
}

impl Written for WhenEmptied {
    const EXPECTED: &'static str = "`continue` or `stop`";

    fn read(text: &str) -> Option<Self> {
        [Self::Continue, Self::Stop].into_iter().find(|when| when.as_str() == text)
    }
}

/// Nothing that means something in a pattern or a hash tag.
impl Written for Prefix {
    const EXPECTED: &'static str = "letters, digits, `-`, `_`, `.` and `:`, 64 at most";

    fn read(text: &str) -> Option<Self> {
        let plain = |c: char| c.is_ascii_alphanumeric() || "-_.:".contains(c);
        let good = !text.is_empty() && text.len() <= 64 && text.chars().all(plain);
        good.then(|| Self(text.to_owned()))
    }
}

/// A longer name is cut by PostgreSQL.
impl Written for Schema {
    const EXPECTED: &'static str = "a name of letters, digits and `_`, 48 at most";

    fn read(text: &str) -> Option<Self> {
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let good = !text.is_empty() && text.len() <= 48 && text.chars().all(plain);
        good.then(|| Self(text.to_owned()))
    }
}

impl<'de> Deserialize<'de> for Replicas {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_u8(ReplicasVisitor)
    }
}

struct ReplicasVisitor;

impl Visitor<'_> for ReplicasVisitor {
    type Value = Replicas;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a whole number from 0 to {}", u8::MAX)
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Replicas, E> {
        let replicas = u8::try_from(number).map(Replicas);
        replicas.map_err(|_| E::invalid_value(Unexpected::Signed(number), &self))
    }
}

impl<'de> Deserialize<'de> for RawUrls {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(UrlsVisitor)
    }
}

struct UrlsVisitor;

impl<'de> Visitor<'de> for UrlsVisitor {
    type Value = RawUrls;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of URLs")
    }

    fn visit_str<E: Error>(self, _text: &str) -> Result<RawUrls, E> {
        Err(text_for_a_list(&self))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<RawUrls, A::Error> {
        let mut urls = Vec::new();
        while let Some(url) = items.next_element()? {
            urls.push(url);
        }
        Ok(RawUrls(urls))
    }
}
