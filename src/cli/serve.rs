//! `onceward serve`: runs the proxy.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use tokio::signal::unix::{SignalKind, signal};
use tokio::time::Instant;

use super::output::Exit;
use super::signals::Signals;
use crate::app::{App, StartError};
use crate::config::{Arguments, Config, Problems, SecretIn, Sources};
use crate::provider::preset;
use crate::store;
use crate::store::embedded::{IfDamaged, OpenError};
use crate::telemetry;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  onceward serve --config onceward.toml
  onceward serve --upstream http://127.0.0.1:3000
  ONCEWARD_SECRET=whsec_… onceward serve --upstream http://127.0.0.1:3000 --provider stripe

The secret of a provider that signs is in ONCEWARD_SECRET or in the file of --secret-file.

Signals: the first SIGTERM or SIGINT drains; another one, a second or more later, ends at once.
SIGHUP is ignored.")]
pub(super) struct Args {
    /// The configuration file.
    #[arg(long, short, value_name = "FILE")]
    config: Option<PathBuf>,
    /// The URL of the upstream, in place of a configuration file.
    #[arg(long, value_name = "URL", conflicts_with = "config")]
    upstream: Option<String>,
    /// With --upstream: the path that is forwarded.
    #[arg(long, value_name = "PATH", default_value = "/*", requires = "upstream")]
    path: String,
    /// With --upstream: the sender; see `onceward providers`.
    #[arg(long, value_name = "NAME", requires = "upstream", conflicts_with = "config")]
    provider: Option<String>,
    /// A file with the provider's secret, in place of the variable `ONCEWARD_SECRET`.
    #[arg(long, value_name = "FILE", requires = "provider", conflicts_with = "config")]
    secret_file: Option<PathBuf>,
    /// Start although the embedded store is damaged, without the damaged parts: operations that
    /// were recorded there may run again. The log names each part and its file.
    #[arg(long)]
    accept_damaged_store: bool,
    #[command(flatten)]
    log: LogArgs,
}

/// The variable with the secret if there is no configuration file to name another one.
const SECRET: &str = "ONCEWARD_SECRET";

/// How the log is written.
#[derive(Debug, clap::Args)]
pub(super) struct LogArgs {
    /// What is logged: a level, or directives such as `info,onceward::proxy=debug`.
    // The embedded database logs its own housekeeping at `info`.
    #[arg(
        long,
        value_name = "FILTER",
        env = "ONCEWARD_LOG",
        hide_env_values = true,
        default_value = "info,fjall=warn,lsm_tree=warn"
    )]
    log: String,
    /// One line of text, or one JSON object, for each event.
    // Not parsed by clap, whose error would show the value. Somebody may have put a secret into the
    // wrong variable.
    #[arg(long, value_name = "text|json", env = "ONCEWARD_LOG_FORMAT", default_value = "text")]
    #[arg(hide_env_values = true)]
    log_format: String,
}

impl LogArgs {
    /// Begins to write the log.
    pub(super) fn install(&self) -> Result<(), telemetry::LogError> {
        telemetry::install(self.log_format.parse()?, &self.log)
    }
}

