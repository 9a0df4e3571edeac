//! The newest rows, in memory. The log has them on disk.

use std::borrow::Borrow;
use std::collections::BTreeMap;
use std::iter;
use std::ops::Bound;

use fjall::Slice;

use super::rows::Table;
use crate::store::embedded::log::Place;

/// Rows by their keys. A row without a value is removed: older rows of its key do not count.
type Rows<K, V> = BTreeMap<K, Option<V>>;

/// The order in which rows are returned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    Forward,
    Backward,
}

/// The rows of a table between two keys.
#[derive(Debug, Clone, Copy)]
pub(super) struct Span<'a> {
    pub(super) table: Table,
    pub(super) start: Bound<&'a [u8]>,
    pub(super) end: Bound<&'a [u8]>,
    pub(super) order: Order,
}

impl Span<'_> {
    /// All rows of a table, in the order of their keys.
    pub(super) const fn all(table: Table) -> Self {
        Self { table, start: Bound::Unbounded, end: Bound::Unbounded, order: Order::Forward }
    }

    fn is_empty(&self) -> bool {
        match (self.start, self.end) {
            (Bound::Included(start), Bound::Included(end)) => start > end,
            (Bound::Included(start) | Bound::Excluded(start), Bound::Excluded(end))
            | (Bound::Excluded(start), Bound::Included(end)) => start >= end,
            (Bound::Unbounded, _) | (_, Bound::Unbounded) => false,
        }
    }
}

/// A row. It is removed if it has no value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Row {
    pub(super) key: Slice,
    pub(super) value: Option<Slice>,
}

/// A row has a length that no version writes.
#[derive(Debug, thiserror::Error)]
#[error("a row of the log has a length that no row has")]
pub(super) struct ForeignRow;

/// Rows of all tables. Keys of one length are kept as they are, which takes half of the memory that
/// slices would take.
#[derive(Debug)]
pub(super) struct Memory {
    records: Rows<[u8; 16], [u8; Place::BYTES]>,
    unsettled: Rows<Slice, Slice>,
    due: Rows<Slice, Slice>,
    created: Rows<[u8; 24], [u8; 0]>,
    keys: Rows<[u8; 32], [u8; 0]>,
    /// The rows that are named after a group from this one on are nowhere else.
    from_group: u64,
}

impl Memory {
    /// No rows. Those of groups before this one may be elsewhere.
    pub(super) const fn new(from_group: u64) -> Self {
        Self {
            records: Rows::new(),
            unsettled: Rows::new(),
            due: Rows::new(),
            created: Rows::new(),
            keys: Rows::new(),
            from_group,
        }
    }

    /// From here on, the rows of a group from this one on are nowhere else.
    pub(super) const fn set_from_group(&mut self, from_group: u64) {
        self.from_group = from_group;
    }

    /// Returns the number of rows.
    pub(super) fn rows(&self) -> usize {
        let Self { records, unsettled, due, created, keys, .. } = self;
        records.len() + unsettled.len() + due.len() + created.len() + keys.len()
    }

    /// Returns the place of a record; `Some(None)` if the record is removed, and `None` if nothing
    /// is known of it here.
    pub(super) fn record(&self, id: &[u8; 16]) -> Option<Option<Place>> {
        self.records.get(id).map(place)
    }

    /// Changes the place of a record. Returns what [`Self::record`] returned before.
    pub(super) fn set_record(
        &mut self,
        id: [u8; 16],
        place: Option<Place>,
    ) -> Option<Option<Place>> {
        self.records.insert(id, place.map(Place::to_bytes)).as_ref().map(self::place)
    }

    /// Changes a row of any other table.
    pub(super) fn set(
        &mut self,
        table: Table,
        key: &[u8],
        value: Option<&[u8]>,
    ) -> Result<(), ForeignRow> {
        match table {
            Table::Records => Err(ForeignRow),
            Table::Created => set(&mut self.created, key, value),
            Table::Keys => set(&mut self.keys, key, value),
            Table::Unsettled | Table::Due => {
                let rows = if table == Table::Due { &mut self.due } else { &mut self.unsettled };
                // Most of these rows are removed soon. Then nothing is left of them.
                if value.is_none() && group_of(table, key).is_some_and(|n| n >= self.from_group) {
                    rows.remove(key);
                    return Ok(());
                }
                set(rows, key, value)
            }
        }
    }

    /// Returns the rows of a span.
    pub(super) fn range(&self, span: Span<'_>) -> Box<dyn Iterator<Item = Row> + '_> {
        match span.table {
            Table::Records => rows_in(&self.records, span),
            Table::Unsettled => rows_in(&self.unsettled, span),
            Table::Due => rows_in(&self.due, span),
            Table::Created => rows_in(&self.created, span),
            Table::Keys => rows_in(&self.keys, span),
        }
    }
}

/// Returns the number of the group after which a row is named.
fn group_of(table: Table, key: &[u8]) -> Option<u64> {
    let number = match table {
        Table::Unsettled if key.len() == 8 => key,
        Table::Due => key.get(8..)?,
        Table::Unsettled | Table::Records | Table::Created | Table::Keys => return None,
    };
    Some(u64::from_be_bytes(number.try_into().ok()?))
}

fn place(value: &Option<[u8; Place::BYTES]>) -> Option<Place> {
    value.as_ref().and_then(|bytes| Place::from_bytes(bytes))
}

fn set<'a, K: Ord + TryFrom<&'a [u8]>, V: TryFrom<&'a [u8]>>(
    rows: &mut Rows<K, V>,
    key: &'a [u8],
    value: Option<&'a [u8]>,
) -> Result<(), ForeignRow> {
    let key = key.try_into().map_err(|_| ForeignRow)?;
    let value = value.map(TryInto::try_into).transpose().map_err(|_| ForeignRow)?;
    rows.insert(key, value);
    Ok(())
}

fn rows_in<'a, K, V>(rows: &'a Rows<K, V>, span: Span<'_>) -> Box<dyn Iterator<Item = Row> + 'a>
where
    K: Ord + Borrow<[u8]>,
    V: AsRef<[u8]>,
{
    // A map panics if a range begins behind its end.
    if span.is_empty() {
        return Box::new(iter::empty());
    }
    let rows = rows.range::<[u8], _>((span.start, span.end)).map(|(key, value)| Row {
        key: key.borrow().into(),
        value: value.as_ref().map(|value| value.as_ref().into()),
    });
    match span.order {
        Order::Forward => Box::new(rows),
        Order::Backward => Box::new(rows.rev()),
    }
}
