//! Merges the rows of a table that are in memory and on disk.

use std::cmp::Ordering;
use std::iter::Peekable;

use fjall::Slice;

use super::memory::{Order, Row};

/// Rows of one place, in the order that the merge has.
pub(super) type Source<'a> = Box<dyn Iterator<Item = Result<Row, fjall::Error>> + 'a>;

/// The rows of several sources. Of rows with one key only that of the first source counts, and only
/// if it is not removed.
pub(super) struct Merge<'a> {
    /// The newest one first.
    sources: Vec<Peekable<Source<'a>>>,
    order: Order,
}

/// A row that is not removed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct MergedRow {
    pub(super) key: Slice,
    pub(super) value: Slice,
}

impl<'a> Merge<'a> {
    pub(super) fn new(sources: Vec<Source<'a>>, order: Order) -> Self {
        Self { sources: sources.into_iter().map(Iterator::peekable).collect(), order }
    }

    /// Returns the next row, which may be removed.
    fn next_row(&mut self) -> Option<Result<Row, fjall::Error>> {
        let mut next: Option<Slice> = None;
        for source in &mut self.sources {
            let key = match source.peek() {
                None => continue,
                Some(Err(_)) => return source.next(),
                Some(Ok(row)) => &row.key,
            };
            let is_earlier = next.as_ref().is_none_or(|next| match self.order {
                Order::Forward => key.cmp(next) == Ordering::Less,
                Order::Backward => key.cmp(next) == Ordering::Greater,
            });
            if is_earlier {
                next = Some(key.clone());
            }
        }
        let next = next?;
        let mut newest = None;
        for source in &mut self.sources {
            let is_next = |row: &Result<Row, _>| row.as_ref().is_ok_and(|row| row.key == next);
            let row = source.next_if(is_next);
            newest = newest.or(row);
        }
        newest
    }
}

impl Iterator for Merge<'_> {
    type Item = Result<MergedRow, fjall::Error>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            match self.next_row()? {
                Ok(Row { key, value: Some(value) }) => return Some(Ok(MergedRow { key, value })),
                Ok(Row { value: None, .. }) => {}
                Err(error) => return Some(Err(error)),
            }
        }
    }
}
