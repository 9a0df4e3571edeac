//! A real `onceward serve`.

use std::fs;
use std::net::{SocketAddr, TcpListener};
use std::process::Stdio;
use std::time::Duration;

use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::process::{Child, Command};
use tokio::time::{sleep, timeout};

/// After which it closes a connection that nobody uses.
pub(crate) const IDLE_TIMEOUT: Duration = Duration::from_secs(1);

/// How long it may take to be ready.
const PATIENCE: Duration = Duration::from_secs(20);

/// The process, ended with this value.
pub(crate) struct Onceward {
    pub(crate) address: SocketAddr,
    child: Child,
    folder: TempDir,
}

impl Onceward {
    /// Starts it and waits until it is ready.
    pub(crate) async fn in_front_of(upstream: SocketAddr) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let [address, admin] = free_addresses();
        let file = folder.path().join("onceward.toml");
        fs::write(&file, configuration(address, admin, upstream)).unwrap();
        let log = fs::File::create(folder.path().join("log")).unwrap();
        let program = env!("CARGO_BIN_EXE_onceward");
        let child = Command::new(program)
            .args(["serve", "--config"])
            .arg(&file)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let mut onceward = Self { address, child, folder };
        let ready = timeout(PATIENCE, onceward.ready(admin)).await;
        assert!(ready.is_ok_and(|ready| ready), "it is not ready:\n{}", onceward.log());
        onceward
    }

    /// What it has said.
    pub(crate) fn log(&self) -> String {
        fs::read_to_string(self.folder.path().join("log")).unwrap_or_default()
    }

    /// Asks until it is ready; says whether it is, or has ended instead.
    async fn ready(&mut self, admin: SocketAddr) -> bool {
        loop {
            if self.child.try_wait().unwrap().is_some() {
                return false;
            }
            if is_ready(admin).await {
                return true;
            }
            // A look within a bounded wait: there is nothing to wait for but another try.
            sleep(Duration::from_millis(20)).await;
        }
    }
}

async fn is_ready(admin: SocketAddr) -> bool {
    let Ok(mut stream) = TcpStream::connect(admin).await else {
        return false;
    };
    let ask = format!("GET /readyz HTTP/1.1\r\nHost: {admin}\r\nConnection: close\r\n\r\n");
    let mut answer = String::new();
    stream.write_all(ask.as_bytes()).await.is_ok()
        && stream.read_to_string(&mut answer).await.is_ok()
        && answer.starts_with("HTTP/1.1 200 ")
}

/// Addresses that were free a moment ago.
fn free_addresses() -> [SocketAddr; 2] {
    let held = [(); 2].map(|()| TcpListener::bind("127.0.0.1:0").unwrap());
    held.map(|listener| listener.local_addr().unwrap())
}

fn configuration(address: SocketAddr, admin: SocketAddr, upstream: SocketAddr) -> String {
    format!(
        r#"
        [server]
        listen = "{address}"
        [server.limits]
        header_timeout = "1s"
        body_timeout = "1s"
        idle_timeout = "{}s"
        [admin]
        listen = "{admin}"
        [store.memory]
        [routes.raw]
        path = "/hook/*"
        upstream = "http://{upstream}"
        "#,
        IDLE_TIMEOUT.as_secs()
    )
}
