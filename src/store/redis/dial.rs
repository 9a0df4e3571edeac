//! Makes connections: to a server, to the master that the sentinels name, for subscriptions.

use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use redis::aio::{MultiplexedConnection, PubSub};
use redis::io::tcp::TcpSettings;
use redis::{
    AsyncConnectionConfig, Client, ClientTlsConfig, ConnectionAddr, ConnectionInfo,
    IntoConnectionInfo as _, ProtocolVersion, RedisConnectionInfo, RedisError, RedisResult,
    TlsCertificates, Value, cmd,
};
use tokio::time::timeout;

use super::failure::{NOT_CONNECTED_IN_TIME, is_answer, not_connected};
use super::reply::text;
use super::{Mode, Settings};
use crate::store::{Certificates, SetupError};

const NO_MASTER: &str = "no sentinel names a master that can be reached";
const NOT_A_MASTER: &str = "the server that the sentinels name is not a master";

/// How connections are made.
#[derive(Debug)]
pub(super) struct Dialer {
    /// As they stand in the settings.
    seeds: Vec<ConnectionInfo>,
    /// For the servers that hold records: who this process is there.
    template: ConnectionInfo,
    certificates: Option<TlsCertificates>,
    timeout: Duration,
}

/// Who is connected to.
#[derive(Debug, Clone)]
pub(super) enum Target {
    /// The server there.
    Address(ConnectionAddr),
    /// Whoever is the master of this name.
    Master(String),
}

impl Dialer {
    /// Reads the files; connects to nobody.
    pub(super) fn new(settings: &Settings) -> Result<Self, SetupError> {
        let pem = settings.certificates.read()?;
        let seeds = settings.urls.iter().map(|url| {
            // an error of the parser may show the URL, and a password in it
            let parsed = url.reveal().into_connection_info();
            parsed.map_err(|_| unprepared("`urls` holds something that is not a Redis URL"))
        });
        let seeds = seeds.collect::<Result<Vec<_>, _>>()?;
        let first = seeds.first().ok_or_else(|| unprepared("`urls` is empty"))?;
        let mut login = plain(first.redis_settings().clone());
        if let Some(username) = &settings.username {
            login = login.set_username(username);
        }
        if let Some(password) = &settings.password {
            login = login.set_password(password.reveal());
        }
        if settings.mode == Mode::Cluster {
            // it has no others
            login = login.set_db(0);
        }
        let is_tls = |seed: &ConnectionInfo| matches!(seed.addr(), ConnectionAddr::TcpTls { .. });
        let tls = is_tls(first);
        if seeds.iter().any(|seed| is_tls(seed) != tls) {
            return Err(unprepared("`urls` holds both `redis://` and `rediss://`"));
        }
        if !tls && settings.certificates != Certificates::default() {
            let what =
                "`ca`, `certificate` and `key` are for `rediss://`, and `urls` has `redis://`";
            return Err(unprepared(what));
        }
        let certificates = tls.then(|| TlsCertificates {
            client_tls: pem
                .identity
                .map(|(client_cert, client_key)| ClientTlsConfig { client_cert, client_key }),
            root_cert: pem.ca,
        });
        let template = first.clone().set_redis_settings(login);
        let dialer = Self { seeds, template, certificates, timeout: settings.timeout };
        for seed in &dialer.seeds {
            dialer.client(seed.clone()).map_err(|error| SetupError::Connection(Box::new(error)))?;
        }
        Ok(dialer)
    }

    /// Where the first of the settings' servers is.
    pub(super) fn first(&self) -> ConnectionAddr {
        self.template.addr().clone()
    }

    /// Where the others are.
    pub(super) fn others(&self) -> impl Iterator<Item = ConnectionAddr> {
        self.seeds.iter().skip(1).map(|seed| seed.addr().clone())
    }

    /// The address that a node of a cluster is said to have; of no host, that of whoever said so.
    pub(super) fn named(&self, said: &str, by: &ConnectionAddr) -> Option<ConnectionAddr> {
        let (host, port) = said.rsplit_once(':')?;
        let port = port.parse().ok()?;
        let host = match (host, by) {
            ("", ConnectionAddr::Tcp(same, _) | ConnectionAddr::TcpTls { host: same, .. }) => same,
            (host, _) => host,
        };
        Some(self.address(host.to_owned(), port))
    }

