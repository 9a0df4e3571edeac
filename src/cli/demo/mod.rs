//! `onceward demo`: what becomes of duplicates, seen from both ends.

mod event;
mod receiver;
mod scene;
mod sender;

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};

use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use super::output::{Ended, say};
use super::serve;
use crate::app::{App, StartError};
use crate::config::{Config, Problems};
use crate::telemetry::{self, Format};

use receiver::Receiver;
use sender::Sender;

#[derive(Debug, clap::Args)]
#[command(after_help = "Example: onceward demo --once")]
pub(super) struct Args {
    /// End after the show: with status 0 if every count is as promised, else with 1.
    #[arg(long)]
    once: bool,
    /// What is logged: a level, or directives such as `info,onceward::proxy=debug`.
    #[arg(long, value_name = "FILTER", env = "ONCEWARD_LOG", default_value = "warn")]
    #[arg(hide_env_values = true)]
    log: String,
}

/// The demo could not be shown, or showed what it should not.
#[derive(Debug, thiserror::Error)]
enum Error {
    #[error("no place for the demo")]
    Place(#[from] io::Error),
    #[error(transparent)]
    Configuration(#[from] Problems),
    #[error(transparent)]
    Start(#[from] StartError),
    #[error("no sender for the demo")]
    Sender(#[from] reqwest::Error),
    #[error("not everything went as promised")]
    NotAsPromised,
}

pub(super) fn run(args: &Args) -> Ended {
    if let Err(error) = telemetry::install(Format::Text, &args.log) {
        return Ended::misused(format!("error: {error}\n"));
    }
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return Ended::failed(&error),
    };
    match runtime.block_on(demo(args.once)) {
        Ok(()) => Ended::done(""),
        Err(error) => Ended::failed(&error),
    }
}

async fn demo(once: bool) -> Result<(), Error> {
    let (mut terminate, mut interrupt) = serve::signals()?;
    let stage = Stage::set().await?;
    let mut kept = true;
    let show = async {
        say(&stage.introduction());
        kept = scene::play(&stage.sender, &stage.receiver).await;
        if !once {
            say(&stage.invitation());
            std::future::pending::<()>().await;
        }
    };
    tokio::select! {
        () = show => {}
        () = serve::next(&mut terminate, &mut interrupt) => {}
    }
    stage.clear().await;
    if kept { Ok(()) } else { Err(Error::NotAsPromised) }
}

/// What the demo shows, and what people can copy.
const CONFIGURATION: &str = include_str!("../../../config/demo.toml");

/// The routes of [`CONFIGURATION`], as variables spell them.
const ROUTES: [&str; 6] = ["STRIPE", "GITHUB", "SHOPIFY", "PAYPAL", "ADYEN", "ORDERS"];

/// Receiver and proxy, running.
struct Stage {
    receiver: Receiver,
    sender: Sender,
    receives_at: SocketAddr,
    proxy: SocketAddr,
    admin: SocketAddr,
    file: PathBuf,
    stop: oneshot::Sender<()>,
    running: JoinHandle<()>,
    /// Removed with everything in it when it is dropped.
    directory: TempDir,
}

impl Stage {
    async fn set() -> Result<Self, Error> {
        let directory = tempfile::Builder::new().prefix("onceward-demo-").tempdir()?;
        let receiver = Receiver::default();
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let receives_at = listener.local_addr()?;
        tokio::spawn(receiver.clone().serve(listener));

        let file = directory.path().join("demo.toml");
        std::fs::write(&file, CONFIGURATION)?;
        let config = Config::from_file(&file, overrides(directory.path(), receives_at))?;
        let app = App::start(config).await?;
        let (proxy, admin) = (app.address()?, app.admin_address()?);
        let sender = Sender::new(proxy)?;
        let (stop, stopped) = oneshot::channel();
        let running = tokio::spawn(app.run(async {
            // An end of the other side is an end, too.
            let _asked = stopped.await;
        }));
        Ok(Self { receiver, sender, receives_at, proxy, admin, file, stop, running, directory })
    }

    /// Ends the proxy before its directory goes. Nobody waits for the slow receiver.
    async fn clear(self) {
        self.receiver.hurry();
        drop(self.stop);
        let _panicked = self.running.await;
        drop(self.directory);
    }

    fn introduction(&self) -> String {
        let Self { proxy, receives_at, .. } = self;
        format!(
            "\
A receiver on http://{receives_at} counts what it gets. In front of it stands
the proxy on http://{proxy}, which remembers on disk what was done.
Senders send each event several times.
"
        )
    }

    fn invitation(&self) -> String {
        let Self { proxy, receives_at, admin, .. } = self;
        let file = self.file.display();
        format!(
            "
Both go on. Try it, each line more than once:

curl -i http://{proxy}/webhooks/orders -d '{{\"id\":1,\"type\":\"paid\"}}'
curl -i http://{proxy}/webhooks/orders -H 'x-idempotency-key: a' -d 'x'
curl -i http://{proxy}/webhooks/paypal -d '{{\"id\":2,\"event_type\":\"paid\"}}'
curl http://{receives_at}/count
curl http://{admin}/metrics

The configuration, to copy: {file}
Ctrl-C ends.
"
        )
    }
}

/// Puts the demo's own addresses and directory in place of those in the file.
fn overrides(directory: &Path, receiver: SocketAddr) -> impl Iterator<Item = (String, String)> {
    let own = [
        ("ONCEWARD_SERVER__LISTEN", "127.0.0.1:0".to_owned()),
        ("ONCEWARD_ADMIN__LISTEN", "127.0.0.1:0".to_owned()),
        ("ONCEWARD_STORE__EMBEDDED__PATH", directory.join("data").display().to_string()),
    ];
    let upstreams = ROUTES
        .map(|route| (format!("ONCEWARD_ROUTES__{route}__UPSTREAM"), format!("http://{receiver}")));
    own.map(|(name, value)| (name.to_owned(), value)).into_iter().chain(upstreams)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A route that was forgotten here would send to whatever listens on port 3000.
    #[test]
    fn every_route_leads_to_the_receiver_of_the_demo() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("demo.toml");
        std::fs::write(&file, CONFIGURATION).unwrap();
        let receiver = "127.0.0.1:4".parse().unwrap();
        let config = Config::from_file(&file, overrides(directory.path(), receiver)).unwrap();
        assert_eq!(config.routes.len(), ROUTES.len());
        for route in config.routes {
            assert_eq!(route.upstream.target.authority, "127.0.0.1:4");
        }
    }

    /// Else what was seen would not be what was copied.
    #[test]
    fn nothing_but_addresses_and_the_directory_is_put_in_place_of_what_people_copy() {
        let receiver = "127.0.0.1:4".parse().unwrap();
        for (name, value) in overrides(Path::new("/demo"), receiver) {
            let is_address = ["__LISTEN", "__UPSTREAM"].iter().any(|end| name.ends_with(end));
            let is_directory = name == "ONCEWARD_STORE__EMBEDDED__PATH";
            assert!(is_address || is_directory, "{name}={value}");
        }
    }

    /// The demo has no secrets, and lets a sender hang up.
    #[test]
    fn what_people_copy_names_each_sender_and_lacks_nothing_but_secrets() {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("config/demo.toml");
        let config = Config::from_file(&file, []).unwrap();
        for risk in config.risks() {
            let of_the_slow_scene = risk.code == "answer-after-patience"
                && risk.key.to_string() == "routes.adyen.answer_within";
            let known = ["signature-unchecked", "refusals-count-as-failures", "event-without-type"];
            assert!(known.contains(&risk.code) || of_the_slow_scene, "{risk:?}");
        }
        let senders = config.routes.iter().filter(|route| route.provider.is_some());
        assert_eq!(senders.count(), 5);
    }
}
