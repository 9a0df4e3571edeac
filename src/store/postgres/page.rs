//! A part of a list, found by an index.

use tokio_postgres::Row;
use tokio_postgres::types::{ToSql, Type};

use super::records::{Postgres, get, id_of};
use super::row::{millis, text, timestamp};
use crate::operation::{Key, KeyKind, StateName};
use crate::store::Error;
use crate::store::listing::{ListPosition, ListQuery};
use crate::store::shared::Page;

impl Postgres {
    /// As many records as are asked for, from where the list goes on.
    pub(super) async fn page_of(&self, listing: &ListQuery) -> Result<Page, Error> {
        let route = listing.route.as_deref();
        let after = listing
            .after
            .as_ref()
            .map(|ListPosition { created_at, id }| (millis(*created_at), id.to_string()));
        let (at, id) = after.unzip();
        let most = i64::try_from(listing.limit).unwrap_or(i64::MAX);
        let mut parameters: Vec<(&(dyn ToSql + Sync), Type)> = vec![(&most, Type::INT8)];
        if let (Some(at), Some(id)) = (&at, &id) {
            parameters.extend([(at as &(dyn ToSql + Sync), Type::INT8), (id, Type::TEXT)]);
        }
        if let Some(route) = &route {
            parameters.push((route, Type::TEXT));
        }
        let key = listing.key.as_deref().map(forms);
        if let Some(key) = &key {
            parameters.push((key, Type::TEXT_ARRAY));
        }
        let rows = self.ask(false, &page_statement(listing), &parameters).await?;
        page(&rows, listing.limit)
    }
}

/// The statement of a page. It names only what is asked for, so that the server finds the index.
fn page_statement(listing: &ListQuery) -> String {
    let mut number = 1;
    let mut next = || {
        number += 1;
        number
    };
    let mut conditions =
        vec!["changes_at > (SELECT @schema@.clock()) OR state = 'in_flight'".to_owned()];
    if listing.after.is_some() {
        let at = next();
        let id = next();
        conditions.push(format!("(created_at, id) < (@schema@.moment(${at}), ${id})"));
    }
    if listing.route.is_some() {
        conditions.push(format!("route = ${}", next()));
    }
    if let Some(key) = &listing.key {
        let form = |number: usize, form: usize| format!("(${number}::text[])[{form}]");
        let number = next();
        let searched = "@schema@.searched(key)";
        // one condition for each, so that the server reads no more of the index than it must
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
    conditions.extend(listing.state.map(|state| match state {
        // a lease may have run out
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

/// How a key may stand in its column: a text that could be read as a number is quoted in an event.
fn forms(key: &str) -> Vec<String> {
    let event = Key::of(KeyKind::Event, &[&[key.into()]]).parts;
    let mut forms = vec![text(key)];
    forms.extend(event.iter().map(|part| text(part)).filter(|part| *part != text(key)));
    forms
}

fn page(rows: &[Row], limit: usize) -> Result<Page, Error> {
    let mut page = Page { at: timestamp(0), records: Vec::with_capacity(rows.len()), next: None };
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
