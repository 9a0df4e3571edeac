//! What to do about damage: refuse, or go on without what is lost, and say what that is.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::filesystem::keep_aside;
use super::log::Fault;
use super::log::scan::{LossKind, LostPart};
use super::loss;
use super::open_error::OpenError;
use super::settings::IfDamaged;
use super::stuffing::unstuff;
use super::tables::Table;
use crate::operation::OperationId;
use crate::store::{codec, probe};

/// The most operations of a damaged part that the log names.
const NAMED_MAX: usize = 20;

/// What to do about damage in a store.
#[derive(Debug)]
pub(super) struct OnDamage<'a> {
    /// The store's directory.
    pub(super) store: &'a Path,
    pub(super) if_damaged: IfDamaged,
}

impl OnDamage<'_> {
    /// Whether to go on in spite of a fault. If so, notes and logs the loss.
    pub(super) fn accepts(&self, fault: &Fault) -> bool {
        if self.if_damaged == IfDamaged::Refuse || matches!(fault, Fault::Io(_)) {
            return false;
        }
        if loss::note(self.store).is_err() {
            return false;
        }
        match fault {
            Fault::Damaged { segment, lost } => {
                keep_copy(self.store, segment);
                log_loss(segment, lost);
            }
            Fault::Missing(path) => tracing::error!(
                missing = %path.display(),
                "a file of the store is missing; the operations in it may run again"
            ),
            Fault::Short { segment, offset } => tracing::error!(
                segment = %segment.display(), offset,
                "the log ends before what was acknowledged; what came after may run again"
            ),
            Fault::Io(_) => {}
        }
        true
    }

    /// Goes on without a file, or refuses.
    pub(super) fn missing(&self, missing: PathBuf) -> Result<(), OpenError> {
        let fault = Fault::Missing(missing);
        if self.accepts(&fault) { Ok(()) } else { Err(self.fault(fault)) }
    }

    /// Turns a fault into the error of the opening.
    pub(super) fn fault(&self, fault: Fault) -> OpenError {
        let store = self.store.to_owned();
        match fault {
            Fault::Missing(missing) => OpenError::Missing { store, missing },
            Fault::Damaged { segment, lost } => {
                OpenError::DamagedLog { store, segment, offset: lost.range.start }
            }
            Fault::Short { segment, offset } => OpenError::DamagedLog { store, segment, offset },
            Fault::Io(error) => self.io(error),
        }
    }

    pub(super) fn io(&self, source: io::Error) -> OpenError {
        OpenError::Io { path: self.store.to_owned(), source }
    }

    pub(super) fn database(&self, error: lsm_tree::Error) -> OpenError {
        OpenError::database(self.store, error)
    }
}

/// Keeps the database as it is under another name, and makes an empty folder in its place.
pub(super) fn begin_rows_anew(rows: &Path) -> io::Result<()> {
    if rows.try_exists()? {
        let aside = keep_aside(rows)?;
        fs::rename(rows, &aside)?;
        tracing::warn!(rows = %aside.display(), "the database is kept as it was");
    }
    fs::create_dir_all(rows)?;
    tracing::error!(
        rows = %rows.display(),
        "the rows of all records are made anew from the log; operations that had ended may be \
         remembered again, and what a lost segment held may run again"
    );
    Ok(())
}

/// Copies a damaged segment, so that a person can look at it after its records have ended.
fn keep_copy(store: &Path, segment: &Path) {
    let Some(name) = segment.file_name() else { return };
    let copied = keep_aside(&store.join(name)).and_then(|kept| {
        fs::copy(segment, &kept)?;
        fs::File::open(&kept)?.sync_all()?;
        Ok(kept)
    });
    match copied {
        Ok(kept) => {
            tracing::warn!(segment = %kept.display(), "the damaged segment is kept as it was");
        }
        Err(error) => tracing::error!(%error, "the damaged segment could not be copied"),
    }
}

/// Logs the loss of a part of a segment.
pub(super) fn log_loss(segment: &Path, lost: &LostPart) {
    let LostPart { range, kind, rows } = lost;
    let segment = segment.display();
    let offset = range.start;
    let bytes = range.end - range.start;
    let changes = rows.iter().filter(|row| row.table == Table::Records as u8).count();
    match kind {
        LossKind::Unfinished => tracing::info!(
            %segment, offset, bytes, changes,
            "an unfinished group of changes is dropped: the process or the machine stopped while \
             the group was written; none of its calls was answered, unless durability is \"os\" and \
             the machine stopped"
        ),
        LossKind::Unsynced => tracing::warn!(
            %segment, offset, bytes, changes,
            "sectors are missing at the end of the log: changes that had not been synced when the \
             machine stopped are dropped"
        ),
        LossKind::Damaged => {
            let named = operations(lost).into_iter().take(NAMED_MAX).map(|id| id.to_string());
            tracing::error!(
                %segment, offset, bytes, changes,
                operations = named.collect::<Vec<_>>().join(" "),
                "a damaged part of the log is left out; its operations may run again"
            );
        }
    }
}

/// Returns the operations whose records are in a lost part, as far as the rows can be read. The
/// throw-away operations of probes are left out, because no sender sent them.
fn operations(lost: &LostPart) -> Vec<OperationId> {
    let mut operations = Vec::new();
    for row in lost.rows.iter().filter(|row| row.table == Table::Records as u8) {
        let Ok(id) = row.key.as_slice().try_into().map(OperationId::from_bytes) else { continue };
        let record = row.value.as_deref().map(|kept| {
            let record = unstuff(kept)?;
            codec::decode(&record)
        });
        let is_probe = record.is_some_and(|read| read.is_ok_and(|op| probe::is_throw_away(&op)));
        if !is_probe && !operations.contains(&id) {
            operations.push(id);
        }
    }
    operations
}
