//! The store on a Redis server over TLS: each side proves who it is.

use std::process::Stdio;
use std::sync::Arc;

use onceward::clock::Clock;
use onceward::operation::Outcome;
use onceward::store::redis::{Mode, Settings, open};
use onceward::store::{Certificates, Error, SetupError, Store, StoreExt as _};
use tokio::process::Command;

use super::redis::listens;
use super::support::{attempted, claim_on, order};
use crate::support::{Authority, RedisServer, Signed, free_port, settings, until};

const REFUSED: &str = "TLS with the server failed: one does not accept the other's certificate";

/// A server that speaks TLS only. It asks clients for a certificate of the same authority, or not.
async fn over_tls(authority: &Authority, name: &str, asks_clients: &str) -> RedisServer {
    over_tls_with(authority, name, &["--tls-auth-clients", asks_clients]).await
}

/// The same with further arguments.
async fn over_tls_with(authority: &Authority, name: &str, more: &[&str]) -> RedisServer {
    let (signed, ca, port) = (authority.signs(name), authority.file(), free_port().to_string());
    let mut arguments = vec![
        "--port",
        "0",
        "--tls-port",
        &port,
        "--tls-cert-file",
        signed.certificate.to_str().unwrap(),
        "--tls-key-file",
        signed.key.to_str().unwrap(),
        "--tls-ca-cert-file",
        ca.to_str().unwrap(),
    ];
    arguments.extend(more);
    RedisServer::launch("redis-server", port.parse().unwrap(), &arguments, None).await
}

fn settings_of(server: &RedisServer, certificates: Certificates) -> Settings {
    let url = format!("rediss://localhost:{}", server.port);
    Settings { certificates, ..settings(&[&url]) }
}

fn store_of(server: &RedisServer, certificates: Certificates) -> Arc<dyn Store> {
    open(&settings_of(server, certificates), Clock::system()).unwrap()
}

