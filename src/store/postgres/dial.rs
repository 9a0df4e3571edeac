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

/// The setting by which this process recognises its own session. A pooler does not pass the setting
/// on.
pub(super) const SESSION_MARK: &str = "onceward.session";

type TlsStream = <MakeRustlsConnect as MakeTlsConnect<Socket>>::Stream;

/// Makes connections to one URL.
#[derive(Clone)]
pub(super) struct Dialer {
    config: Config,
    tls: MakeRustlsConnect,
    /// The settings with which a session begins, unless a pooler refuses them.
    options: String,
}

impl Dialer {
    /// Parses the URL. Connects to no server.
    ///
    /// # Errors
    ///
    /// If it is not a URL of a database. The error shows nothing of the URL except names of
    /// options, because the URL may hold a password.
    pub(super) fn new(
        url: &Secret,
        settings: &Settings,
        tls: MakeRustlsConnect,
    ) -> Result<Self, SetupError> {
        let mut config =
            Config::from_str(&with_known_mode(url.reveal())).map_err(SetupError::connection)?;
        if config.get_hosts().is_empty() && config.get_hostaddrs().is_empty() {
            return Err(SetupError::connection("expected a host in the URL, found none"));
        }
        let certificates = &settings.certificates;
        let wants_tls = certificates.ca.is_some() || certificates.identity.is_some();
        if wants_tls && config.get_ssl_mode() == SslMode::Prefer {
            // With `prefer`, a client accepts a server that says that it has no TLS. So anybody
            // between the client and the server could switch TLS off.
            config.ssl_mode(SslMode::Require);
        }
        if config.get_application_name().is_none() {
            config.application_name(APPLICATION_NAME);
        }
        // Several hosts are a primary and its standbys, and standbys take no writes.
        if config.get_hosts().len() > 1 {
            config.target_session_attrs(TargetSessionAttrs::ReadWrite);
        }
        // With these values, 30 seconds without traffic show that a firewall has silently dropped a
        // connection.
        config
            .connect_timeout(settings.timeout)
            .tcp_user_timeout(settings.timeout)
            .keepalives_idle(Duration::from_secs(15))
            .keepalives_interval(Duration::from_secs(5))
            .keepalives_retries(3);
        let options = session_options(config.get_options(), settings.timeout);
        Ok(Self { config, tls, options })
    }

    /// Makes a connection, and returns it with the future that drives it. A pooler may refuse the
    /// options of a session. Then the connection is made without them. The next call tries them
    /// again, because a server may have taken the pooler's place.
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
            // The call that uses the connection reports its error.
            let driven = tokio::spawn(async { drop(connection.await) });
            Ok((client, driven))
        })
    }
}

/// Returns the options of a session. With them, a statement sees what others have committed, and
/// ends within a call's time. So the server does not go on with statements for which nobody waits.
fn session_options(given: Option<&str>, timeout: Duration) -> String {
    let millis = share_millis(timeout);
    format!(
        "{} -c default_transaction_isolation=read\\ committed -c statement_timeout={millis} \
         -c lock_timeout={millis} -c idle_in_transaction_session_timeout={millis}",
        given.unwrap_or_default()
    )
}

/// Replaces the modes `verify-ca` and `verify-full` by `require`, because the library does not know
/// them. This program checks the certificate and its name in every mode with TLS, so `require` is
/// as strict.
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
