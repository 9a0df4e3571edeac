//! `onceward demo`: shows what becomes of duplicates, from the sender's end and the upstream's.
//!
//! The demo runs the proxy in this process, with a sample upstream behind it and senders in front
//! of it. `scene.rs` has the scenes in which no person is needed, `held.rs` the one in which a
//! person decides.

mod event;
mod held;
mod scene;
mod sender;
mod transcript;
mod upstream;

use std::ffi::OsString;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;

use tempfile::{TempDir, TempPath};
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use super::output::{Exit, say};
use super::signals::Signals;
use crate::app::{App, StartError};
use crate::config::{Config, Problems};
use crate::telemetry::{self, Format};

use sender::Sender;
use upstream::SampleUpstream;

#[derive(Debug, clap::Args)]
#[command(after_help = "Example: onceward demo --once")]
pub(super) struct Args {
    /// End after the scenes: with status 0 if everything went as promised, else with 1.
    #[arg(long)]
    once: bool,
    /// What is logged: a level, or directives such as `info,onceward::proxy=debug`.
    // The warning that an operation is held would stand in the middle of the sixth scene, which
    // shows the same.
    #[arg(long, value_name = "FILTER", env = "ONCEWARD_LOG", hide_env_values = true)]
    #[arg(default_value = "warn,onceward::idempotency=error")]
    log: String,
}

