//! Makes connections to a server or to the master that the sentinels name, for commands or for a
//! subscription.

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

use super::failure::{NotRun, is_from_server, not_connected};
use super::reply::text;
use super::{Mode, Settings};
use crate::store::{Certificates, SetupError};

/// The settings for connections.
#[derive(Debug)]
pub(super) struct Dialer {
    /// The servers in the settings. They are nodes or sentinels.
    seeds: Vec<ConnectionInfo>,
    /// The login at the servers that hold records, with the address of the first server in the
    /// settings.
    template: ConnectionInfo,
    certificates: Option<TlsCertificates>,
    /// The longest that a call may take.
    pub(super) timeout: Duration,
}

/// The target of a connection.
#[derive(Debug, Clone)]
pub(super) enum Target {
    /// The server at this address.
    Address(ConnectionAddr),
    /// The master that the sentinels know by this name.
    Master(String),
}

impl Dialer {
    /// Reads the files. Connects to no server.
    pub(super) fn new(settings: &Settings) -> Result<Self, SetupError> {
        let pem = settings.certificates.read()?;
        let seeds = settings.urls.iter().map(|url| {
            // The parser's error is dropped, because it may show the URL and so a password.
            let parsed = url.reveal().into_connection_info();
            parsed.map_err(|_| {
                SetupError::connection("`urls` holds something that is not a Redis URL")
            })
        });
        let seeds = seeds.collect::<Result<Vec<_>, _>>()?;
        let first = seeds.first().ok_or_else(|| SetupError::connection("`urls` is empty"))?;
        let mut login = plain(first.redis_settings().clone());
        if let Some(username) = &settings.username {
            login = login.set_username(username);
        }
        if let Some(password) = &settings.password {
            login = login.set_password(password.reveal());
        }
        if settings.mode == Mode::Cluster {
            // A cluster has only database 0.
            login = login.set_db(0);
        }
        let is_tls = |seed: &ConnectionInfo| matches!(seed.addr(), ConnectionAddr::TcpTls { .. });
        let tls = is_tls(first);
        if seeds.iter().any(|seed| is_tls(seed) != tls) {
            return Err(SetupError::connection("`urls` holds both `redis://` and `rediss://`"));
        }
        if !tls && settings.certificates != Certificates::default() {
            let what =
                "`ca`, `certificate` and `key` are for `rediss://`, and `urls` has `redis://`";
            return Err(SetupError::connection(what));
        }
        let certificates = tls.then(|| TlsCertificates {
            client_tls: pem
                .identity
                .map(|(client_cert, client_key)| ClientTlsConfig { client_cert, client_key }),
            root_cert: pem.ca,
        });
        let template = first.clone().set_redis_settings(login);
        let dialer = Self { seeds, template, certificates, timeout: settings.timeout };
        // Every new client parses the certificates. So a bad certificate is found here and not
        // during the first call.
        for seed in &dialer.seeds {
            dialer.client(seed.clone()).map_err(SetupError::connection)?;
        }
        Ok(dialer)
    }

    /// Returns the address of the first server in the settings.
    pub(super) fn first(&self) -> ConnectionAddr {
        self.template.addr().clone()
    }

    /// Returns the addresses of the other servers in the settings.
    pub(super) fn others(&self) -> impl Iterator<Item = ConnectionAddr> {
        self.seeds.iter().skip(1).map(|seed| seed.addr().clone())
    }

    /// Returns the address that a node of a cluster names for another node. If the node names no
    /// host, the host is its own (`cluster-preferred-endpoint-type unknown-endpoint`).
    pub(super) fn named(&self, named: &str, by: &ConnectionAddr) -> Option<ConnectionAddr> {
        let (host, port) = named.rsplit_once(':')?;
        let port = port.parse().ok()?;
        let host = match (host, by) {
            ("", ConnectionAddr::Tcp(same, _) | ConnectionAddr::TcpTls { host: same, .. }) => same,
            (host, _) => host,
        };
        Some(self.address(host.to_owned(), port))
    }

    /// Makes a connection to a server, for commands.
    pub(super) async fn connect(&self, target: &Target) -> Result<MultiplexedConnection, NotRun> {
        match target {
            Target::Address(address) => self.open(self.server(address.clone())).await,
            Target::Master(name) => Ok(self.master(name).await?.1),
        }
    }

    /// Makes a connection for a subscription.
    pub(super) async fn subscribe(&self, target: &Target) -> Result<PubSub, NotRun> {
        let address = match target {
            Target::Address(address) => address.clone(),
            Target::Master(name) => self.master(name).await?.0,
        };
        let client = self.client(self.server(address)).map_err(|error| not_connected(&error))?;
        let opened = timeout(self.timeout, client.get_async_pubsub()).await;
        opened.map_err(|_| NotRun::NotConnectedInTime)?.map_err(|error| not_connected(&error))
    }

