//! One server: the connection to it that everybody shares, and those that wait for its replicas.

use std::pin::pin;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{ErrorKind, Pipeline, RedisError, ServerErrorKind, Value, cmd};
use tokio::sync::Semaphore;
use tokio::time::timeout;

use super::call::Call;
use super::dial::{Dialer, Target};
use super::failure::{NOT_CONNECTED_IN_TIME, is_answer};

/// Connections that wait for replicas at a time.
const WAITING_MAX: usize = 64;

/// A server. It is connected to when it is needed.
#[derive(Debug)]
pub(super) struct Node {
    target: Target,
    line: Mutex<Line>,
    dialing: tokio::sync::Mutex<()>,
    spare: Mutex<Spare>,
    waiting: Semaphore,
}

/// The shared connection, and the how-manieth it is.
#[derive(Debug, Default)]
struct Line {
    connection: Option<MultiplexedConnection>,
    number: u64,
}

/// Connections on which nobody waits, and how often all were let go of.
#[derive(Debug, Default)]
struct Spare {
    connections: Vec<MultiplexedConnection>,
    hang_ups: u64,
}

/// What a call asks of the node beside itself.
#[derive(Debug, Clone, Copy)]
pub(super) struct Delivery {
    /// The node does not have the keys yet, but another one has said that it will.
    pub(super) asking: bool,
    /// Replicas that must have the change.
    pub(super) acks: usize,
}

/// A call brought no answer of the server.
#[derive(Debug)]
pub(super) enum Lost {
    /// It was not sent.
    Unsent(&'static str),
    /// It may have been.
    Broken(RedisError),
}

/// What a server answered, and how many replicas have it.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) value: Result<Value, RedisError>,
    pub(super) acks: usize,
    /// It is that to another try; an earlier one was lost.
    pub(super) was_lost: bool,
}

impl Answer {
    /// The call was turned away.
    pub(super) const fn refusal(error: RedisError) -> Self {
        Self { value: Err(error), acks: 0, was_lost: false }
    }
}

impl Node {
    pub(super) fn new(target: Target) -> Self {
        Self {
            target,
            line: Mutex::default(),
            dialing: tokio::sync::Mutex::default(),
            spare: Mutex::default(),
            waiting: Semaphore::new(WAITING_MAX),
        }
    }

    pub(super) const fn target(&self) -> &Target {
        &self.target
    }

    /// How many connections there have been: another number, another server perhaps.
    pub(super) fn number(&self) -> u64 {
        self.line().number
    }

    /// Lets go of all connections; calls that wait for an answer still get it.
    pub(super) fn hang_up(&self) {
        self.line().connection = None;
        self.spare().hang_up();
    }

    /// Has the server do something.
    pub(super) async fn send(
        &self,
        dialer: &Dialer,
        call: &Call,
        delivery: Delivery,
        patience: Duration,
    ) -> Result<Answer, Lost> {
        if delivery.acks == 0 {
            self.send_shared(dialer, call, delivery, patience).await
        } else {
            self.send_alone(dialer, call, delivery, patience).await
        }
    }

    /// On the connection that everybody shares.
    async fn send_shared(
        &self,
        dialer: &Dialer,
        call: &Call,
        delivery: Delivery,
        patience: Duration,
    ) -> Result<Answer, Lost> {
        let ready = patience * 3 / 4;
        let (number, mut connection) = in_time(ready, self.connection(dialer)).await?;
        let mut asked = pin!(ask(&mut connection, call, delivery, patience));
        let answer = if let Ok(answer) = timeout(ready, &mut asked).await {
            answer
        } else {
            // it may be dead without a sign of it: the next call makes a new one
            self.line().let_go(number);
            asked.await
        };
        if matches!(answer, Err(Lost::Broken(_))) {
            self.line().let_go(number);
        }
        answer
    }

    /// On a connection that nobody else uses until the replicas have answered.
    async fn send_alone(
        &self,
        dialer: &Dialer,
        call: &Call,
        delivery: Delivery,
        patience: Duration,
    ) -> Result<Answer, Lost> {
        let ready = patience * 3 / 4;
        let taken = in_time(ready, async {
            let permit = self.waiting.acquire().await.map_err(|_| NOT_CONNECTED_IN_TIME)?;
            let (spare, hang_ups) = self.spare().take();
            let connection = match spare {
                Some(connection) => connection,
                None => dialer.connect(&self.target).await?,
            };
            Ok((permit, connection, hang_ups))
        });
        let (_permit, mut connection, hang_ups) = taken.await?;
        // a call that is dropped before its end takes the connection with it
        let answer = ask(&mut connection, call, delivery, patience).await;
        match &answer {
            Ok(_) => self.spare().put(connection, hang_ups),
            // where one has ended, the others have
            Err(_) => self.spare().hang_up(),
        }
        answer
    }