/// Why the demo fails.
#[derive(Debug, thiserror::Error)]
enum Error {
    #[error("the demo cannot be set up")]
    SetUp(#[from] io::Error),
    #[error(transparent)]
    Configuration(#[from] Problems),
    #[error(transparent)]
    Start(#[from] StartError),
    #[error("the sample sender cannot be set up")]
    Sender(#[from] reqwest::Error),
    #[error("not everything went as promised")]
    NotAsPromised,
}

pub(super) fn run(args: &Args) -> Exit {
    if let Err(error) = telemetry::install(Format::Text, &args.log) {
        return Exit::misused(format!("error: {error}\n"));
    }
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return Exit::failed(&error),
    };
    match runtime.block_on(demo(args.once)) {
        Ok(()) => Exit::done(""),
        Err(error) => Exit::failed(&error),
    }
}

async fn demo(once: bool) -> Result<(), Error> {
    let mut signals = Signals::install()?;
    let mut stage = Stage::set_up().await?;
    let mut is_as_promised = true;
    let show = async {
        say(&stage.introduction());
        let Stage { sender, upstream, admin, .. } = &stage;
        is_as_promised = scene::play(sender, upstream).await;
        is_as_promised &= held::play(sender, upstream, *admin).await;
        if !once {
            stage.keep_file();
            say(&stage.invitation());
            std::future::pending::<()>().await;
        }
    };
    tokio::select! {
        () = show => {}
        () = signals.next() => {}
    }
    stage.tear_down().await;
    if is_as_promised { Ok(()) } else { Err(Error::NotAsPromised) }
}

/// The configuration of the demo, which people can copy.
const CONFIGURATION: &str = include_str!("../../../config/demo.toml");

/// The routes of [`CONFIGURATION`], as environment variables spell them.
const ROUTES: [&str; 7] = ["STRIPE", "GITHUB", "SHOPIFY", "PAYPAL", "ADYEN", "TRANSFERS", "ORDERS"];

/// The sample upstream, the proxy and the sample sender, all running.
struct Stage {
    upstream: SampleUpstream,
    upstream_address: SocketAddr,
    sender: Sender,
    proxy: SocketAddr,
    admin: SocketAddr,
    /// The configuration file. It is removed at the end unless it was shown to the user.
    file: TempPath,
    /// The proxy drains when this is dropped.
    stop: oneshot::Sender<()>,
    running: JoinHandle<()>,
    /// The directory of the store. It is removed at the end.
    directory: TempDir,
}

impl Stage {
    async fn set_up() -> Result<Self, Error> {
        let directory = tempfile::Builder::new().prefix("onceward-demo-").tempdir()?;
        let upstream = SampleUpstream::default();
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let upstream_address = listener.local_addr()?;
        tokio::spawn(upstream.clone().serve(listener));

        let file = tempfile::Builder::new().prefix("onceward-demo-").suffix(".toml").tempfile()?;
        let file = file.into_temp_path();
        std::fs::write(&file, CONFIGURATION)?;
        let config = Config::from_file(&file, overrides(directory.path(), upstream_address))?;
        let app = App::start(config).await?;
        let proxy = app.address()?;
        let admin = app.admin_address()?;
        let sender = Sender::new(proxy)?;
        let (stop, stopped) = oneshot::channel();
        let running = tokio::spawn(app.run(async {
            // The sender only drops its end, which ends this wait with an error.
            let _dropped = stopped.await;
        }));
        Ok(Self {
            upstream,
            upstream_address,
            sender,
            proxy,
            admin,
            file,
            stop,
            running,
            directory,
        })
    }

    /// Keeps the configuration file, so that whoever copies its path later still finds it.
    fn keep_file(&mut self) {
        self.file.disable_cleanup(true);
    }

    /// Ends the proxy, and removes its store afterwards. An embedded store whose files vanish would
    /// report errors.
    async fn tear_down(self) {
        self.upstream.hurry();
        drop(self.stop);
        let _panicked = self.running.await;
        drop(self.directory);
    }

    fn introduction(&self) -> String {
        let Self { proxy, upstream_address, .. } = self;
        format!(
            "\
An upstream on http://{upstream_address} counts the events that it gets. In front of it
stands the proxy on http://{proxy}, which remembers on disk what was done.
Senders send each event several times.
"
        )
    }

    fn invitation(&self) -> String {
        let Self { proxy, upstream_address, admin, .. } = self;
        let file = self.file.display();
        format!(
            "
The upstream and the proxy go on until Ctrl-C. Try it, each line more than once. The upstream
answers the first attempt at an event for `paypal` with 503, to show that the next copy is a
new attempt:

curl -i http://{proxy}/webhooks/orders -d '{{\"id\":1,\"type\":\"paid\"}}'
curl -i http://{proxy}/webhooks/orders -H 'x-idempotency-key: a' -d 'x'
curl -i http://{proxy}/webhooks/paypal -d '{{\"id\":2,\"event_type\":\"paid\"}}'
curl http://{upstream_address}/count       # how often each event came, and the event's id
curl http://{admin}/metrics
onceward operations list --admin http://{admin}

The configuration stays when the demo ends, to copy and to run:

onceward check --config {file}
onceward serve --config {file}
"
        )
    }
}

/// The environment variables that put the demo's own addresses and directory in place of those in
/// the file.
fn overrides(directory: &Path, upstream: SocketAddr) -> impl Iterator<Item = (OsString, OsString)> {
    // Port 0: the demo runs beside whatever uses the ports in the file, such as another demo.
    let own = [
        ("ONCEWARD_SERVER__LISTEN".into(), "127.0.0.1:0".into()),
        ("ONCEWARD_ADMIN__LISTEN".into(), "127.0.0.1:0".into()),
        ("ONCEWARD_STORE__EMBEDDED__PATH".into(), directory.join("data").into_os_string()),
    ];
    let upstream = format!("http://{upstream}");
    let upstreams = ROUTES.map(|route| {
        (format!("ONCEWARD_ROUTES__{route}__UPSTREAM").into(), upstream.clone().into())
    });
    own.into_iter().chain(upstreams)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A route that was forgotten here would send to whatever listens on port 3000.
    #[test]
    fn every_route_leads_to_the_upstream_of_the_demo() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("demo.toml");
        std::fs::write(&file, CONFIGURATION).unwrap();
        let upstream = "127.0.0.1:4".parse().unwrap();
        let config = Config::from_file(&file, overrides(directory.path(), upstream)).unwrap();
        assert_eq!(config.routes.len(), ROUTES.len());
        for route in config.routes {
            assert_eq!(route.upstream.target.authority, "127.0.0.1:4");
        }
    }

    /// Otherwise the demo would show something else than people copy.
    #[test]
    fn the_demo_overrides_nothing_but_addresses_and_the_directory() {
        let upstream = "127.0.0.1:4".parse().unwrap();
        for (name, value) in overrides(Path::new("/demo"), upstream) {
            let name = name.to_str().unwrap();
            let is_address = ["__LISTEN", "__UPSTREAM"].iter().any(|end| name.ends_with(end));
            let is_directory = name == "ONCEWARD_STORE__EMBEDDED__PATH";
            assert!(is_address || is_directory, "{name}={value:?}");
        }
    }

    /// The demo has no secrets, lets a sender hang up, and ends an attempt early.
    #[test]
    fn the_configuration_names_each_sender_and_lacks_nothing_but_secrets() {
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
