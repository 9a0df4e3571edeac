//! The connections of this process. Some are kept for renewals, so that a crowd of claims does not
//! take all connections and no lease is lost.

use std::time::Duration;

use deadpool_postgres::{
    ClientWrapper, Hook, HookError, Manager, ManagerConfig, Object, Pool, PoolError,
    RecyclingMethod, Runtime, TimeoutType,
};
use tokio_postgres::Row;
use tokio_postgres::config::Config;
use tokio_postgres::error::{DbError, SqlState};
use tokio_postgres::types::{ToSql, Type};

use super::dial::Dialer;
use super::failure::{Failure, not_connected, undoes, why_not_connected};
use super::share;
use crate::store::{Error, SetupError};
use crate::telemetry::chain;

/// One in this many connections is kept for renewals.
const RESERVE: usize = 4;

/// A parameter of a statement, with its type. Because the types are given, no statement has to be
/// prepared. A prepared statement would stay in the session, and behind a pooler another client may
/// get that session next.
pub(super) type Parameter<'a> = (&'a (dyn ToSql + Sync), Type);

/// The connections of this process.
#[derive(Debug)]
pub(super) struct Connections {
    common: Pool,
    /// The connections for renewals; none if there is only one connection in all.
    reserve: Option<Pool>,
    timeout: Duration,
}

/// A connection for one call. If it is dropped before the reply to a statement has come, it is
/// closed. Otherwise the next statement on it would have to wait for that reply.
#[derive(Debug)]
pub(super) struct PooledConnection {
    object: Option<Object>,
    /// Whether no statement is running on it.
    is_idle: bool,
}

impl Connections {
    pub(super) fn new(
        dialer: Dialer,
        connections_max: usize,
        timeout: Duration,
    ) -> Result<Self, SetupError> {
        let most = connections_max.max(1);
        // At least one connection is kept, unless there is only one in all.
        let reserve = (most / RESERVE).max(1).min(most - 1);
        Ok(Self {
            common: pool(dialer.clone(), most - reserve)?,
            reserve: (reserve > 0).then(|| pool(dialer, reserve)).transpose()?,
            timeout,
        })
    }

    /// Returns a connection, once one is free. Urgent calls have connections of their own.
    pub(super) async fn get(&self, is_urgent: bool) -> Result<PooledConnection, Error> {
        let pool = self.reserve.as_ref().filter(|_| is_urgent).unwrap_or(&self.common);
        let taken = tokio::time::timeout(share(self.timeout), pool.get()).await;
        match taken.unwrap_or(Err(PoolError::Timeout(TimeoutType::Wait))) {
            Ok(object) => Ok(PooledConnection { object: Some(object), is_idle: true }),
            Err(error) => {
                if let PoolError::Backend(cause) = &error {
                    tracing::debug!(error = %chain(cause), "{}", why_not_connected(cause));
                }
                Err(not_connected(&error))
            }
        }
    }

    /// Closes all idle connections.
    pub(super) fn hang_up(&self) {
        for pool in self.reserve.iter().chain([&self.common]) {
            pool.retain(|_, _| false);
        }
    }

    pub(super) fn close(&self) {
        self.common.close();
        self.reserve.iter().for_each(Pool::close);
    }
}

impl PooledConnection {
    /// Runs one statement, in one round trip. The statement leaves nothing in the session.
    pub(super) async fn query(
        &mut self,
        statement: &str,
        parameters: &[Parameter<'_>],
    ) -> Result<Vec<Row>, Failure> {
        let object = self.object.as_ref().ok_or(Failure::GivenBack)?;
        self.is_idle = false;
        let answer = object.query_typed(statement, parameters).await;
        self.is_idle = match &answer {
            Ok(_) => true,
            Err(error) => error.as_db_error().is_some_and(is_usable_after),
        };
        Ok(answer?)
    }

    /// Runs statements without parameters. They run in one transaction if the first one begins it.
    pub(super) async fn execute(&mut self, statements: &str) -> Result<(), Failure> {
        let object = self.object.as_ref().ok_or(Failure::GivenBack)?;
        // After an error, a transaction may still be open. So the connection is used again only
        // after a success.
        self.is_idle = false;
        object.batch_execute(statements).await?;
        self.is_idle = true;
        Ok(())
    }
}

impl Drop for PooledConnection {
    fn drop(&mut self) {
        if let Some(object) = self.object.take()
            && !self.is_idle
        {
            drop(Object::take(object));
        }
    }
}

/// Whether a session can be used after this error. A server that has become read-only is a former
/// primary, and a new connection may lead to the new primary.
fn is_usable_after(error: &DbError) -> bool {
    undoes(error) && *error.code() != SqlState::READ_ONLY_SQL_TRANSACTION
}

fn pool(dialer: Dialer, size: usize) -> Result<Pool, SetupError> {
    // The manager passes a configuration to the dialer. The dialer ignores it and uses its own.
    let nowhere = Config::new();
    // A test query for each call would cost a second round trip. If a connection is dead, the
    // statement fails, and is then sent again.
    let recycling = ManagerConfig { recycling_method: RecyclingMethod::Fast };
    let manager = Manager::from_connect(nowhere, dialer, recycling);
    let pool = Pool::builder(manager)
        .max_size(size)
        .runtime(Runtime::Tokio1)
        // The pool itself logs a warning for each connection that it finds closed.
        .pre_recycle(Hook::sync_fn(|client, _| is_open(client)))
        .build();
    pool.map_err(SetupError::connection)
}

fn is_open(client: &ClientWrapper) -> Result<(), HookError> {
    if client.is_closed() { Err(HookError::message("it is closed")) } else { Ok(()) }
}
