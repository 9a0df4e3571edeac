//! One server. Its calls share a connection, except calls that wait for replicas.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use redis::aio::{MultiplexedConnection, PubSub};
use redis::{ConnectionAddr, ErrorKind, Pipeline, RedisError, ServerErrorKind, Value, cmd};
use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout};

use super::command::Command;
use super::connections::{ReplicaConnections, SharedConnections};
use super::dial::{Dialer, Target};
use super::failure::{NotRun, is_from_server};

/// The most connections on which calls wait for replicas at the same time.
const WAITING_MAX: usize = 64;

/// A server. The first call makes the connection.
#[derive(Debug)]
pub(super) struct Node {
    dialer: Arc<Dialer>,
    target: Target,
    shared: SharedConnections,
    idle: Mutex<ReplicaConnections>,
    waiting: Semaphore,
}

/// The way in which a command is delivered to a node.
#[derive(Debug, Clone, Copy)]
pub(super) struct Delivery {
    /// Whether `ASKING` is sent before the command. A node that is about to take over the keys
    /// serves them only after `ASKING`.
    pub(super) asking: bool,
    /// The number of replicas that must confirm the change.
    pub(super) acks: usize,
}

/// The reason why a command brought no value.
#[derive(Debug)]
pub(super) enum SendError {
    /// The command was not sent.
    NotSent(NotRun),
    /// The server replied with an error.
    ErrorReply(RedisError),
    /// The connection was lost. The command may have been sent, and may have been run.
    ConnectionLost(RedisError),
}

/// The reply of a server.
#[derive(Debug)]
pub(super) struct NodeReply {
    pub(super) value: Value,
    /// The number of replicas that confirmed the change.
    pub(super) acks: usize,
}

impl Node {
    pub(super) fn new(dialer: Arc<Dialer>, target: Target) -> Self {
        Self {
            dialer,
            target,
            shared: SharedConnections::default(),
            idle: Mutex::default(),
            waiting: Semaphore::new(WAITING_MAX),
        }
    }

    /// Returns the number of shared connections that were made in the place of an earlier one.
    pub(super) fn remade(&self) -> u64 {
        self.shared.remade()
    }

    /// Gives up all connections. Calls that wait for a reply still get it.
    pub(super) fn hang_up(&self) {
        self.shared.hang_up();
        self.idle.lock().close_all();
    }

    /// Returns the address in an error of this node, if the error sends the command to another
    /// node.
    pub(super) fn redirected_by(&self, error: &RedisError) -> Option<ConnectionAddr> {
        let (named, _) = error.redirect_node()?;
        match &self.target {
            Target::Address(address) => self.dialer.named(named, address),
            Target::Master(_) => None,
        }
    }

    /// Makes a connection for a subscription.
    pub(super) async fn subscribe(&self) -> Result<PubSub, NotRun> {
        self.dialer.subscribe(&self.target).await
    }

    /// Sends a command and waits for the reply.
    pub(super) async fn send(
        &self,
        command: &Command,
        delivery: Delivery,
    ) -> Result<NodeReply, SendError> {
        if delivery.acks == 0 {
            self.send_shared(command, delivery).await
        } else {
            self.send_alone(command, delivery).await
        }
    }

    /// Sends a command on the shared connection of this runtime.
    async fn send_shared(
        &self,
        command: &Command,
        delivery: Delivery,
    ) -> Result<NodeReply, SendError> {
        let ready = self.ready_within();
        let until = Instant::now() + ready;
        let connected = self.shared.get(&self.dialer, &self.target, command.is_urgent, until).await;
        let connected = connected.map_err(SendError::NotSent)?;
        let mut connection = connected.connection();
        let mut replied = pin!(self.deliver(&mut connection, command, delivery));
        let reply = if let Ok(reply) = timeout(ready, &mut replied).await {
            reply
        } else {
            // A network that drops packets silently breaks a connection without a sign. The next
            // call makes a new connection. This call goes on waiting until its time ends.
            connected.give_up();
            replied.await
        };
        if matches!(reply, Err(SendError::ConnectionLost(_))) {
            connected.give_up();
        }
        reply
    }