    /// A connection to a server that may be written to.
    pub(super) async fn connect(
        &self,
        target: &Target,
    ) -> Result<MultiplexedConnection, &'static str> {
        match target {
            Target::Address(address) => self.open(self.server(address.clone())).await,
            Target::Master(name) => Ok(self.master(name).await?.1),
        }
    }

    /// A connection that hears what is published.
    pub(super) async fn subscribe(&self, target: &Target) -> Result<PubSub, &'static str> {
        let address = match target {
            Target::Address(address) => address.clone(),
            Target::Master(name) => self.master(name).await?.0,
        };
        let client = self.client(self.server(address)).map_err(|error| not_connected(&error))?;
        let opened = timeout(self.timeout, client.get_async_pubsub()).await;
        opened.map_err(|_| NOT_CONNECTED_IN_TIME)?.map_err(|error| not_connected(&error))
    }

    /// The master that a sentinel names. All are asked together: some may be dead, and one that was
    /// cut off may still name who was the master before.
    async fn master(
        &self,
        name: &str,
    ) -> Result<(ConnectionAddr, MultiplexedConnection), &'static str> {
        let said = self.seeds.iter().map(|seed| self.said_by(seed, name));
        let mut said: FuturesUnordered<_> = said.collect();
        let mut tried = Vec::new();
        let mut why = NO_MASTER;
        while let Some(said) = said.next().await {
            let Some(address) = said.filter(|address| !tried.contains(address)) else { continue };
            match self.open_master(address.clone()).await {
                Ok(connection) => return Ok((address, connection)),
                Err(error) => why = error,
            }
            tried.push(address);
        }
        Err(why)
    }

    /// Where a sentinel says that the master is.
    async fn said_by(&self, sentinel: &ConnectionInfo, name: &str) -> Option<ConnectionAddr> {
        // a database, and the settings' user, are the master's
        let login = plain(sentinel.redis_settings().clone()).set_db(0);
        let mut connection = self.open(sentinel.clone().set_redis_settings(login)).await.ok()?;
        let mut asked = cmd("SENTINEL");
        asked.arg("get-master-addr-by-name").arg(name);
        let said = timeout(self.step(), connection.send_packed_command(&asked)).await;
        let Ok(Ok(Value::Array(said))) = said else { return None };
        let [host, port] = said.as_slice() else { return None };
        Some(self.address(text(host)?, text(port)?.parse().ok()?))
    }

    async fn open_master(
        &self,
        address: ConnectionAddr,
    ) -> Result<MultiplexedConnection, &'static str> {
        let mut connection = self.open(self.server(address)).await?;
        let is_master = timeout(self.step(), is_master(&mut connection)).await;
        let is_master = is_master.map_err(|_| NOT_CONNECTED_IN_TIME)?;
        is_master?.then_some(connection).ok_or(NOT_A_MASTER)
    }

    async fn open(&self, server: ConnectionInfo) -> Result<MultiplexedConnection, &'static str> {
        let client = self.client(server).map_err(|error| not_connected(&error))?;
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(self.step()))
            .set_response_timeout(None);
        let opened = client.get_multiplexed_async_connection_with_config(&config).await;
        let mut connection = opened.map_err(|error| not_connected(&error))?;
        // over TLS, a client that is not accepted hears of it with the first reply
        let pong = timeout(self.step(), connection.send_packed_command(&cmd("PING"))).await;
        match pong.map_err(|_| NOT_CONNECTED_IN_TIME)?.and_then(Value::extract_error) {
            Err(error) if !is_answer(&error) || is_refused(&error) => Err(not_connected(&error)),
            Err(_) | Ok(_) => Ok(connection),
        }
    }

    /// What one of several steps to a connection may take.
    fn step(&self) -> Duration {
        self.timeout / 3
    }

    fn client(&self, server: ConnectionInfo) -> RedisResult<Client> {
        let server = server.set_tcp_settings(TcpSettings::default().set_nodelay(true));
        match (&self.certificates, server.addr()) {
            (Some(certificates), ConnectionAddr::TcpTls { .. }) => {
                Client::build_with_tls(server, certificates.clone())
            }
            (Some(_) | None, _) => Client::open(server),
        }
    }

    /// A server that holds records.
    fn server(&self, address: ConnectionAddr) -> ConnectionInfo {
        self.template.clone().set_addr(address)
    }

    fn address(&self, host: String, port: u16) -> ConnectionAddr {
        match self.certificates {
            Some(_) => ConnectionAddr::TcpTls { host, port, insecure: false, tls_params: None },
            None => ConnectionAddr::Tcp(host, port),
        }
    }
}

/// As this program speaks: two of its answers differ between versions of the protocol, and the
/// library's name is nobody's business.
fn plain(login: RedisConnectionInfo) -> RedisConnectionInfo {
    login.set_protocol(ProtocolVersion::RESP2).set_skip_set_lib_name()
}

/// Whoever must say who he is may do nothing before.
fn is_refused(error: &RedisError) -> bool {
    error.code() == Some("NOAUTH")
}

/// A sentinel may know less than the server itself. Who may not ask believes the sentinel.
async fn is_master(connection: &mut MultiplexedConnection) -> Result<bool, &'static str> {
    match connection.send_packed_command(&cmd("ROLE")).await.and_then(Value::extract_error) {
        Ok(Value::Array(role)) => Ok(role.first().and_then(text).as_deref() == Some("master")),
        Ok(_) => Ok(false),
        Err(error) if is_answer(&error) => Ok(true),
        Err(error) => Err(not_connected(&error)),
    }
}

fn unprepared(what: &'static str) -> SetupError {
    SetupError::Connection(what.into())
}
