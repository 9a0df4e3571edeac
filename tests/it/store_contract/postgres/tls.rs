//! TLS between the store and its server, with certificates made here.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use onceward::store::StoreExt as _;
use onceward::store::postgres::Settings;
use onceward::store::{Certificates, Error};

use super::{open, settings};
use crate::store_contract::support::{claim_on, granted, order};
use crate::support::{Authority, PostgresServer, Signed, give};

const NOT_TRUSTED: &str = "the database's certificate is not trusted, or its TLS failed";

/// A certificate for this name, and its key, as files that the server's user may read.
fn certified(authority: &Authority, name: &str) -> (PathBuf, PathBuf) {
    let Signed { certificate, key } = authority.signs(name);
    std::fs::set_permissions(&key, Permissions::from_mode(0o600)).unwrap();
    for path in [authority.directory(), &certificate, &key, &authority.file()] {
        give(path);
    }
    (certificate, key)
}

/// A server that speaks TLS, as `localhost`, and believes certificates of the same authority.
fn server_of(authority: &Authority) -> PostgresServer {
    let (certificate, key) = certified(authority, "localhost");
    let ssl = [
        "ssl=on".to_owned(),
        format!("ssl_cert_file={}", certificate.display()),
        format!("ssl_key_file={}", key.display()),
        format!("ssl_ca_file={}", authority.file().display()),
    ];
    PostgresServer::with(&ssl.each_ref().map(String::as_str))
}

fn over_tls(server: &PostgresServer, mode: &str, certificates: Certificates) -> Settings {
    let url = server.url().replace("127.0.0.1", "localhost");
    Settings { certificates, ..settings(&format!("{url}?sslmode={mode}")) }
}

async fn refusal(settings: &Settings) -> &'static str {
    match open(settings).apply(claim_on(&order("refused"))).await {
        Err(Error::Unavailable(text)) => text,
        other => panic!("{other:?}"),
    }
}

const TLS_SESSIONS: &str = "SELECT count(*) FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) \
    WHERE ssl AND application_name = 'onceward'";

#[tokio::test]
async fn a_server_is_believed_whose_authority_is_trusted_and_whose_name_is_right() {
    let (authority, other) = (Authority::new(), Authority::new());
    let server = server_of(&authority);
    let trusts = |one: &Authority| Certificates { ca: Some(one.file()), identity: None };
    for mode in ["prefer", "require", "verify-ca", "verify-full"] {
        let store = open(&over_tls(&server, mode, trusts(&authority)));
        granted(&*store, &order(mode)).await;
        assert!(server.row(TLS_SESSIONS).await.get::<_, i64>(0) > 0, "{mode}");
    }
    for mode in ["prefer", "require", "verify-full"] {
        assert_eq!(refusal(&over_tls(&server, mode, trusts(&other))).await, NOT_TRUSTED);
        // nor do this machine's authorities know it
        assert_eq!(refusal(&over_tls(&server, mode, Certificates::default())).await, NOT_TRUSTED);
    }
    let by_address = over_tls(&server, "require", trusts(&authority));
    let url = by_address.url.reveal().replace("localhost", "127.0.0.1");
    let url = onceward::secret::Secret::new(url);
    assert_eq!(refusal(&Settings { url, ..by_address }).await, NOT_TRUSTED);
}

/// With an authority in the settings nobody between can talk the store out of TLS.
#[tokio::test]
async fn an_authority_in_the_settings_means_tls() {
    let (authority, server) = (Authority::new(), PostgresServer::start());
    let ca = Some(authority.file());
    let settings = over_tls(&server, "prefer", Certificates { ca, identity: None });
    refusal(&settings).await;
    granted(&*open(&over_tls(&server, "prefer", Certificates::default())), &order("1")).await;
}

#[tokio::test]
async fn a_server_that_asks_for_a_certificate_gets_ours() {
    let authority = Authority::new();
    let server = server_of(&authority);
    let by_certificate = "COPY (SELECT 'hostssl all all 127.0.0.1/32 cert' UNION ALL \
              SELECT 'hostssl all all ::1/128 cert') TO PROGRAM \
        'cat > \"$PWD/pg_hba.conf\"'; SELECT pg_reload_conf()";
    server.execute(by_certificate).await;
    let ca = Some(authority.file());
    let identity = Some(certified(&authority, "onceward"));
    let certificates = Certificates { ca: ca.clone(), identity };
    granted(&*open(&over_tls(&server, "require", certificates)), &order("1")).await;
    refusal(&over_tls(&server, "require", Certificates { ca: ca.clone(), identity: None })).await;
    let identity = Some(certified(&authority, "somebody"));
    refusal(&over_tls(&server, "require", Certificates { ca, identity })).await;
}

#[tokio::test]
async fn files_that_hold_no_certificate_are_refused_before_a_connection_is_made() {
    let authority = Authority::new();
    let (certificate, key) = certified(&authority, "onceward");
    let check = |certificates| {
        Settings { certificates, ..settings("postgres://localhost/postgres") }.check()
    };
    let of = |ca, identity| Certificates { ca, identity };
    check(of(Some(certificate.clone()), Some((certificate.clone(), key.clone())))).unwrap();
    check(of(Some(key.clone()), None)).unwrap_err();
    check(of(Some(authority.directory().join("missing.pem")), None)).unwrap_err();
    check(of(None, Some((key.clone(), key.clone())))).unwrap_err();
    check(of(None, Some((certificate.clone(), certificate)))).unwrap_err();
}
