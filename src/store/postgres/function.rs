//! Calls the functions of the schema that make swaps.

use tokio_postgres::Row;
use tokio_postgres::types::Type;

use super::database::{Database, QueryError};
use super::pool::Parameter;

/// The first argument. When it is evaluated, it sets how the function plans its statements, until
/// the end of the transaction.
///
/// A session keeps a general plan until the table is analysed again. A plan that was made for a
/// nearly empty table would read a whole index, or the table, for each row that it looks up, however
/// large the table has become. So the plans for a table of less than 8 MiB serve one call only.
const FIRST: &str = "CASE WHEN pg_catalog.set_config('plan_cache_mode', \
    CASE WHEN pg_catalog.pg_relation_size($table$@schema@.operations$table$) < 8388608 \
    THEN 'force_custom_plan' ELSE 'force_generic_plan' END, true) <> '' THEN $1 END";

/// The statements that call a function.
#[derive(Debug)]
pub(super) struct FunctionCall {
    plain: String,
    in_epoch: String,
}

impl FunctionCall {
    /// Makes the statements that call `function` and return these columns.
    ///
    /// The arguments are passed by name, so that none can take the place of another one of the same
    /// type. A composite argument would need a type in the schema. This program would have to write
    /// its text form, and the server would have to parse it.
    ///
    /// Where an epoch is a condition, the first argument refers to the table of the epoch. So the
    /// server cannot call the function before it has checked the epoch.
    pub(super) fn new(function: &str, names: &[&str], columns: &str) -> Self {
        let call = |first: &str| {
            let arguments = (1..).zip(names).map(|(number, name)| match number {
                1 => format!("{name} => {first}"),
                _ => format!("{name} => ${number}"),
            });
            format!("@schema@.{function}({})", arguments.collect::<Vec<_>>().join(", "))
        };
        Self {
            plain: format!("SELECT {columns} FROM {}", call(FIRST)),
            in_epoch: format!(
                "SELECT {columns} FROM @schema@.epoch e CROSS JOIN LATERAL {} \
                 WHERE e.epoch::text = ${} AND e.standing <> 'emptied'",
                call(&format!("CASE WHEN e.one THEN {FIRST} END")),
                names.len() + 1
            ),
        }
    }

    /// Calls the function, in one round trip. If the tables do not have the epoch, the call returns
    /// no row and does nothing.
    pub(super) async fn run(
        &self,
        database: &Database,
        is_urgent: bool,
        mut parameters: Vec<Parameter<'_>>,
        epoch: Option<&str>,
    ) -> Result<Vec<Row>, QueryError> {
        let Some(epoch) = &epoch else {
            return database.query(is_urgent, &self.plain, &parameters).await;
        };
        parameters.push((epoch, Type::TEXT));
        database.query(is_urgent, &self.in_epoch, &parameters).await
    }
}
