//! `onceward serve`: runs the proxy.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use tokio::signal::unix::{SignalKind, signal};
use tokio::time::Instant;

use super::output::Ended;
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
    /// The configuration.
    #[arg(long, short, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Without a file: where everything is forwarded to.
    #[arg(long, value_name = "URL", conflicts_with = "config")]
    upstream: Option<String>,
    /// Without a file: what is forwarded.
    #[arg(long, value_name = "PATH", default_value = "/*", requires = "upstream")]
    path: String,
    /// Without a file: who sends; see `onceward providers`.
    #[arg(long, value_name = "NAME", requires = "upstream", conflicts_with = "config")]
    provider: Option<String>,
    /// The file with the provider's secret; without it, the variable `ONCEWARD_SECRET`.
    #[arg(long, value_name = "FILE", requires = "provider", conflicts_with = "config")]
    secret_file: Option<PathBuf>,
    /// Start although the embedded store is damaged, without what is damaged: operations that were
    /// recorded there may run again. The log says which part of which file that is.
    #[arg(long)]
    accept_damaged_store: bool,
    #[command(flatten)]
    log: LogArgs,
}

/// The variable with the secret, where there is no configuration to name another.
const SECRET: &str = "ONCEWARD_SECRET";

/// How the log is written.
#[derive(Debug, clap::Args)]
pub(super) struct LogArgs {
    /// What is logged: a level, or directives such as `info,onceward::proxy=debug`.
    #[arg(
        long,
        value_name = "FILTER",
        env = "ONCEWARD_LOG",
        hide_env_values = true,
        default_value = "info,fjall=warn,lsm_tree=warn"
    )]
    log: String,
    /// One line of text, or one JSON object, for each event.
    // Read later than the others: what stands in a variable is shown by no error.
    #[arg(long, value_name = "text|json", env = "ONCEWARD_LOG_FORMAT", default_value = "text")]
    #[arg(hide_env_values = true)]
    log_format: String,
}

impl LogArgs {
    pub(super) fn install(&self) -> Result<(), telemetry::LogError> {
        telemetry::install(self.log_format.parse()?, &self.log)
    }
}

pub(super) fn run(args: &Args) -> Ended {
    if args.config.is_none() && args.upstream.is_none() {
        return Ended::misused(NOTHING_TO_SERVE);
    }
    let loaded = sources(args).and_then(|sources| Ok((sources.check()?, sources)));
    let (mut config, sources) = match loaded {
        Ok(loaded) => loaded,
        Err(problems) => return Ended::misused(format!("error: {problems}\n")),
    };
    if args.accept_damaged_store {
        let store::Settings::Embedded(settings) = &mut config.store else {
            let why = "`--accept-damaged-store` is for an embedded store, and this one is another";
            return Ended::misused(format!("error: {why}\n"));
        };
        settings.if_damaged = IfDamaged::Accept;
    }
    if let Err(error) = args.log.install() {
        return Ended::misused(format!("error: {error}\n"));
    }
    for ignored in sources.ignored_variables() {
        tracing::warn!(setting = %ignored.key, hint = &*ignored.hint, "{}", ignored.text);
    }
    for secret in config.misshapen_secrets() {
        let code = secret.code;
        tracing::warn!(setting = %secret.key, code, hint = &*secret.hint, "{}", secret.text);
    }
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return Ended::failed(&error),
    };
    let ended = runtime.block_on(serve(config));
    // What is left is waited for by nobody.
    runtime.shutdown_background();
    ended
}

/// For how long another signal is the same wish: one that is sent to a process and to its group, as
/// `timeout` does, comes twice.
const ONE_WISH: Duration = Duration::from_secs(1);

/// What is said to whoever types `onceward serve` and nothing else.
const NOTHING_TO_SERVE: &str = "\
error: nothing to serve: neither `--config` nor `--upstream` is given
  hint: `onceward init --output onceward.toml` writes a configuration to start with,
        `onceward serve --config onceward.toml` runs it;
        `onceward serve --upstream http://127.0.0.1:3000` needs no file,
        `onceward serve --help` says the rest
