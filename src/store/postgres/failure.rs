//! Tells after an error of the database whether a statement may have taken effect.

use std::io;

use deadpool_postgres::PoolError;
use tokio_postgres::error::{DbError, Severity, SqlState};

use crate::store::Error;

/// The reason why a statement failed.
#[derive(Debug, thiserror::Error)]
pub(super) enum Failure {
    /// The database reported an error, or the connection failed.
    #[error(transparent)]
    Database(#[from] tokio_postgres::Error),
    /// The connection had been given back. The statement was not sent.
    #[error("the connection was given back")]
    GivenBack,
}

impl Failure {
    fn code(&self) -> Option<&SqlState> {
        match self {
            Self::Database(error) => error.code(),
            Self::GivenBack => None,
        }
    }
}

/// Turns the lack of a connection into an error of the call. The statement was not sent.
pub(super) fn not_connected(error: &PoolError) -> Error {
    let text = match error {
        PoolError::Timeout(_) => "no connection to the database was free in time",
        PoolError::Closed => "the store is closed",
        PoolError::Backend(error) => why_not_connected(error),
        PoolError::NoRuntimeSpecified | PoolError::PostCreateHook(_) => {
            "the database cannot be reached"
        }
    };
    Error::Unavailable(text)
}

/// Returns the reason why a connection failed, without the addresses and names in the library's
/// error.
pub(super) fn why_not_connected(error: &tokio_postgres::Error) -> &'static str {
    if let Some(db) = error.as_db_error() {
        return of_code(db.code()).unwrap_or("the database refused the connection");
    }
    match std::error::Error::source(error).and_then(|cause| cause.downcast_ref::<io::Error>()) {
        // rustls reports its errors in this form.
        Some(cause) if cause.kind() == io::ErrorKind::InvalidData => {
            "the database's certificate is not trusted, or its TLS failed"
        }
        Some(_) => "the database cannot be reached",
        None => "no connection to the database can be made",
    }
}

/// Turns the failure of a statement into an error of the call.
impl From<Failure> for Error {
    fn from(failure: Failure) -> Self {
        let known = match &failure {
            Failure::Database(error) => error.as_db_error().filter(|db| undoes(db)),
            Failure::GivenBack => None,
        };
        let code = known.map(DbError::code);
        if let Some(text) = code.and_then(gone_by_code) {
            return Self::TablesGone(text);
        }
        match code.and_then(of_code) {
            Some(text) => Self::Unavailable(text),
            None => Self::Failed(Box::new(failure)),
        }
    }
}

/// Whether the server reported an error and undid the statement.
pub(super) fn is_undone(failure: &Failure) -> bool {
    match failure {
        Failure::Database(error) => error.as_db_error().is_some_and(undoes),
        Failure::GivenBack => false,
    }
}

/// Whether an error undoes its statement. One of severity `ERROR` does. A `FATAL` error ends the
/// session, perhaps after the commit.
pub(super) fn undoes(error: &DbError) -> bool {
    error.parsed_severity() == Some(Severity::Error)
}

/// Whether the server gave up the statement in favour of another transaction. The statement was
/// undone, and may be sent again.
pub(super) fn is_contention(error: &Failure) -> bool {
    matches!(
        error.code(),
        Some(&SqlState::T_R_SERIALIZATION_FAILURE | &SqlState::T_R_DEADLOCK_DETECTED)
    )
}

/// Whether the statement waited for a lock for longer than it may.
pub(super) fn is_lock_timeout(error: &Failure) -> bool {
    error.code() == Some(&SqlState::LOCK_NOT_AVAILABLE)
}

/// Whether the statement would make a table, an index or a function that is there already.
pub(super) fn is_duplicate(error: &Failure) -> bool {
    matches!(error.code(), Some(&SqlState::DUPLICATE_TABLE | &SqlState::DUPLICATE_FUNCTION))
}

/// Whether the connection was lost, or the server ended the session.
pub(super) fn is_lost(error: &Failure) -> bool {
    let Failure::Database(error) = error else { return false };
    match error.as_db_error() {
        Some(db) => !undoes(db),
        // The library has no kind of error for a broken connection. The cause of such an error is
        // an I/O error.
        None => {
            error.is_closed()
                || std::error::Error::source(error)
                    .and_then(|cause| cause.downcast_ref::<io::Error>())
                    .is_some()
        }
    }
}

/// Whether tables, functions or the schema do not exist. Then the database has come back empty.
pub(super) fn tables_are_gone(error: &Failure) -> bool {
    error.code().is_some_and(|code| gone_by_code(code).is_some())
}

fn gone_by_code(code: &SqlState) -> Option<&'static str> {
    let texts = [
        (SqlState::UNDEFINED_TABLE, "the store's tables are gone"),
        (SqlState::UNDEFINED_FUNCTION, "the store's functions are gone"),
        (SqlState::INVALID_SCHEMA_NAME, "the store's schema is gone"),
    ];
    texts.into_iter().find(|(known, _)| known == code).map(|(_, text)| text)
}

fn of_code(code: &SqlState) -> Option<&'static str> {
    let texts = [
        (SqlState::READ_ONLY_SQL_TRANSACTION, "the database is read-only"),
        (SqlState::TOO_MANY_CONNECTIONS, "the database has too many connections"),
        (SqlState::CANNOT_CONNECT_NOW, "the database is starting or stopping"),
        (SqlState::ADMIN_SHUTDOWN, "the database is stopping"),
        (SqlState::CRASH_SHUTDOWN, "the database is recovering from a crash"),
        (SqlState::T_R_SERIALIZATION_FAILURE, "too many calls change this operation at a time"),
        (SqlState::T_R_DEADLOCK_DETECTED, "too many calls change this operation at a time"),
        (SqlState::LOCK_NOT_AVAILABLE, "another transaction locks the record for too long"),
        (SqlState::QUERY_CANCELED, "the database was too slow and stopped the call"),
        (SqlState::DISK_FULL, "the database's disk is full"),
        (SqlState::OUT_OF_MEMORY, "the database is out of memory"),
        (SqlState::INSUFFICIENT_PRIVILEGE, "the database's user may not do this"),
        (SqlState::INVALID_PASSWORD, "the database refused the user or its password"),
        (SqlState::INVALID_AUTHORIZATION_SPECIFICATION, "the database refused the user"),
        (SqlState::UNDEFINED_DATABASE, "there is no such database"),
    ];
    texts.into_iter().find(|(known, _)| known == code).map(|(_, text)| text)
}
