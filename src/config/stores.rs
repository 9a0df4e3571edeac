//! `[store]`: where operations live.

use std::path::PathBuf;
use std::time::Duration;

use super::leaf::{Count, FromText};
use super::reader::{ListForm, Reported};
use super::shown::Found;
use super::table::{A_TABLE, Table};
use super::word::Topology;
use crate::store::embedded::{self, IfDamaged};
use crate::store::{self, Certificates, SetupError, WhenEmptied, postgres, redis};

/// The longest call to a store. A claim waits for it, and the sender for the claim.
const TIMEOUT_MAX: Duration = Duration::from_mins(1);

/// Reads `[store]`. The sources have kept one store.
pub(super) fn store(table: &mut Table<'_, '_>) -> Result<store::Settings, Reported> {
    let embedded = table.table("embedded", A_TABLE, embedded);
    let redis = table.table("redis", A_TABLE, redis);
    let postgres = table.table("postgres", A_TABLE, postgres);
    let memory = table.table("memory", "an empty table", |_| Ok(store::Settings::Memory));
    let store = embedded?.or(redis?).or(postgres?).or(memory?);
    store.ok_or_else(|| table.lacks("a store such as `[store.embedded]`", "none"))
}

fn embedded(table: &mut Table<'_, '_>) -> Result<store::Settings, Reported> {
    Ok(store::Settings::Embedded(embedded::Settings {
        path: table.setting("path")?,
        durability: table.setting("durability")?,
        if_damaged: IfDamaged::Refuse,
    }))
}

fn redis(table: &mut Table<'_, '_>) -> Result<store::Settings, Reported> {
    let reports = table.reader.reports();
    let urls = table.items("urls", "a list of URLs", ListForm::Texts, |reader, key, url| {
        reader.text_or_secret(key, url)
    });
    let urls = urls.and_then(|urls| {
        let urls = urls.filter(|urls| !urls.is_empty());
        urls.ok_or_else(|| table.missing("urls", "at least one URL", None))
    });
    let mode = mode(table)?;
    let settings = redis::Settings {
        prefix: table.setting::<Prefix>("prefix")?.0,
        replica_acks: table.setting::<u8>("replica_acks")?.into(),
        when_emptied: table.setting("when_store_emptied")?,
        timeout: table.above_zero("timeout", TIMEOUT_MAX)?,
        username: table.optional("username"),
        password: table.secret("password").unwrap_or(None),
        certificates: certificates(table),
        // Last, since it ends the reading where there is no URL.
        urls: urls?,
        mode,
    };
    // What is known to be wrong needs no second explanation from the client of the store.
    table.reader.none_since(reports)?;
    check(table, settings.check())?;
    Ok(store::Settings::Redis(settings))
}

fn mode(table: &mut Table<'_, '_>) -> Result<redis::Mode, Reported> {
    let topology = table.setting("mode")?;
    let master = table.written("master");
    Ok(match topology {
        Topology::Single => redis::Mode::Single,
        Topology::Cluster => redis::Mode::Cluster,
        Topology::Sentinel => {
            if let Ok(None) = master {
                let expected = "the name that the sentinels monitor, such as `mymaster`";
                table.wrong("master", expected, "nothing");
            }
            redis::Mode::Sentinel { master: master.unwrap_or(None).unwrap_or_default() }
        }
    })
}

fn postgres(table: &mut Table<'_, '_>) -> Result<store::Settings, Reported> {
    let reports = table.reader.reports();
    let url = table
        .text_or_secret("url")
        .and_then(|url| url.ok_or_else(|| table.missing("url", "a value", None)));
    let connections = Count(2)..=Count(10_000);
    let expected = "a whole number from 2 to 10000";
    let settings = postgres::Settings {
        listen_url: table.text_or_secret("listen_url").unwrap_or(None),
        schema: table.setting::<Schema>("schema")?.0,
        connections_max: table.within("connections_max", &connections, expected)?.as_usize(),
        when_emptied: table.setting("when_store_emptied")?,
        timeout: table.above_zero("timeout", TIMEOUT_MAX)?,
        certificates: certificates(table),
        // Last, since it ends the reading where there is no URL.
        url: url?,
    };
    table.reader.none_since(reports)?;
    check(table, settings.check())?;
    Ok(store::Settings::Postgres(settings))
}

/// Reports settings of which no connection can be made. The store says why without showing a URL.
fn check(table: &mut Table<'_, '_>, checked: Result<(), SetupError>) -> Result<(), Reported> {
    checked.map_err(|error| {
        let expected = "what a connection can be made of";
        let found = Found::Quoted(format!("a mistake: {}", crate::telemetry::chain(&error)));
        let hint = "`onceward check --config FILE --probe` connects once all is read";
        let key = table.key.clone();
        table.reader.report(&key, expected, found, Some(hint))
    })
}

fn certificates(table: &mut Table<'_, '_>) -> Certificates {
    let ca = table.optional::<PathBuf>("ca");
    let certificate = table.written::<PathBuf>("certificate");
    let key = table.written::<PathBuf>("key");
    let alone = match (&certificate, &key) {
        (Ok(Some(_)), Ok(None)) => Some(("key", "certificate")),
        (Ok(None), Ok(Some(_))) => Some(("certificate", "key")),
        _ => None,
    };
    if let Some((missing, other)) = alone {
        let expected = format!("a path beside `{other}`");
        let hint = "a client certificate and its key are given together";
        let key = table.key(missing);
        table.reader.report(&key, expected, "nothing", Some(hint));
    }
    Certificates { ca, identity: certificate.unwrap_or(None).zip(key.unwrap_or(None)) }
}

impl FromText for WhenEmptied {
    const EXPECTED: &'static str = "`continue` or `stop`";

    fn from_text(text: &str) -> Option<Self> {
        [Self::Continue, Self::Stop].into_iter().find(|when| when.as_str() == text)
    }
}

/// What every key in Redis begins with. Other characters could mean something in a pattern or a
/// hash tag.
#[derive(Debug)]
struct Prefix(String);

impl FromText for Prefix {
    const EXPECTED: &'static str = "letters, digits, `-`, `_`, `.` and `:`, 64 at most";

    fn from_text(text: &str) -> Option<Self> {
        let plain = |c: char| c.is_ascii_alphanumeric() || "-_.:".contains(c);
        let good = !text.is_empty() && text.len() <= 64 && text.chars().all(plain);
        good.then(|| Self(text.to_owned()))
    }
}

/// The name of a schema in PostgreSQL, which would cut a longer one.
#[derive(Debug)]
struct Schema(String);

impl FromText for Schema {
    const EXPECTED: &'static str = "a name of letters, digits and `_`, 48 at most";

    fn from_text(text: &str) -> Option<Self> {
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let good = !text.is_empty() && text.len() <= 48 && text.chars().all(plain);
        good.then(|| Self(text.to_owned()))
    }
}