    /// The connection that everybody shares.
    async fn connection(
        &self,
        dialer: &Dialer,
    ) -> Result<(u64, MultiplexedConnection), &'static str> {
        if let Some(there) = self.line().current() {
            return Ok(there);
        }
        let _one_at_a_time = self.dialing.lock().await;
        if let Some(there) = self.line().current() {
            return Ok(there);
        }
        let connection = dialer.connect(&self.target).await?;
        let mut line = self.line();
        line.number += 1;
        line.connection = Some(connection.clone());
        Ok((line.number, connection))
    }

    /// A panic cannot have left it half changed.
    fn line(&self) -> MutexGuard<'_, Line> {
        self.line.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn spare(&self) -> MutexGuard<'_, Spare> {
        self.spare.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Line {
    fn current(&self) -> Option<(u64, MultiplexedConnection)> {
        Some((self.number, self.connection.clone()?))
    }

    /// Lets go of a connection, if it is still the one that is shared.
    fn let_go(&mut self, number: u64) {
        if self.number == number {
            self.connection = None;
        }
    }
}

impl Spare {
    /// One, if there is one, and how often all were let go of by now.
    fn take(&mut self) -> (Option<MultiplexedConnection>, u64) {
        (self.connections.pop(), self.hang_ups)
    }

    /// One is free, unless all were let go of since it was taken.
    fn put(&mut self, connection: MultiplexedConnection, hang_ups: u64) {
        if self.hang_ups == hang_ups {
            self.connections.push(connection);
        }
    }

    fn hang_up(&mut self) {
        self.connections.clear();
        self.hang_ups += 1;
    }
}

async fn in_time<T>(
    limit: Duration,
    ready: impl Future<Output = Result<T, &'static str>>,
) -> Result<T, Lost> {
    let ready = timeout(limit, ready).await;
    ready.unwrap_or(Err(NOT_CONNECTED_IN_TIME)).map_err(Lost::Unsent)
}

/// Sends a call, and once more with its script if the server does not know that.
async fn ask(
    connection: &mut MultiplexedConnection,
    call: &Call,
    delivery: Delivery,
    patience: Duration,
) -> Result<Answer, Lost> {
    let answer = once(connection, call, delivery, patience).await?;
    let (Some(load), Err(error)) = (&call.load, &answer.value) else { return Ok(answer) };
    if error.kind() != ErrorKind::Server(ServerErrorKind::NoScript) {
        return Ok(answer);
    }
    let loaded = connection.send_packed_command(load).await.and_then(Value::extract_error);
    if let Err(error) = loaded {
        // the call itself was not run: what the server says is all that has happened
        return answer_of(Err(error), 0);
    }
    once(connection, call, delivery, patience).await
}

async fn once(
    connection: &mut MultiplexedConnection,
    call: &Call,
    delivery: Delivery,
    patience: Duration,
) -> Result<Answer, Lost> {
    if !delivery.asking && delivery.acks == 0 {
        let value = connection.send_packed_command(&call.command).await;
        return answer_of(value, 0);
    }
    let mut pipeline = Pipeline::new();
    if delivery.asking {
        pipeline.add_command(cmd("ASKING"));
    }
    pipeline.add_command(call.command.clone());
    if delivery.acks > 0 {
        let millis = u64::try_from((patience * 3 / 4).as_millis()).unwrap_or(u64::MAX);
        pipeline.add_command(cmd("WAIT").arg(delivery.acks).arg(millis).take());
    }
    let asked = 1 + usize::from(delivery.asking) + usize::from(delivery.acks > 0);
    let answers = connection.send_packed_commands(&pipeline, 0, asked).await;
    let mut answers = answers.map_err(Lost::Broken)?.into_iter().skip(usize::from(delivery.asking));
    let value = answers.next().unwrap_or_default();
    let acks = match answers.next() {
        Some(Value::Int(acks)) => usize::try_from(acks).unwrap_or(0),
        Some(_) | None => 0,
    };
    answer_of(Ok(value), acks)
}

fn answer_of(value: Result<Value, RedisError>, acks: usize) -> Result<Answer, Lost> {
    let value = match value {
        Ok(Value::ServerError(error)) => Err(RedisError::from(error)),
        Ok(value) => Ok(value),
        Err(error) if is_answer(&error) => Err(error),
        Err(error) => return Err(Lost::Broken(error)),
    };
    Ok(Answer { value, acks, was_lost: false })
}
