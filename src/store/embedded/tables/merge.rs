//! Reads a part of a table from several sources at once. The newest source that knows a row decides.

use std::iter::Peekable;

use lsm_tree::Slice;

/// A row of a source. A row without a value was removed.
pub(super) type SourceRow = Result<(Slice, Option<Slice>), lsm_tree::Error>;

/// A row that exists: its key and its value.
#[derive(Debug, Clone)]
pub(in crate::store::embedded) struct KeyValue {
    pub(in crate::store::embedded) key: Slice,
    pub(in crate::store::embedded) value: Slice,
}

/// The order in which all sources give their rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    Ascending,
    Descending,
}

/// The rows of all sources, each once.
pub(super) struct Merged<'a> {
    /// The newest source is the first.
    sources: Vec<Peekable<Box<dyn Iterator<Item = SourceRow> + 'a>>>,
    order: Order,
}

impl<'a> Merged<'a> {
    pub(super) fn new(order: Order) -> Self {
        Self { sources: Vec::new(), order }
    }

    /// Adds a source that is older than all that were added before.
    pub(super) fn with(mut self, source: impl Iterator<Item = SourceRow> + 'a) -> Self {
        let source: Box<dyn Iterator<Item = SourceRow> + 'a> = Box::new(source);
        self.sources.push(source.peekable());
        self
    }

    /// Returns the key that comes next, or an error of a source.
    fn next_key(&mut self) -> Option<Result<Slice, lsm_tree::Error>> {
        let mut first: Option<Slice> = None;
        for source in &mut self.sources {
            let Some(row) = source.peek() else { continue };
            let Ok((key, _)) = row else {
                return source.next().and_then(Result::err).map(Err);
            };
            let comes_first = first.as_ref().is_none_or(|first| match self.order {
                Order::Ascending => key < first,
                Order::Descending => key > first,
            });
            if comes_first {
                first = Some(key.clone());
            }
        }
        first.map(Ok)
    }
}

impl Iterator for Merged<'_> {
    type Item = Result<KeyValue, lsm_tree::Error>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let key = match self.next_key()? {
                Ok(key) => key,
                Err(error) => return Some(Err(error)),
            };
            let mut found = None;
            for source in &mut self.sources {
                let is_same = |row: &SourceRow| matches!(row, Ok((other, _)) if *other == key);
                if let Some(Ok((_, value))) = source.next_if(is_same) {
                    found = found.or(Some(value));
                }
            }
            if let Some(value) = found.flatten() {
                return Some(Ok(KeyValue { key, value }));
            }
        }
    }
}