/// What a server over TLS tells whoever asks it from a shell.
async fn cli(authority: &Authority, arguments: &[&str]) -> String {
    let mut command = Command::new("redis-cli");
    command.args(["--tls", "--cacert"]).arg(authority.file()).args(arguments);
    let output = command.stdin(Stdio::null()).output().await.unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// Three masters whose certificates hold their name, and how a store uses them, by the first one.
async fn cluster(authority: &Authority, announce: &[&str]) -> (Vec<RedisServer>, Settings) {
    let mut nodes = Vec::new();
    for _ in 0..3 {
        let bus = free_port().to_string();
        let mut more = vec!["--cluster-enabled", "yes", "--cluster-port", &bus];
        more.extend([
            "--tls-cluster",
            "yes",
            "--tls-replication",
            "yes",
            "--tls-auth-clients",
            "no",
        ]);
        more.extend(announce);
        nodes.push(over_tls_with(authority, "localhost", &more).await);
    }
    let addresses: Vec<_> = nodes.iter().map(|node| format!("127.0.0.1:{}", node.port)).collect();
    let mut create = vec!["--cluster", "create"];
    create.extend(addresses.iter().map(String::as_str));
    create.extend(["--cluster-replicas", "0", "--cluster-yes"]);
    cli(authority, &create).await;
    for node in &nodes {
        let port = node.port.to_string();
        until("the cluster is up", async || {
            let info = cli(authority, &["-p", &port, "cluster", "info"]).await;
            info.contains("cluster_state:ok") && info.contains("cluster_known_nodes:3")
        })
        .await;
    }
    let certificates = Certificates { ca: Some(authority.file()), identity: None };
    let settings = Settings { mode: Mode::Cluster, ..settings_of(&nodes[0], certificates) };
    (nodes, settings)
}

/// Most keys are on nodes that are announced by an address for which no certificate is valid.
#[tokio::test]
async fn a_cluster_that_is_announced_by_addresses_is_refused_for_its_certificates_every_time() {
    let authority = Authority::new();
    let (_nodes, settings) = cluster(&authority, &[]).await;
    let store = open(&settings, Clock::system()).unwrap();
    let mut refused = 0;
    for n in 0..30 {
        match store.apply(claim_on(&order(&n.to_string()))).await {
            Ok(_) => {}
            Err(Error::Unavailable(why)) => {
                assert_eq!(why, REFUSED);
                refused += 1;
            }
            Err(other) => panic!("{other:?}"),
        }
        let tried = store.probe().await;
        assert!(matches!(tried, Err(Error::Unavailable(REFUSED))), "{tried:?}");
    }
    assert!(refused > 0);
}

#[tokio::test]
async fn a_cluster_that_is_announced_by_the_names_in_its_certificates_is_spoken_to() {
    let authority = Authority::new();
    let announce = [
        "--cluster-announce-hostname",
        "localhost",
        "--cluster-preferred-endpoint-type",
        "hostname",
    ];
    let (_nodes, settings) = cluster(&authority, &announce).await;
    let store = open(&settings, Clock::system()).unwrap();
    for n in 0..30 {
        attempted(&*store, &order(&n.to_string()), Outcome::Succeeded).await;
    }
    store.probe().await.unwrap();
}

async fn is_refused(store: &dyn Store) {
    match store.apply(claim_on(&order("1"))).await {
        Err(Error::Unavailable(why)) => assert_eq!(why, REFUSED),
        other => panic!("not refused: {other:?}"),
    }
}

#[tokio::test]
async fn a_server_of_the_given_authority_is_spoken_to() {
    let authority = Authority::new();
    let server = over_tls(&authority, "localhost", "no").await;
    let ca = Some(authority.file());
    let store = store_of(&server, Certificates { ca, identity: None });
    listens(&*store).await;
    attempted(&*store, &order("1"), Outcome::Succeeded).await;
    store.probe().await.unwrap();
}

#[tokio::test]
async fn a_server_of_another_authority_or_name_is_not_spoken_to() {
    let (authority, other) = (Authority::new(), Authority::new());
    let server = over_tls(&authority, "localhost", "no").await;
    let ca = Some(other.file());
    is_refused(&*store_of(&server, Certificates { ca, identity: None })).await;
    // nor of one that this machine does not know
    is_refused(&*store_of(&server, Certificates::default())).await;
    let misnamed = over_tls(&authority, "redis.example", "no").await;
    let ca = Some(authority.file());
    is_refused(&*store_of(&misnamed, Certificates { ca, identity: None })).await;
}

#[tokio::test]
async fn a_server_that_asks_for_a_certificate_gets_the_given_one() {
    let (authority, other) = (Authority::new(), Authority::new());
    let server = over_tls(&authority, "localhost", "yes").await;
    let certificates = |identity: Option<Signed>| Certificates {
        ca: Some(authority.file()),
        identity: identity.map(|signed| (signed.certificate, signed.key)),
    };
    let store = store_of(&server, certificates(Some(authority.signs("onceward"))));
    attempted(&*store, &order("1"), Outcome::Succeeded).await;
    is_refused(&*store_of(&server, certificates(None))).await;
    is_refused(&*store_of(&server, certificates(Some(other.signs("onceward"))))).await;
}

#[tokio::test]
async fn files_that_cannot_be_used_are_said_before_anything_is_connected() {
    let authority = Authority::new();
    let server = over_tls(&authority, "localhost", "no").await;
    let missing = authority.file().with_file_name("missing.pem");
    let asked = settings_of(&server, Certificates { ca: Some(missing.clone()), identity: None });
    let told = asked.check().unwrap_err();
    assert!(matches!(&told, SetupError::File { path, .. } if *path == missing), "{told:?}");
    let signed = authority.signs("onceward");
    let no_key = Some((signed.certificate.clone(), signed.certificate));
    let asked = settings_of(&server, Certificates { ca: Some(authority.file()), identity: no_key });
    assert!(matches!(asked.check().unwrap_err(), SetupError::Connection(_)));
}

#[tokio::test]
async fn certificates_that_would_not_be_used_and_mixed_schemes_are_no_settings() {
    let authority = Authority::new();
    let (signed, ca) = (authority.signs("onceward"), Some(authority.file()));
    let identity = Some((signed.certificate, signed.key));
    for certificates in [
        Certificates { ca: ca.clone(), identity: None },
        Certificates { ca: None, identity: identity.clone() },
    ] {
        let over_nothing = settings(&["redis://localhost", "redis://localhost:7000"]);
        over_nothing.check().unwrap();
        let over_nothing = Settings { certificates, ..over_nothing };
        assert!(matches!(over_nothing.check().unwrap_err(), SetupError::Connection(_)));
    }
    let certificates = Certificates { ca, identity };
    for (first, second) in [("redis", "rediss"), ("rediss", "redis"), ("rediss", "rediss")] {
        let urls = [first, second].map(|scheme| format!("{scheme}://localhost"));
        let both = settings(&[&urls[0], &urls[1]]);
        assert_eq!(both.check().is_ok(), first == second, "{urls:?}");
        let both = Settings { certificates: certificates.clone(), ..both };
        assert_eq!(both.check().is_ok(), first == second, "{urls:?}");
    }
}