    /// Connects to the master that a sentinel names. All sentinels are asked at the same time,
    /// because some may be dead. A sentinel that is cut off from the others may still name the
    /// former master.
    async fn master(&self, name: &str) -> Result<(ConnectionAddr, MultiplexedConnection), NotRun> {
        let asked = self.seeds.iter().map(|seed| self.master_named_by(seed, name));
        let mut answers: FuturesUnordered<_> = asked.collect();
        let mut tried = Vec::new();
        let mut why = NotRun::NoMaster;
        while let Some(named) = answers.next().await {
            let Some(address) = named.filter(|address| !tried.contains(address)) else { continue };
            match self.open_master(address.clone()).await {
                Ok(connection) => return Ok((address, connection)),
                Err(reason) => why = reason,
            }
            // Several sentinels usually name the same address.
            tried.push(address);
        }
        Err(why)
    }

    /// Asks a sentinel for the address of the master.
    async fn master_named_by(
        &self,
        sentinel: &ConnectionInfo,
        name: &str,
    ) -> Option<ConnectionAddr> {
        // A sentinel has only one database. The user in the settings is for the master.
        let login = plain(sentinel.redis_settings().clone()).set_db(0);
        let mut connection = self.open(sentinel.clone().set_redis_settings(login)).await.ok()?;
        let mut question = cmd("SENTINEL");
        question.arg("get-master-addr-by-name").arg(name);
        let answer = timeout(self.step(), connection.send_packed_command(&question)).await;
        let Ok(Ok(Value::Array(answer))) = answer else { return None };
        let [host, port] = answer.as_slice() else { return None };
        Some(self.address(text(host).ok()?, text(port).ok()?.parse().ok()?))
    }

    async fn open_master(&self, address: ConnectionAddr) -> Result<MultiplexedConnection, NotRun> {
        let mut connection = self.open(self.server(address)).await?;
        let is_master = timeout(self.step(), is_master(&mut connection)).await;
        let is_master = is_master.map_err(|_| NotRun::NotConnectedInTime)?;
        is_master?.then_some(connection).ok_or(NotRun::NotAMaster)
    }

    async fn open(&self, server: ConnectionInfo) -> Result<MultiplexedConnection, NotRun> {
        let client = self.client(server).map_err(|error| not_connected(&error))?;
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(self.step()))
            // Each call has a time limit of its own. The library's limit would be 500 ms.
            .set_response_timeout(None);
        let opened = client.get_multiplexed_async_connection_with_config(&config).await;
        let mut connection = opened.map_err(|error| not_connected(&error))?;
        // In TLS 1.3 the handshake ends for the client before the server has checked the client's
        // certificate (RFC 8446, section 2). A client that the server does not accept learns it
        // only from the first reply.
        let pong = timeout(self.step(), connection.send_packed_command(&cmd("PING"))).await;
        match pong.map_err(|_| NotRun::NotConnectedInTime)?.and_then(Value::extract_error) {
            Err(error) if !is_from_server(&error) || is_login_missing(&error) => {
                Err(not_connected(&error))
            }
            Err(_) | Ok(_) => Ok(connection),
        }
    }

    /// Returns the longest time that one of several steps to a connection may take.
    fn step(&self) -> Duration {
        self.timeout / 3
    }

    fn client(&self, server: ConnectionInfo) -> RedisResult<Client> {
        // The library leaves Nagle's algorithm on, which delays small writes.
        let server = server.set_tcp_settings(TcpSettings::default().set_nodelay(true));
        match (&self.certificates, server.addr()) {
            (Some(certificates), ConnectionAddr::TcpTls { .. }) => {
                Client::build_with_tls(server, certificates.clone())
            }
            (Some(_) | None, _) => Client::open(server),
        }
    }

    /// Returns the login and the address for a server that holds records.
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

/// Brings a login into the form that this program uses. The protocol is RESP2, because two replies
/// that `reply` reads have another type in RESP3. The library does not send its name, because an
/// ACL might not permit `CLIENT SETINFO`.
fn plain(login: RedisConnectionInfo) -> RedisConnectionInfo {
    login.set_protocol(ProtocolVersion::RESP2).set_skip_set_lib_name()
}

/// Whether the server wants a login before anything else. Such a connection is of no use.
fn is_login_missing(error: &RedisError) -> bool {
    error.code() == Some("NOAUTH")
}

/// Whether a server says that it is a master. After a failover, a sentinel may still name the old
/// one. If the server does not permit `ROLE`, the sentinel is believed.
async fn is_master(connection: &mut MultiplexedConnection) -> Result<bool, NotRun> {
    match connection.send_packed_command(&cmd("ROLE")).await.and_then(Value::extract_error) {
        Ok(Value::Array(role)) => {
            Ok(role.first().is_some_and(|role| text(role).is_ok_and(|role| role == "master")))
        }
        Ok(_) => Ok(false),
        Err(error) if is_from_server(&error) => Ok(true),
        Err(error) => Err(not_connected(&error)),
    }
}
