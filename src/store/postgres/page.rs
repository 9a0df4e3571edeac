//! Reads pages of a list, by an index. A page reads at most [`SCANNED_MAX`] operations.

use tokio_postgres::Row;

use super::arguments::Value::{self, Int8, Text};
use super::database::{get, id_of};
use super::records::Postgres;
use super::row::{millis, text, timestamp};
use crate::operation::{Key, KeyKind, StateName};
use crate::store::Error;
use crate::store::list::{ListPosition, ListQuery, SCANNED_MAX};
use crate::store::shared::RecordPage;

impl Postgres {
    /// Returns one page of records.
    pub(super) async fn page_of(&self, query: &ListQuery) -> Result<RecordPage, Error> {
        let PageStatement { text, values } = PageStatement::of(query);
        let parameters: Vec<_> = values.iter().map(Value::parameter).collect();
        let rows = self.database.query(false, &text, &parameters).await?;
        page(&rows, query.limit)
    }
}

/// The columns that a page needs of an operation.
const COLUMNS: &str = "id, created_at, record, changes_at, state, route";

/// The order of a list.
const NEWEST_FIRST: &str = "ORDER BY created_at DESC, id DESC";

/// The statement for a page, with the values of its parameters.
struct PageStatement {
    text: String,
    values: Vec<Value>,
}

impl PageStatement {
    /// Makes the statement. It has only the conditions that the query has. With a condition such as
    /// `$1 IS NULL OR route = $1`, the server would use no index.
    ///
    /// The inner statements find operations by an index. The outer one leaves out those that the
    /// query does not ask for, except the one at which the reading ends, because the next page
    /// begins after it.
    fn of(query: &ListQuery) -> Self {
        let limit = Int8(Some(i64::try_from(query.limit).unwrap_or(i64::MAX)));
        let mut values = Values(vec![limit]);
        let found = values.found(query);
        // A record past its end does not count. But an operation in flight whose lease ran out
        // does, because it is uncertain.
        let mut wanted =
            vec!["changes_at > (SELECT @schema@.clock()) OR state = 'in_flight'".to_owned()];
        if let Some(route) = &query.route {
            let route = values.add(Text(Some(route.to_string().into())));
            wanted.push(format!("route = ${route}"));
        }
        wanted.extend(query.state.map(|state| match state {
            // A lease may have run out, although nobody has written that yet. The record decides.
            StateName::Uncertain => "state IN ('uncertain', 'in_flight')".to_owned(),
            StateName::InFlight
            | StateName::Succeeded
            | StateName::Failed
            | StateName::Forgotten => format!("state = '{}'", state.as_str()),
        }));
        let text = format!(
            "SELECT id, @schema@.millis(created_at), record, @schema@.millis(@schema@.clock()), \
                 place \
             FROM (SELECT *, row_number() OVER ({NEWEST_FIRST}) AS place FROM ({found}) AS found \
                 {NEWEST_FIRST} LIMIT {SCANNED_MAX}) AS scanned \
             WHERE place = {SCANNED_MAX} OR ({}) {NEWEST_FIRST} LIMIT $1",
            wanted.join(") AND (")
        );
        Self { text, values: values.0 }
    }
}

/// The values of the parameters of a statement.
struct Values(Vec<Value>);

impl Values {
    /// Adds the value of a parameter, and returns the parameter's number.
    fn add(&mut self, value: Value) -> usize {
        self.0.push(value);
        self.0.len()
    }

    /// Returns the statement that finds the operations after the query's position, by the index
    /// that suits its state or key. It may find others that the query does not ask for.
    fn found(&mut self, query: &ListQuery) -> String {
        let is_after = match query.after {
            None => "true".to_owned(),
            Some(ListPosition { created_at, id }) => {
                let at = self.add(Int8(Some(millis(created_at))));
                let id = self.add(Text(Some(id.to_string().into())));
                format!("(created_at, id) < (@schema@.moment(${at}), ${id})")
            }
        };
        let rows = |condition: &str| {
            format!("SELECT {COLUMNS} FROM @schema@.operations WHERE ({condition}) AND {is_after}")
        };
        // Few operations are in flight at a time, and no index has them in order. `OFFSET 0` keeps
        // the server from reading all operations in order instead.
        let in_flight = rows("state = 'in_flight'") + " OFFSET 0";
        let in_state = |state: StateName| rows(&format!("state = '{}'", state.as_str()));
        match (&query.key, query.state) {
            (Some(key), _) => rows(&self.has_key(key)),
            (None, None | Some(StateName::Succeeded)) => rows("true"),
            (None, Some(state @ (StateName::Failed | StateName::Forgotten))) => in_state(state),
            (None, Some(StateName::InFlight)) => in_flight,
            (None, Some(state @ StateName::Uncertain)) => format!(
                "({} {NEWEST_FIRST} LIMIT {SCANNED_MAX}) UNION ALL ({in_flight})",
                in_state(state)
            ),
        }
    }

    /// Returns the condition that an operation has this key. It has one part for each form, so that
    /// the server reads no more of the index than it must.
    fn has_key(&mut self, key: &str) -> String {
        let is_form = forms(key).into_iter().map(|form| {
            let form = self.add(Text(Some(form.into())));
            let searched = "@schema@.searched(key)";
            format!(
                "pg_catalog.\"left\"({searched}, 255) COLLATE \"C\" \
                 = pg_catalog.\"left\"(${form}, 255) AND {searched} = ${form}"
            )
        });
        is_form.collect::<Vec<_>>().join(" OR ")
    }
}

/// Returns the forms in which a key may be in its column. In the key of an event, a text that could
/// be read as a number has quotes. In a key from a header it has none.
fn forms(key: &str) -> Vec<String> {
    let event = Key::of(KeyKind::Event, &[&[key.into()]]).parts;
    let mut forms = vec![text(key)];
    forms.extend(event.iter().map(|part| text(part)).filter(|part| *part != text(key)));
    forms
}

fn page(rows: &[Row], limit: usize) -> Result<RecordPage, Error> {
    let mut page =
        RecordPage { at: timestamp(0), records: Vec::with_capacity(rows.len()), next: None };
    for row in rows {
        let id = id_of(get(row, 0)?)?;
        page.at = timestamp(get(row, 3)?).max(page.at);
        page.records.push((id, get(row, 2)?));
        let is_last_read = usize::try_from(get::<i64>(row, 4)?) == Ok(SCANNED_MAX);
        if is_last_read || page.records.len() == limit {
            page.next = Some(ListPosition { created_at: timestamp(get(row, 1)?), id });
        }
    }
    Ok(page)
}
