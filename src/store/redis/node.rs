//! One server: the connection that all calls share, and those of calls that wait for replicas.

use std::pin::pin;
use std::time::Duration;

use parking_lot::Mutex;
use redis::aio::MultiplexedConnection;
use redis::{ErrorKind, Pipeline, RedisError, ServerErrorKind, Value, cmd};
use tokio::sync::Semaphore;
use tokio::time::timeout;

use super::command::Command;
use super::dial::{Dialer, Target};
use super::failure::{Refusal, is_from_server};

/// The most connections that wait for replicas at a time.
const WAITING_MAX: usize = 64;

/// A server. It is connected to when it is needed.
#[derive(Debug)]
pub(super) struct Node {
    target: Target,
    shared: Mutex<SharedConnection>,
    /// Held while a shared connection is made, so that a crowd of calls makes one and not many.
    dialing: tokio::sync::Mutex<()>,
    idle: Mutex<IdleConnections>,
    waiting: Semaphore,
}

/// The connection that all calls share.
#[derive(Debug, Default)]
struct SharedConnection {
    connection: Option<MultiplexedConnection>,
    /// How many connections there have been.
    generation: u64,
}

/// Connections for calls that wait for replicas, while no call uses them.
#[derive(Debug, Default)]
struct IdleConnections {
    connections: Vec<MultiplexedConnection>,
    /// How often all of them were closed.
    closed: u64,
}

/// How a command is delivered to a node.
#[derive(Debug, Clone, Copy)]
pub(super) struct Delivery {
    /// Whether to send `ASKING` before it: the node is about to take over the keys, and serves them
    /// only to those who were sent there.
    pub(super) asking: bool,
    /// Replicas that must confirm the change.
    pub(super) acks: usize,
}

/// A command brought no reply of the server.
#[derive(Debug)]
pub(super) enum SendError {
    /// It was not sent.
    NotSent(Refusal),
    /// The connection was lost. The command may have been sent, and may have been run.
    ConnectionLost(RedisError),
}

/// What a server replied.
#[derive(Debug)]
pub(super) struct NodeReply {
    pub(super) value: Result<Value, RedisError>,
    /// Replicas that confirmed the change.
    pub(super) acks: usize,
    /// Whether the command had been sent before, on a connection that was lost.
    pub(super) was_resent: bool,
}

impl NodeReply {
    /// The server turned the command away.
    pub(super) const fn refusal(error: RedisError) -> Self {
        Self { value: Err(error), acks: 0, was_resent: false }
    }
}

impl Node {
    pub(super) fn new(target: Target) -> Self {
        Self {
            target,
            shared: Mutex::default(),
            dialing: tokio::sync::Mutex::default(),
            idle: Mutex::default(),
            waiting: Semaphore::new(WAITING_MAX),
        }
    }

    pub(super) const fn target(&self) -> &Target {
        &self.target
    }

    /// How many shared connections there have been. After another one it may be another server: a
    /// sentinel may name a new master.
    pub(super) fn generation(&self) -> u64 {
        self.shared.lock().generation
    }

    /// Gives up all connections. Calls that wait for a reply still get it.
    pub(super) fn hang_up(&self) {
        self.shared.lock().connection = None;
        self.idle.lock().close_all();
    }

    /// Sends a command and waits for the reply.
    pub(super) async fn send(
        &self,
        dialer: &Dialer,
        command: &Command,
        delivery: Delivery,
        limit: Duration,
    ) -> Result<NodeReply, SendError> {
        if delivery.acks == 0 {
            self.send_shared(dialer, command, delivery, limit).await
        } else {
            self.send_alone(dialer, command, delivery, limit).await
        }
    }

    /// Sends a command on the shared connection.
    async fn send_shared(
        &self,
        dialer: &Dialer,
        command: &Command,
        delivery: Delivery,
        limit: Duration,
    ) -> Result<NodeReply, SendError> {
        let ready = ready_within(limit);
        let connected = in_time(ready, self.connection(dialer)).await?;
        let Connected { mut connection, generation } = connected;
        let mut replied = pin!(deliver(&mut connection, command, delivery, limit));
        let reply = if let Ok(reply) = timeout(ready, &mut replied).await {
            reply
        } else {
            // A network that drops packets silently kills a connection without a sign. The next
            // call makes a new one; this one goes on waiting for what is left of its time.
            self.shared.lock().give_up(generation);
            replied.await
        };
        if matches!(reply, Err(SendError::ConnectionLost(_))) {
            self.shared.lock().give_up(generation);
        }
        reply
    }

    /// Sends a command on a connection that no other call uses until the replicas have confirmed:
    /// `WAIT` blocks whatever comes after it on a connection.
    async fn send_alone(
        &self,
        dialer: &Dialer,
        command: &Command,
        delivery: Delivery,
        limit: Duration,
    ) -> Result<NodeReply, SendError> {
        let ready = ready_within(limit);
        let taken = in_time(ready, async {
            let permit = self.waiting.acquire().await.map_err(|_| Refusal::NotConnectedInTime)?;
            let (idle, closed) = self.idle.lock().take();
            let connection = match idle {
                Some(connection) => connection,
                None => dialer.connect(&self.target).await?,
            };
            Ok((permit, connection, closed))
        });
        let (_permit, mut connection, closed) = taken.await?;
        // A call that is dropped before its end drops the connection too. It must not be used
        // again: the reply to this call would be taken for one to the next.
        let reply = deliver(&mut connection, command, delivery, limit).await;
        match &reply {
            Ok(_) => self.idle.lock().put(connection, closed),
            // Where one connection was ended, by a restart or a failover, the others were too.
            Err(_) => self.idle.lock().close_all(),
        }
        reply
    }

