//! The database: one log-structured merge tree for each table. It gets rows in sorted runs only.

use std::io;
use std::ops::Bound;
use std::path::Path;
use std::sync::Arc;

use lsm_tree::compaction::Leveled;
use lsm_tree::config::{CompressionPolicy, FilterPolicy, FilterPolicyEntry, PinningPolicy};
use lsm_tree::{
    AbstractTree as _, AnyTree, Cache, CompressionType, Config, Guard as _, SeqNo,
    SequenceNumberCounter, Slice,
};

use super::memory::Rows;
use super::merge::SourceRow;
use super::rows::{TABLES, Table};
use crate::store::embedded::filesystem::sync_directory;

/// The number of bytes of the files that are cached in memory.
const CACHE_BYTES: u64 = 16 << 20;

/// The most compactions of a table after a run was added.
const COMPACTIONS: usize = 4;

/// The tables that are open.
pub(super) struct Database {
    trees: [Tree; TABLES],
}

struct Tree {
    tree: AnyTree,
    sequence: SequenceNumberCounter,
}

impl Database {
    /// Opens the tables, or makes them.
    pub(super) fn open(folder: &Path) -> Result<Self, lsm_tree::Error> {
        let cache = Arc::new(Cache::with_capacity_bytes(CACHE_BYTES));
        let open = |table: Table| Tree::open(folder, table, &cache);
        let [records, unsettled, due, created, keys] = Table::ALL.map(open);
        let trees = [records?, unsettled?, due?, created?, keys?];
        // The tree syncs what is in its folder, but not the folder's own name.
        sync_directory(folder)?;
        Ok(Self { trees })
    }

    /// Whether all tables are there.
    pub(super) fn missing(folder: &Path) -> io::Result<Option<&'static str>> {
        for table in Table::ALL {
            // A tree without this file would be made anew.
            if !folder.join(table.name()).join("current").try_exists()? {
                return Ok(Some(table.name()));
            }
        }
        Ok(None)
    }

    /// Reads a row.
    pub(super) fn get(&self, table: Table, key: &[u8]) -> Result<Option<Slice>, lsm_tree::Error> {
        self.tree(table).tree.get(key, SeqNo::MAX)
    }

    /// Reads a part of a table.
    pub(super) fn range(
        &self,
        table: Table,
        from: Bound<Slice>,
        until: Bound<Slice>,
    ) -> impl DoubleEndedIterator<Item = SourceRow> + use<> {
        let rows = self.tree(table).tree.range((from, until), SeqNo::MAX, None);
        rows.map(|row| row.into_inner().map(|(key, value)| (key, Some(value))))
    }

    /// Adds a run of changed rows to a table, durably.
    pub(super) fn ingest(&self, table: Table, rows: &Rows) -> Result<(), lsm_tree::Error> {
        if rows.is_empty() {
            return Ok(());
        }
        let mut ingestion = self.tree(table).tree.ingestion()?;
        for (key, value) in rows {
            match value {
                Some(value) => ingestion.write(key.clone(), value.clone())?,
                None => ingestion.write_tombstone(key.clone())?,
            }
        }
        ingestion.finish().map(drop)
    }

    /// Merges the runs of a table, so that reading stays fast.
    pub(super) fn compact(&self, table: Table) -> Result<(), lsm_tree::Error> {
        let Tree { tree, sequence } = self.tree(table);
        for _ in 0..COMPACTIONS {
            let before = tree.current_version().id();
            tree.compact(Arc::new(Leveled::default()), sequence.get())?;
            if tree.current_version().id() == before {
                break;
            }
        }
        Ok(())
    }

    fn tree(&self, table: Table) -> &Tree {
        &self.trees[table as usize]
    }
}

impl Tree {
    fn open(folder: &Path, table: Table, cache: &Arc<Cache>) -> Result<Self, lsm_tree::Error> {
        let sequence = SequenceNumberCounter::default();
        let visible = SequenceNumberCounter::default();
        let config = Config::new(folder.join(table.name()), sequence.clone(), visible.clone())
            .use_cache(Arc::clone(cache))
            .data_block_compression_policy(CompressionPolicy::all(CompressionType::Lz4))
            .filter_block_pinning_policy(PinningPolicy::all(false))
            .index_block_pinning_policy(PinningPolicy::all(false));
        let config = match table {
            Table::Records => config,
            // Only parts of the other tables are read.
            Table::Unsettled | Table::Due | Table::Created | Table::Keys => {
                config.filter_policy(FilterPolicy::all(FilterPolicyEntry::None))
            }
        };
        let tree = config.open()?;
        let next = tree.get_highest_seqno().map_or(0, |highest| highest + 1);
        sequence.fetch_max(next);
        visible.fetch_max(next);
        Ok(Self { tree, sequence })
    }
}
