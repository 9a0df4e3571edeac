//! Reads pages of a list, by an index.

use tokio_postgres::Row;
use tokio_postgres::types::{ToSql, Type};

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
        let route = query.route.as_deref();
        let after = query
            .after
            .as_ref()
            .map(|ListPosition { created_at, id }| (millis(*created_at), id.to_string()));
        let (at, id) = after.unzip();
        let most = i64::try_from(query.limit).unwrap_or(i64::MAX);
        let mut parameters: Vec<(&(dyn ToSql + Sync), Type)> = vec![(&most, Type::INT8)];
        if let (Some(at), Some(id)) = (&at, &id) {
            parameters.extend([(at as &(dyn ToSql + Sync), Type::INT8), (id, Type::TEXT)]);
        }
        if let Some(route) = &route {
            parameters.push((route, Type::TEXT));
        }
        let key = query.key.as_deref().map(forms);
        if let Some(key) = &key {
            parameters.push((key, Type::TEXT_ARRAY));
        }
        let rows = self.database.query(false, &page_statement(query), &parameters).await?;
        page(&rows, query.limit)
    }
}

/// Returns the statement for a page. The statement has only the conditions that the query has. With
/// a condition such as `$1 IS NULL OR route = $1`, the server would use no index.
fn page_statement(query: &ListQuery) -> String {
    let mut number = 1;
    let mut next = || {
        number += 1;
        number
    };
    // A record past its end does not count. But an operation in flight whose lease ran out does,
    // because it is uncertain.
    let mut conditions =
        vec!["changes_at > (SELECT @schema@.clock()) OR state = 'in_flight'".to_owned()];
    if query.after.is_some() {
        let at = next();
        let id = next();
        conditions.push(format!("(created_at, id) < (@schema@.moment(${at}), ${id})"));
    }
    if query.route.is_some() {
        conditions.push(format!("route = ${}", next()));
    }
    if let Some(key) = &query.key {
        let form = |number: usize, form: usize| format!("(${number}::text[])[{form}]");
        let number = next();
        let searched = "@schema@.searched(key)";
        // One condition for each form, so that the server reads no more of the index than it must.
        let is_form = |at| {
            let form = form(number, at);
            format!(
                "pg_catalog.\"left\"({searched}, 255) COLLATE \"C\" \
                 = pg_catalog.\"left\"({form}, 255) AND {searched} = {form}"
            )
        };
        let forms = (1..=forms(key).len()).map(is_form).collect::<Vec<_>>();
        conditions.push(forms.join(" OR "));
    }
    conditions.extend(query.state.map(|state| match state {
        // A lease may have run out, although nobody has written that yet. The record decides.
        StateName::Uncertain => "state IN ('uncertain', 'in_flight')".to_owned(),
        StateName::InFlight | StateName::Succeeded | StateName::Failed | StateName::Forgotten => {
            format!("state = '{}'", state.as_str())
        }
    }));
    format!(
        "SELECT id, @schema@.millis(created_at), record, @schema@.millis(@schema@.clock()) \
         FROM @schema@.operations WHERE ({}) ORDER BY created_at DESC, id DESC LIMIT $1",
        conditions.join(") AND (")
    )
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