";

fn sources(args: &Args) -> Result<Sources, Problems> {
    match (&args.config, &args.upstream) {
        (Some(file), _) => Sources::from_file(file, environment()),
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
            Sources::from_arguments(&given, environment())
        }
    }
}

/// The variables of this process. One that is not text is none of ours.
pub(super) fn environment() -> impl Iterator<Item = (String, String)> {
    std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
}

async fn serve(config: Config) -> Ended {
    // Heard from before anything is started, so that no signal is missed.
    if let Err(error) = ignore_hangups() {
        return Ended::failed(&error);
    }
    let (mut terminate, mut interrupt) = match signals() {
        Ok(signals) => signals,
        Err(error) => return Ended::failed(&error),
    };
    let app = tokio::select! {
        started = App::start(config) => match started {
            Ok(app) => app,
            Err(error) => return not_started(&error),
        },
        _ = terminate.recv() => return Ended::done(""),
        _ = interrupt.recv() => return Ended::done(""),
    };
    match (app.address(), app.admin_address()) {
        (Ok(listen), Ok(admin)) => tracing::info!(%listen, %admin, "serving"),
        (Err(error), _) | (_, Err(error)) => return Ended::failed(&error),
    }
    let metrics = app.metrics();
    let (asked, asked_to_stop) = tokio::sync::oneshot::channel::<()>();
    let run = app.run(async {
        // The signal's end of the channel lives until it has spoken.
        let _asked = asked_to_stop.await;
    });
    let second_signal = async {
        next(&mut terminate, &mut interrupt).await;
        let first = Instant::now();
        let _told = asked.send(());
        next(&mut terminate, &mut interrupt).await;
        while first.elapsed() < ONE_WISH {
            next(&mut terminate, &mut interrupt).await;
        }
    };
    tokio::select! {
        () = run => Ended::done(""),
        () = second_signal => {
            // In no order with what ends now: of an attempt that ends at this moment it says too much.
            let attempts = metrics.in_flight.get();
            Ended::failed(&if attempts > 0 { EndedAtOnce::During(attempts) } else { EndedAtOnce::Idle })
        }
    }
}

/// By itself the signal ends a process at once, which leaves operations uncertain. Others take it
/// for a wish to read their configuration again.
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

/// Why it does not start, and what to do about an address or a store.
fn not_started(error: &StartError) -> Ended {
    let ended = Ended::failed(error);
    match error {
        StartError::Listen { key, address, source } => {
            ended.with_hint(&about_address(key, address.port(), source.kind()))
        }
        StartError::Store(OpenError::InUse { .. }) => {
            ended.with_hint("stop that process, or give this one another `store.embedded.path`")
        }
        StartError::Store(OpenError::NotOurs { .. }) => ended.with_hint(
            "let `store.embedded.path` name an empty directory, or one that is not there yet",
        ),
        StartError::Store(_)
        | StartError::Secret(_)
        | StartError::Certificates(_)
        | StartError::Server(_) => ended,
    }
}

fn about_address(key: &str, port: u16, kind: io::ErrorKind) -> String {
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

/// The second signal came before the first had done its work.
#[derive(Debug, thiserror::Error)]
enum EndedAtOnce {
    #[error("ended at once by a second signal; no attempt was in flight")]
    Idle,
    #[error(
        "ended at once by a second signal; attempts in flight: {0}; their operations are uncertain \
         after the restart"
    )]
    During(i64),
}

pub(super) type Signals = (tokio::signal::unix::Signal, tokio::signal::unix::Signal);

pub(super) fn signals() -> io::Result<Signals> {
    Ok((signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?))
}

pub(super) async fn next(
    terminate: &mut tokio::signal::unix::Signal,
    interrupt: &mut tokio::signal::unix::Signal,
) {
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
}