    /// Sends a command on a connection that no other call uses until the replicas have confirmed
    /// the change. On a connection, `WAIT` blocks all later commands.
    async fn send_alone(
        &self,
        command: &Command,
        delivery: Delivery,
    ) -> Result<NodeReply, SendError> {
        let taken = timeout(self.ready_within(), async {
            let permit = self.waiting.acquire().await.map_err(|_| NotRun::NotConnectedInTime)?;
            let (idle, closed) = self.idle.lock().take();
            let connection = match idle {
                Some(connection) => connection,
                None => self.dialer.connect(&self.target).await?,
            };
            Ok((permit, connection, closed))
        });
        let taken = taken.await.unwrap_or(Err(NotRun::NotConnectedInTime));
        let (_permit, mut connection, closed) = taken.map_err(SendError::NotSent)?;
        // A call that is dropped before its end drops the connection too. That connection must not
        // be used again, because the next call would take the reply to this call for its own.
        let reply = self.deliver(&mut connection, command, delivery).await;
        if matches!(reply, Err(SendError::ConnectionLost(_))) {
            // A restart or a failover that ended this connection has ended the idle ones too.
            self.idle.lock().close_all();
        } else {
            self.idle.lock().put(connection, closed);
        }
        reply
    }

    /// Returns the part of a call's time that one step may take. A longer step counts as failed, so
    /// that time is left to try another node or to report the failure.
    fn ready_within(&self) -> Duration {
        self.dialer.timeout * 3 / 4
    }

    /// Sends a command. If the server does not know its script, loads the script and sends the
    /// command again.
    async fn deliver(
        &self,
        connection: &mut MultiplexedConnection,
        command: &Command,
        delivery: Delivery,
    ) -> Result<NodeReply, SendError> {
        let reply = self.deliver_once(connection, command, delivery).await;
        let (Some(script), Err(SendError::ErrorReply(error))) = (command.script, &reply) else {
            return reply;
        };
        if error.kind() != ErrorKind::Server(ServerErrorKind::NoScript) {
            return reply;
        }
        let loaded =
            connection.send_packed_command(&script.load()).await.and_then(Value::extract_error);
        if let Err(error) = loaded {
            // The script was not run, so nothing happened except this error.
            return reply_of(Err(error), 0);
        }
        self.deliver_once(connection, command, delivery).await
    }

    async fn deliver_once(
        &self,
        connection: &mut MultiplexedConnection,
        command: &Command,
        delivery: Delivery,
    ) -> Result<NodeReply, SendError> {
        if !delivery.asking && delivery.acks == 0 {
            let value = connection.send_packed_command(&command.cmd).await;
            return reply_of(value, 0);
        }
        // These commands are sent together, because `ASKING` counts only for the next command, and
        // `WAIT` counts the replicas that have what this connection wrote.
        let mut pipeline = Pipeline::new();
        if delivery.asking {
            pipeline.add_command(cmd("ASKING"));
        }
        pipeline.add_command(command.cmd.clone());
        if delivery.acks > 0 {
            let millis = u64::try_from(self.ready_within().as_millis()).unwrap_or(u64::MAX);
            pipeline.add_command(cmd("WAIT").arg(delivery.acks).arg(millis).take());
        }
        let count = 1 + usize::from(delivery.asking) + usize::from(delivery.acks > 0);
        let replies = connection.send_packed_commands(&pipeline, 0, count).await;
        let replies = replies.map_err(SendError::ConnectionLost)?;
        let mut replies = replies.into_iter().skip(usize::from(delivery.asking));
        let value = replies.next().unwrap_or_default();
        let acks = match replies.next() {
            Some(Value::Int(acks)) => usize::try_from(acks).unwrap_or(0),
            // `WAIT` was refused or was not sent, so no replica is known to have the change.
            Some(_) | None => 0,
        };
        reply_of(Ok(value), acks)
    }
}

fn reply_of(value: Result<Value, RedisError>, acks: usize) -> Result<NodeReply, SendError> {
    match value {
        Ok(Value::ServerError(error)) => Err(SendError::ErrorReply(error.into())),
        Ok(value) => Ok(NodeReply { value, acks }),
        Err(error) if is_from_server(&error) => Err(SendError::ErrorReply(error)),
        Err(error) => Err(SendError::ConnectionLost(error)),
    }
}
