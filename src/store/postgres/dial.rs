//! Makes connections to the database.

use std::pin::Pin;
use std::str::FromStr as _;
use std::time::Duration;

use deadpool_postgres::Connect;
use tokio::task::JoinHandle;
use tokio_postgres::config::{Config, SslMode, TargetSessionAttrs};
use tokio_postgres::error::SqlState;
use tokio_postgres::tls::MakeTlsConnect;
use tokio_postgres::{Client, Connection, Error, Socket};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::{Settings, share_millis};
use crate::secret::Secret;
use crate::store::SetupError;

/// The name of a connection in `pg_stat_activity`.
const APPLICATION_NAME: &str = "onceward";

/// A setting by which a session is recognised as our own: a pooler does not pass it on.
pub(super) const SESSION_MARK: &str = "onceward.session";

type TlsStream = <MakeRustlsConnect as MakeTlsConnect<Socket>>::Stream;

/// The URL names no host.
#[derive(Debug, thiserror::Error)]
#[error("expected a host in the URL, found none")]
struct NoHost;

/// Makes connections to one URL.
#[derive(Clone)]
pub(super) struct Dialer {
    config: Config,
    tls: MakeRustlsConnect,
    /// The settings that a session begins with, unless a pooler refuses them.
    options: String,
}

impl Dialer {
    /// Parses the URL. Connects to no server.
    ///
    /// # Errors
    ///
    /// If it is not a URL of a database. The error shows nothing of the URL except names of
    /// options: it may hold a password.
    pub(super) fn new(
        url: &Secret,
        settings: &Settings,
        tls: MakeRustlsConnect,
    ) -> Result<Self, SetupError> {
        let mut config = Config::from_str(&with_known_mode(url.reveal()))
            .map_err(|error| SetupError::Connection(Box::new(error)))?;
        if config.get_hosts().is_empty() && config.get_hostaddrs().is_empty() {
            return Err(SetupError::Connection(Box::new(NoHost)));
        }
        let certificates = &settings.certificates;
        let wants_tls = certificates.ca.is_some() || certificates.identity.is_some();
        if wants_tls && config.get_ssl_mode() == SslMode::Prefer {
            // `prefer` accepts a server that says it has no TLS, and so would let anybody in
            // between switch it off.
            config.ssl_mode(SslMode::Require);
        }
        if config.get_application_name().is_none() {
            config.application_name(APPLICATION_NAME);
        }
        // Several hosts are a primary and its standbys, which take no writes.
        if config.get_hosts().len() > 1 {
            config.target_session_attrs(TargetSessionAttrs::ReadWrite);
        }
        // A connection that a firewall dropped silently is noticed after 30 seconds without
        // traffic.
        config
            .connect_timeout(settings.timeout)
            .tcp_user_timeout(settings.timeout)
            .keepalives_idle(Duration::from_secs(15))
            .keepalives_interval(Duration::from_secs(5))
            .keepalives_retries(3);
        let options = session_options(config.get_options(), settings.timeout);
        Ok(Self { config, tls, options })
    }

    /// A connection, and the future that drives it. A pooler may refuse the options of a session.
    /// Then it is dialled without them; that is not remembered, because a server may take its
    /// place.
    pub(super) async fn dial(
        &self,
        mark: Option<&str>,
    ) -> Result<(Client, Connection<Socket, TlsStream>), Error> {
        let mut config = self.config.clone();
        let mark = mark.map(|mark| format!(" -c {SESSION_MARK}={mark}"));
        config.options(format!("{}{}", self.options, mark.unwrap_or_default()));
        match config.connect(self.tls.clone()).await {
            Err(error) if error.code() == Some(&SqlState::PROTOCOL_VIOLATION) => {
                self.config.connect(self.tls.clone()).await
            }
            dialled => dialled,
        }
    }
}

impl Connect for Dialer {
    fn connect(
        &self,
        _config: &Config,
    ) -> Pin<Box<dyn Future<Output = Result<(Client, JoinHandle<()>), Error>> + Send + '_>> {
        Box::pin(async move {
            let (client, connection) = self.dial(None).await?;
            // An error is reported to the call that uses the connection.
            let driven = tokio::spawn(async { drop(connection.await) });
            Ok((client, driven))
        })
    }
}

/// The options of a session: a statement sees what others have committed, and it ends within a
/// call's time, so that the server does not go on with what nobody waits for.
fn session_options(given: Option<&str>, timeout: Duration) -> String {
    let millis = share_millis(timeout);
    format!(
        "{} -c default_transaction_isolation=read\\ committed -c statement_timeout={millis} \
         -c lock_timeout={millis} -c idle_in_transaction_session_timeout={millis}",
        given.unwrap_or_default()
    )
}

/// Replaces the modes `verify-ca` and `verify-full`, which the library does not know, by `require`.
/// The certificate and its name are checked here in every mode, so it means the same.
fn with_known_mode(url: &str) -> String {
    let Some((place, options)) = url.rsplit_once('?') else { return url.to_owned() };
    let options = options.split('&').map(|option| match option {
        "sslmode=verify-ca" | "sslmode=verify-full" => "sslmode=require",
        other => other,
    });
    format!("{place}?{}", options.collect::<Vec<_>>().join("&"))
}

impl std::fmt::Debug for Dialer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Dialer").finish_non_exhaustive()
    }
}
