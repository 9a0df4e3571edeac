//! Connections, shared by all calls: some are kept for renewals, so that no lease is lost behind a
//! crowd of claims (C89).

use std::time::Duration;

use deadpool_postgres::{
    ClientWrapper, Hook, HookError, Manager, ManagerConfig, Object, Pool, PoolError,
    RecyclingMethod, Runtime, TimeoutType,
};
use tokio_postgres::Row;
use tokio_postgres::config::Config;
use tokio_postgres::error::{DbError, Severity, SqlState};
use tokio_postgres::types::{ToSql, Type};

use super::dial::Dialer;
use super::refusal::{Failure, not_connected, why_not_connected};
use super::share;
use crate::store::{Error, SetupError};
use crate::telemetry::chain;

/// One connection of so many is kept for renewals.
const RESERVE: usize = 4;

/// The connections of this process.
#[derive(Debug)]
pub(super) struct Connections {
    common: Pool,
    /// None if there is but one connection.
    reserve: Option<Pool>,
    timeout: Duration,
}

/// A connection for one call. Dropped before its answer has come, it is closed: what comes next on
/// it would have to wait for that answer.
#[derive(Debug)]
pub(super) struct Lent {
    object: Option<Object>,
    /// Nothing is under way on it.
    is_done: bool,
}

impl Connections {
    pub(super) fn new(
        dialer: Dialer,
        connections_max: usize,
        timeout: Duration,
    ) -> Result<Self, SetupError> {
        let most = connections_max.max(1);
        let reserve = (most / RESERVE).max(1).min(most - 1);
        Ok(Self {
            common: pool(dialer.clone(), most - reserve)?,
            reserve: (reserve > 0).then(|| pool(dialer, reserve)).transpose()?,
            timeout,
        })
    }

    /// A connection, within a call's time.
    pub(super) async fn lend(&self, urgent: bool) -> Result<Lent, Error> {
        let pool = self.reserve.as_ref().filter(|_| urgent).unwrap_or(&self.common);
        let lent = tokio::time::timeout(share(self.timeout), pool.get()).await;
        match lent.unwrap_or(Err(PoolError::Timeout(TimeoutType::Wait))) {
            Ok(object) => Ok(Lent { object: Some(object), is_done: true }),
            Err(error) => {
                if let PoolError::Backend(cause) = &error {
                    tracing::debug!(error = %chain(cause), "{}", why_not_connected(cause));
                }
                Err(not_connected(&error))
            }
        }
    }

    /// Closes all idle connections: where the server has ended one, it may have ended the others.
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

impl Lent {
    /// One statement, in one round trip: nothing of it stays in the session.
    pub(super) async fn query(
        &mut self,
        statement: &str,
        parameters: &[(&(dyn ToSql + Sync), Type)],
    ) -> Result<Vec<Row>, Failure> {
        let object = self.object.as_ref().ok_or(Failure::GivenBack)?;
        self.is_done = false;
        let answer = object.query_typed(statement, parameters).await;
        self.is_done = match &answer {
            Ok(_) => true,
            Err(error) => error.as_db_error().is_some_and(goes_on_after),
        };
        Ok(answer?)
    }

    /// Statements without parameters, as one transaction if the first of them begins one.
    pub(super) async fn execute(&mut self, statements: &str) -> Result<(), Failure> {
        let object = self.object.as_ref().ok_or(Failure::GivenBack)?;
        // an error may leave a transaction open
        self.is_done = false;
        object.batch_execute(statements).await?;
        self.is_done = true;
        Ok(())
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        if let Some(object) = self.object.take()
            && !self.is_done
        {
            drop(Object::take(object));
        }
    }
}

/// Whether a session is of use after this error. Another server may be the one to write to by now.
fn goes_on_after(error: &DbError) -> bool {
    error.parsed_severity() == Some(Severity::Error)
        && *error.code() != SqlState::READ_ONLY_SQL_TRANSACTION
}

fn pool(dialer: Dialer, size: usize) -> Result<Pool, SetupError> {
    // what it says is the dialer's to know
    let nowhere = Config::new();
    let recycling = ManagerConfig { recycling_method: RecyclingMethod::Fast };
    let manager = Manager::from_connect(nowhere, dialer, recycling);
    let pool = Pool::builder(manager)
        .max_size(size)
        .runtime(Runtime::Tokio1)
        // the pool itself would warn of each
        .pre_recycle(Hook::sync_fn(|client, _| is_open(client)))
        .build();
    pool.map_err(|error| SetupError::Connection(Box::new(error)))
}

fn is_open(client: &ClientWrapper) -> Result<(), HookError> {
    if client.is_closed() { Err(HookError::message("it is closed")) } else { Ok(()) }
}
