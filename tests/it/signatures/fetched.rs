//! A certificate that a running process fetches from a real server over TLS.

use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

use super::certificates::Signed as Messages;
use super::verifying;
use crate::support::{Authority, Receiver, TlsHost};

const HOST: &str = "sns.us-east-2.amazonaws.com";

/// The library that leads the sender's names to this machine.
fn names(directory: &TempDir) -> PathBuf {
    let library = directory.path().join("names.so");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/support/names.c");
    let mut cc = Command::new("cc");
    cc.args(["-shared", "-fPIC", "-O2", "-o"]).arg(&library).arg(source);
    assert!(cc.status().expect("a C compiler is installed").success());
    library
}

/// The machine's own store of authorities counts, beside that of the web.
#[tokio::test]
async fn a_certificate_is_fetched_from_a_host_that_the_machine_trusts() {
    let messages = Messages::sns();
    let receiver = Receiver::that_answers(200, "ok").await;
    let authority = Authority::new();
    let stranger = Authority::new();
    let directory = TempDir::new().unwrap();
    let library = names(&directory);
    let pem = &messages.certificate_pem;
    let answer = format!("HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n{pem}");
    let host = TlsHost::that_answers(&authority, HOST, move |_| Some(answer.clone())).await;
    let port = host.address.port().to_string();
    let start = async |trusted: &Authority| {
        verifying(&receiver, "sns", &messages.secret)
            .variable("LD_PRELOAD", &library.display().to_string())
            .variable("TEST_HTTPS_PORT", &port)
            .variable("SSL_CERT_FILE", &trusted.file().display().to_string())
            .routes("tolerance = \"3650d\"")
            .start()
            .await
    };
    let message = |id: &str| messages.to_subscription(id, "arn:s1");
    let onceward = start(&authority).await;
    onceward.sends(message("notification-v2")).await.is_executed(200);
    onceward.sends(message("notification-v1")).await.is_replayed(200);
    let forged = message("notification-v2").rewritten(|body| body["Message"] = "forged".into());
    onceward.sends(forged).await.is_refused(401, "signature-invalid");
    host.was_asked(1);
    // Nobody vouches for the host: its certificate is not taken.
    let onceward = start(&stranger).await;
    let undecided = onceward.sends(message("notification-v2")).await;
    undecided.is_refused(503, "signature-undecided").comes_back();
    host.was_asked(1);
    receiver.was_called(1);
}
