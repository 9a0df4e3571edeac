//! Reads pages of a list, by an index.

use tokio_postgres::Row;

use super::arguments::Value::{self, Int8, Text};
use super::database::{get, id_of};
use super::records::Postgres;
use super::row::{millis, text, timestamp};
use crate::operation::{Key, KeyKind, StateName};
use crate::store::Error;
use crate::store::list::{ListPosition, ListQuery};
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

/// The statement for a page, with the values of its parameters.
struct PageStatement {
    text: String,
    values: Vec<Value>,
}

impl PageStatement {
    /// Makes the statement. It has only the conditions that the query has. With a condition such as
    /// `$1 IS NULL OR route = $1`, the server would use no index.
    fn of(query: &ListQuery) -> Self {
        let mut values = vec![Int8(Some(i64::try_from(query.limit).unwrap_or(i64::MAX)))];
        // Adds the value of a parameter, and returns the parameter's number.
        let mut parameter = |value| {
            values.push(value);
            values.len()
        };
        // A record past its end does not count. But an operation in flight whose lease ran out does,
        // because it is uncertain.
        let mut conditions =
            vec!["changes_at > (SELECT @schema@.clock()) OR state = 'in_flight'".to_owned()];
        if let Some(ListPosition { created_at, id }) = query.after {
            let at = parameter(Int8(Some(millis(created_at))));
            let id = parameter(Text(Some(id.to_string().into())));
            conditions.push(format!("(created_at, id) < (@schema@.moment(${at}), ${id})"));
        }
        if let Some(route) = &query.route {
            let route = parameter(Text(Some(route.to_string().into())));
            conditions.push(format!("route = ${route}"));
        }
        if let Some(key) = &query.key {
            // One condition for each form, so that the server reads no more of the index than it
            // must.
            let is_form = forms(key).into_iter().map(|form| {
                let form = parameter(Text(Some(form.into())));
                let searched = "@schema@.searched(key)";
                format!(
                    "pg_catalog.\"left\"({searched}, 255) COLLATE \"C\" \
                     = pg_catalog.\"left\"(${form}, 255) AND {searched} = ${form}"
                )
            });
            conditions.push(is_form.collect::<Vec<_>>().join(" OR "));
        }
        conditions.extend(query.state.map(|state| match state {
            // A lease may have run out, although nobody has written that yet. The record decides.
            StateName::Uncertain => "state IN ('uncertain', 'in_flight')".to_owned(),
            StateName::InFlight
            | StateName::Succeeded
            | StateName::Failed
            | StateName::Forgotten => format!("state = '{}'", state.as_str()),
        }));
        let text = format!(
            "SELECT id, @schema@.millis(created_at), record, @schema@.millis(@schema@.clock()) \
             FROM @schema@.operations WHERE ({}) ORDER BY created_at DESC, id DESC LIMIT $1",
            conditions.join(") AND (")
        );
        Self { text, values }
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
        if page.records.len() == limit {
            page.next = Some(ListPosition { created_at: timestamp(get(row, 1)?), id });
        }
    }
    Ok(page)
}