    /// The shared connection. It is made if there is none.
    async fn connection(&self, dialer: &Dialer) -> Result<Connected, Refusal> {
        if let Some(connected) = self.shared.lock().current() {
            return Ok(connected);
        }
        let _one_at_a_time = self.dialing.lock().await;
        // Another call may have made one while this one waited for its turn.
        if let Some(connected) = self.shared.lock().current() {
            return Ok(connected);
        }
        let connection = dialer.connect(&self.target).await?;
        let mut shared = self.shared.lock();
        shared.generation += 1;
        shared.connection = Some(connection.clone());
        Ok(Connected { connection, generation: shared.generation })
    }
}

/// A connection, and which of the shared ones it is.
struct Connected {
    connection: MultiplexedConnection,
    generation: u64,
}

impl SharedConnection {
    fn current(&self) -> Option<Connected> {
        let connection = self.connection.clone()?;
        Some(Connected { connection, generation: self.generation })
    }

    /// Gives up a connection, unless it was replaced by a newer one.
    fn give_up(&mut self, generation: u64) {
        if self.generation == generation {
            self.connection = None;
        }
    }
}

impl IdleConnections {
    /// A connection, if there is one, and how often all were closed by now.
    fn take(&mut self) -> (Option<MultiplexedConnection>, u64) {
        (self.connections.pop(), self.closed)
    }

    /// Takes a connection back, unless all were closed since it was taken.
    fn put(&mut self, connection: MultiplexedConnection, closed: u64) {
        if self.closed == closed {
            self.connections.push(connection);
        }
    }

    fn close_all(&mut self) {
        self.connections.clear();
        self.closed += 1;
    }
}

/// The part of a call's time after which a step of it counts as failed, so that time is left to try
/// elsewhere or to say so.
fn ready_within(limit: Duration) -> Duration {
    limit * 3 / 4
}

async fn in_time<T>(
    limit: Duration,
    ready: impl Future<Output = Result<T, Refusal>>,
) -> Result<T, SendError> {
    let ready = timeout(limit, ready).await;
    ready.unwrap_or(Err(Refusal::NotConnectedInTime)).map_err(SendError::NotSent)
}

/// Sends a command. If the server does not know its script, loads that and sends the command again.
async fn deliver(
    connection: &mut MultiplexedConnection,
    command: &Command,
    delivery: Delivery,
    limit: Duration,
) -> Result<NodeReply, SendError> {
    let reply = deliver_once(connection, command, delivery, limit).await?;
    let (Some(load), Err(error)) = (&command.load, &reply.value) else { return Ok(reply) };
    if error.kind() != ErrorKind::Server(ServerErrorKind::NoScript) {
        return Ok(reply);
    }
    let loaded = connection.send_packed_command(load).await.and_then(Value::extract_error);
    if let Err(error) = loaded {
        // The script was not run, so this error is all that has happened.
        return reply_of(Err(error), 0);
    }
    deliver_once(connection, command, delivery, limit).await
}

async fn deliver_once(
    connection: &mut MultiplexedConnection,
    command: &Command,
    delivery: Delivery,
    limit: Duration,
) -> Result<NodeReply, SendError> {
    if !delivery.asking && delivery.acks == 0 {
        let value = connection.send_packed_command(&command.cmd).await;
        return reply_of(value, 0);
    }
    // Sent as one: `ASKING` holds for the next command only, and `WAIT` counts the replicas that
    // have what this connection wrote.
    let mut pipeline = Pipeline::new();
    if delivery.asking {
        pipeline.add_command(cmd("ASKING"));
    }
    pipeline.add_command(command.cmd.clone());
    if delivery.acks > 0 {
        let millis = u64::try_from(ready_within(limit).as_millis()).unwrap_or(u64::MAX);
        pipeline.add_command(cmd("WAIT").arg(delivery.acks).arg(millis).take());
    }
    let count = 1 + usize::from(delivery.asking) + usize::from(delivery.acks > 0);
    let replies = connection.send_packed_commands(&pipeline, 0, count).await;
    let replies = replies.map_err(SendError::ConnectionLost)?;
    let mut replies = replies.into_iter().skip(usize::from(delivery.asking));
    let value = replies.next().unwrap_or_default();
    let acks = match replies.next() {
        Some(Value::Int(acks)) => usize::try_from(acks).unwrap_or(0),
        // `WAIT` was refused, or was not sent: no replica is known to have the change.
        Some(_) | None => 0,
    };
    reply_of(Ok(value), acks)
}

fn reply_of(value: Result<Value, RedisError>, acks: usize) -> Result<NodeReply, SendError> {
    let value = match value {
        Ok(Value::ServerError(error)) => Err(RedisError::from(error)),
        Ok(value) => Ok(value),
        Err(error) if is_from_server(&error) => Err(error),
        Err(error) => return Err(SendError::ConnectionLost(error)),
    };
    Ok(NodeReply { value, acks, was_resent: false })
}