pub(super) fn run(args: &Args) -> Exit {
    if args.config.is_none() && args.upstream.is_none() {
        return Exit::misused(NOTHING_TO_SERVE);
    }
    // The configuration is read before the log begins: its problems are for the person who has
    // started this, in text that is easy to read.
    let loaded = sources(args).and_then(|sources| Ok((sources.check()?, sources)));
    let (mut config, sources) = match loaded {
        Ok(loaded) => loaded,
        Err(problems) => return Exit::misused(format!("error: {problems}\n")),
    };
    if args.accept_damaged_store {
        let store::Settings::Embedded(settings) = &mut config.store else {
            let why = "`--accept-damaged-store` is for an embedded store, and this one is another";
            return Exit::misused(format!("error: {why}\n"));
        };
        settings.if_damaged = IfDamaged::Accept;
    }
    if let Err(error) = args.log.install() {
        return Exit::misused(format!("error: {error}\n"));
    }
    // Neither of these stops the start, but each may be why nothing works afterwards.
    for ignored in sources.ignored_variables() {
        tracing::warn!(setting = %ignored.key, hint = &*ignored.hint, "{}", ignored.text);
    }
    for secret in config.misshapen_secrets() {
        let code = secret.code;
        tracing::warn!(setting = %secret.key, code, hint = &*secret.hint, "{}", secret.text);
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(BACKGROUND_THREADS)
        .enable_all()
        .build();
    let runtime = match runtime {
        Ok(runtime) => runtime,
        Err(error) => return Exit::failed(&error),
    };
    let exit = runtime.block_on(serve(config));
    // After a second signal tasks may still be running, and dropping a runtime would wait for the
    // blocking ones.
    runtime.shutdown_background();
    exit
}

/// The threads for all but what requests begin: the control plane, and what is done from time to
/// time. That waits far more than it works, and each thread keeps some memory that it has freed.
const BACKGROUND_THREADS: usize = 1;

/// How long after the first signal another one counts as the same. `timeout`, for one, sends a
/// signal to the process and then to its group, so the process gets it twice.
const SAME_SIGNAL: Duration = Duration::from_secs(1);

/// The message if `onceward serve` is called without arguments.
const NOTHING_TO_SERVE: &str = "\
error: nothing to serve: neither `--config` nor `--upstream` is given
  hint: `onceward init --output onceward.toml` writes a configuration to start with,
        `onceward serve --config onceward.toml` runs it;
        `onceward serve --upstream http://127.0.0.1:3000` needs no file,
        `onceward serve --help` says the rest
";

/// Where the configuration comes from: a file or the arguments, and the environment.
fn sources(args: &Args) -> Result<Sources, Problems> {
    match (&args.config, &args.upstream) {
        (Some(file), _) => Sources::from_file(file, std::env::vars_os()),
        (None, upstream) => {
            let secret = match (&args.secret_file, args.provider.as_deref().and_then(preset)) {
                (Some(file), _) => Some(SecretIn::File(file)),
                (None, Some(preset)) if preset.signs() => Some(SecretIn::Variable(SECRET)),
                (None, Some(_) | None) => None,
            };
            let given = Arguments {
                upstream: upstream.as_deref().unwrap_or_default(),
                path: &args.path,
                provider: args.provider.as_deref(),
                secret,
            };
            Sources::from_arguments(&given, std::env::vars_os())
        }
    }
}

async fn serve(config: Config) -> Exit {
    // Signals are received before anything starts, so that none is missed.
    if let Err(error) = ignore_hangups() {
        return Exit::failed(&error);
    }
    let mut signals = match Signals::install() {
        Ok(signals) => signals,
        Err(error) => return Exit::failed(&error),
    };
    let app = tokio::select! {
        started = App::start(config) => match started {
            Ok(app) => app,
            Err(error) => return not_started(&error),
        },
        // A store that is slow to open must not keep an operator from ending the process.
        () = signals.next() => return Exit::done(""),
    };
    match (app.address(), app.admin_address()) {
        (Ok(listen), Ok(admin)) => tracing::info!(%listen, %admin, "serving"),
        (Err(error), _) | (_, Err(error)) => return Exit::failed(&error),
    }
    let metrics = app.metrics();
    let (first_signal, drain) = tokio::sync::oneshot::channel::<()>();
    let run = app.run(async {
        // The sender lives in the branch below until it has sent.
        let _sent = drain.await;
    });
    let second_signal = async {
        signals.next().await;
        let first_at = Instant::now();
        let _app_is_running = first_signal.send(());
        signals.next().await;
        while first_at.elapsed() < SAME_SIGNAL {
            signals.next().await;
        }
    };
    tokio::select! {
        () = run => Exit::done(""),
        () = second_signal => {
            // An attempt that ends at this very moment may still be counted. To say too much is
            // better than to hide an operation that is uncertain.
            let attempts = metrics.in_flight.get();
            let error = if attempts > 0 { SecondSignal::InFlight(attempts) } else { SecondSignal::Idle };
            Exit::failed(&error)
        }
    }
}

/// Ignores SIGHUP. By default it ends a process at once, which would leave operations uncertain;
/// and operators send it to servers that then read their configuration again.
fn ignore_hangups() -> io::Result<()> {
    let mut hangups = signal(SignalKind::hangup())?;
    tokio::spawn(async move {
        while hangups.recv().await.is_some() {
            tracing::warn!(
                "SIGHUP is ignored: the configuration is read at start; a restart drains"
            );
        }
    });
    Ok(())
}

/// Why the process does not start, with a hint about an address or a store.
fn not_started(error: &StartError) -> Exit {
    let exit = Exit::failed(error);
    match error {
        StartError::Listen { key, address, source } => {
            exit.with_hint(&address_hint(key, address.port(), source.kind()))
        }
        // Two processes on one directory would both grant claims.
        StartError::Store(OpenError::InUse { .. }) => {
            exit.with_hint("stop that process, or give this one another `store.embedded.path`")
        }
        StartError::Store(OpenError::NotOurs { .. }) => exit.with_hint(
            "let `store.embedded.path` name an empty directory, or one that is not there yet",
        ),
        StartError::Store(OpenError::Io { source, .. })
            if source.kind() == io::ErrorKind::PermissionDenied =>
        {
            exit.with_hint(
                "`store.embedded.path` must name a directory that this user can make, read and write",
            )
        }
        StartError::Threads(_)
        | StartError::Store(_)
        | StartError::Secret(_)
        | StartError::Certificates(_)
        | StartError::Server(_) => exit,
    }
}

/// What helps if an address cannot be listened on.
fn address_hint(key: &str, port: u16, kind: io::ErrorKind) -> String {
    if kind == io::ErrorKind::AddrInUse {
        format!("`ss -ltnp 'sport = :{port}'` shows who listens there; or change `{key}`")
    } else if kind == io::ErrorKind::AddrNotAvailable {
        format!("this machine has no such address; change `{key}`")
    } else if kind == io::ErrorKind::PermissionDenied {
        format!("ports below 1024 need a privilege; take one above in `{key}`")
    } else {
        format!("change `{key}`")
    }
}

/// A second signal ended the process before it had drained.
#[derive(Debug, thiserror::Error)]
enum SecondSignal {
    #[error("ended at once by a second signal; no attempt was in flight")]
    Idle,
    #[error(
        "ended at once by a second signal; attempts in flight: {0}; their operations are uncertain \
         after the restart"
    )]
    InFlight(i64),
}
