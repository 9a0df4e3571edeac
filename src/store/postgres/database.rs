//! Runs statements on the database.

use std::sync::Arc;

use tokio_postgres::Row;
use tokio_postgres::types::FromSql;

use super::failure::{Failure, is_contention, is_lost, is_undone, tables_are_gone};
use super::listen::NotificationListener;
use super::migrate::Tables;
use super::pool::{Connections, Parameter};
use crate::operation::OperationId;
use crate::store::Error;

/// The most times that a statement is sent if the server gives it up in favour of another
/// transaction.
const TRIES: usize = 3;

/// The database, with its tables and the connections to it.
#[derive(Debug)]
pub(super) struct Database {
    pub(super) connections: Connections,
    pub(super) tables: Arc<Tables>,
    pub(super) listener: NotificationListener,
}

/// The reason why a statement brought no rows.
#[derive(Debug)]
pub(super) enum QueryError {
    /// The connection was lost. The statement may have been run.
    ConnectionLost(Failure),
    /// The server reported an error, and undid the statement.
    Undone(Error),
    /// Any other failure.
    Failed(Error),
}

impl Database {
    /// Runs one statement. Makes the tables first if they are missing.
    ///
    /// A connection may have ended long ago without a sign. So after a lost connection the
    /// statement is sent once more, on a new connection. Every statement may be run twice. If the
    /// second send fails as well, nobody knows whether the first took effect.
    pub(super) async fn query(
        &self,
        is_urgent: bool,
        statement: &str,
        parameters: &[Parameter<'_>],
    ) -> Result<Vec<Row>, QueryError> {
        let statement = self.tables.sql(statement);
        match self.query_once(is_urgent, &statement, parameters).await {
            Err(QueryError::ConnectionLost(first)) => {
                // A server that ended one connection has ended the idle ones too.
                self.connections.hang_up();
                let again = self.query_once(is_urgent, &statement, parameters).await;
                again.map_err(|_| QueryError::ConnectionLost(first))
            }
            done => done,
        }
    }

    async fn query_once(
        &self,
        is_urgent: bool,
        statement: &str,
        parameters: &[Parameter<'_>],
    ) -> Result<Vec<Row>, QueryError> {
        let mut tries = 0;
        loop {
            self.listener.begin();
            let connection = self.connections.get(is_urgent).await?;
            let mut connection = self.tables.ready(connection).await?;
            tries += 1;
            match connection.query(statement, parameters).await {
                Ok(rows) => return Ok(rows),
                // Somebody dropped the schema while this process ran. The tables are made again,
                // once.
                Err(error) if tables_are_gone(&error) => {
                    self.tables.doubt();
                    if tries > 1 {
                        return Err(QueryError::Failed(error.into()));
                    }
                }
                Err(error) if is_contention(&error) && tries < TRIES => {}
                Err(error) if is_lost(&error) => return Err(QueryError::ConnectionLost(error)),
                Err(error) if is_undone(&error) => {
                    return Err(QueryError::Undone(error.into()));
                }
                Err(error) => return Err(QueryError::Failed(error.into())),
            }
        }
    }
}

impl From<Error> for QueryError {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

impl From<QueryError> for Error {
    fn from(error: QueryError) -> Self {
        match error {
            QueryError::ConnectionLost(failure) => Self::Failed(Box::new(failure)),
            QueryError::Undone(error) | QueryError::Failed(error) => error,
        }
    }
}

/// Returns a column of a row.
pub(super) fn get<'a, T: FromSql<'a>>(row: &'a Row, column: usize) -> Result<T, Error> {
    row.try_get(column).map_err(|error| Error::Failed(Box::new(error)))
}

/// Returns the first row of a statement that always returns one.
pub(super) fn one(rows: &[Row]) -> Result<&Row, Error> {
    rows.first().ok_or_else(|| Error::Failed("the database returned no row".into()))
}

/// Parses the operation id in a column.
pub(super) fn id_of(text: &str) -> Result<OperationId, Error> {
    text.parse().map_err(|error| Error::Failed(Box::new(error)))
}
