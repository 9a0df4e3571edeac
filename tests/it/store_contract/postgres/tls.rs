//! TLS between the store and its server, with certificates made here.

use std::path::PathBuf;

use onceward::store::StoreExt as _;
use onceward::store::postgres::Settings;
use onceward::store::{Certificates, Error};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use tempfile::TempDir;

use super::{open, settings};
use crate::store_contract::support::{claim_on, granted, order};
use crate::support::{PostgresServer, give};

const NOT_TRUSTED: &str = "the database's certificate is not trusted, or its TLS failed";

/// An authority, and what it has certified, in files.
struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
    directory: TempDir,
}

impl Authority {
    fn new() -> Self {
        let mut params = CertificateParams::new(vec![]).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        let directory = TempDir::new().unwrap();
        std::fs::write(directory.path().join("ca.pem"), issuer.pem()).unwrap();
        give(directory.path());
        Self { issuer, directory }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// A certificate for hosts or for a user, and its key.
    fn certifies(&self, names: &[&str], user: &str) -> (PathBuf, PathBuf) {
        let names: Vec<_> = names.iter().map(ToString::to_string).collect();
        let mut params = CertificateParams::new(names).unwrap();
        params.distinguished_name.push(DnType::CommonName, user);
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        let files = (self.path(&format!("{user}.pem")), self.path(&format!("{user}.key")));
        std::fs::write(&files.0, certificate.pem()).unwrap();
        std::fs::write(&files.1, key.serialize_pem()).unwrap();
        let private = std::os::unix::fs::PermissionsExt::from_mode(0o600);
        std::fs::set_permissions(&files.1, private).unwrap();
        for file in [&files.0, &files.1, &self.path("ca.pem")] {
            give(file);
        }
        files
    }

    fn server(&self) -> PostgresServer {
        let (certificate, key) = self.certifies(&["localhost"], "server");
        let ssl = [
            "ssl=on".to_owned(),
            format!("ssl_cert_file={}", certificate.display()),
            format!("ssl_key_file={}", key.display()),
            format!("ssl_ca_file={}", self.path("ca.pem").display()),
        ];
        PostgresServer::with(&ssl.each_ref().map(String::as_str))
    }
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
    let server = authority.server();
    let trusts = |one: &Authority| Certificates { ca: Some(one.path("ca.pem")), identity: None };
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
    let ca = Some(authority.path("ca.pem"));
    let settings = over_tls(&server, "prefer", Certificates { ca, identity: None });
    refusal(&settings).await;
    granted(&*open(&over_tls(&server, "prefer", Certificates::default())), &order("1")).await;
}

#[tokio::test]
async fn a_server_that_asks_for_a_certificate_gets_ours() {
    let authority = Authority::new();
    let server = authority.server();
    let certified = "COPY (SELECT 'hostssl all all 127.0.0.1/32 cert' UNION ALL \
              SELECT 'hostssl all all ::1/128 cert') TO PROGRAM \
        'cat > \"$PWD/pg_hba.conf\"'; SELECT pg_reload_conf()";
    server.execute(certified).await;
    let ca = Some(authority.path("ca.pem"));
    let identity = Some(authority.certifies(&[], "onceward"));
    let certificates = Certificates { ca: ca.clone(), identity };
    granted(&*open(&over_tls(&server, "require", certificates)), &order("1")).await;
    refusal(&over_tls(&server, "require", Certificates { ca: ca.clone(), identity: None })).await;
    let identity = Some(authority.certifies(&[], "somebody"));
    refusal(&over_tls(&server, "require", Certificates { ca, identity })).await;
}

#[tokio::test]
async fn files_that_hold_no_certificate_are_refused_before_a_connection_is_made() {
    let authority = Authority::new();
    let (certificate, key) = authority.certifies(&[], "onceward");
    let check = |certificates| {
        Settings { certificates, ..settings("postgres://localhost/postgres") }.check()
    };
    let of = |ca, identity| Certificates { ca, identity };
    check(of(Some(certificate.clone()), Some((certificate.clone(), key.clone())))).unwrap();
    check(of(Some(key.clone()), None)).unwrap_err();
    check(of(Some(authority.path("missing.pem")), None)).unwrap_err();
    check(of(None, Some((key.clone(), key.clone())))).unwrap_err();
    check(of(None, Some((certificate.clone(), certificate)))).unwrap_err();
}
