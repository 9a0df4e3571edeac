//! Writes stores of format 1, as the program did that had this format. Only tests need it.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use fjall::{
    CompressionType, Database, Keyspace, KeyspaceCreateOptions, OwnedWriteBatch, PersistMode,
};

use super::journal::files::content;
use super::journal::group::LABEL_KEY;
use super::{records_folder, synced};
use crate::operation::state::{ClaimRequest, Ending, Rule as _, Settlement};
use crate::operation::{
    AnswerBody, Operation, OperationId, State, StoredAnswer, Subject, Timestamp,
};
use crate::store::codec;
use crate::store::embedded::settings::Durability;
use crate::store::embedded::stuffing::stuff;

pub(in super::super) const FORMAT: &str = "onceward embedded store, format 1\n";

/// The time of the claims of these operations. Their attempts took half a second.
pub(in super::super) const CLAIMED: Timestamp = Timestamp(1_800_000_000_000);

/// The operation with this number, in flight.
pub(in super::super) fn in_flight(number: u32) -> Operation {
    request(number).apply(None, CLAIMED).operation.unwrap()
}

/// The operation with this number, answered with this body.
pub(in super::super) fn answered(number: u32, body: &[u8]) -> Operation {
    let mut answer = StoredAnswer::empty(http::StatusCode::OK);
    answer.body = AnswerBody::Kept(body.to_vec().into());
    let ending = Ending::Succeeded { answer: answer.into(), reference: None };
    let ClaimRequest { subject, claim_id, holder, durations, .. } = request(number);
    let end = Settlement { subject, claim_id, attempt: 1, holder, durations, ending };
    end.apply(Some(in_flight(number)), Timestamp(CLAIMED.0 + 500)).operation.unwrap()
}

/// Ids have the order of their numbers.
pub(in super::super) fn id(number: u32) -> OperationId {
    OperationId::from_bytes((u128::from(number) << 64).to_be_bytes())
}

fn request(number: u32) -> ClaimRequest {
    let example = ClaimRequest::example();
    let subject = Subject { id: id(number), ..(*example.subject).clone() };
    ClaimRequest { subject: Arc::new(subject), ..example }
}

/// An open store of format 1.
pub(in super::super) struct OlderStore {
    records: PathBuf,
    database: Database,
    /// By their names.
    tables: [Keyspace; 6],
    durability: Durability,
}

const NAMES: [&str; 6] = ["operations", "unsettled", "due", "created", "meta", "keys"];

impl OlderStore {
    /// Makes an empty store, or opens one.
    pub(in super::super) fn open(store: &Path, durability: Durability) -> Self {
        fs::create_dir_all(store).unwrap();
        fs::write(store.join("format"), FORMAT).unwrap();
        let records = records_folder(store);
        let open = || {
            let database = Database::builder(&records)
                .manual_journal_persist(true)
                .journal_compression(CompressionType::None)
                .open()
                .unwrap();
            let table = |name| database.keyspace(name, KeyspaceCreateOptions::default).unwrap();
            let tables = NAMES.map(table);
            database.persist(PersistMode::SyncAll).unwrap();
            (database, tables)
        };
        // When it is opened again, the database cuts off the 64 MiB of zeros at the journal's end.
        drop(open());
        let (database, tables) = open();
        if !records.join("contents").exists() {
            synced::write(&records, 0).unwrap();
            list(&records, 0, &[0]);
        }
        Self { records, database, tables, durability }
    }

    fn table(&self, name: &str) -> &Keyspace {
        &self.tables[NAMES.iter().position(|known| *known == name).unwrap()]
    }

    /// Writes these records as one group, and notes it as synced. Returns the journal then.
    pub(in super::super) fn write(&self, operations: &[Operation]) -> Vec<u8> {
        let changes = u32::try_from(operations.len()).unwrap();
        self.group(changes, |rows| {
            let mut claimed = Vec::new();
            for operation in operations {
                let id = operation.subject.id;
                let kept = stuff(codec::encode(operation).unwrap());
                rows.insert(self.table("operations"), id.as_bytes().as_slice(), kept);
                let created = [&operation.created_at.0.to_be_bytes()[..], id.as_bytes()].concat();
                rows.insert(self.table("created"), created.as_slice(), "");
                rows.insert(self.table("keys"), [b"a digest", &created[..]].concat(), "");
                match operation.state {
                    State::InFlight(_) => claimed.extend(id.as_bytes()),
                    State::Uncertain(_) => {
                        rows.insert(self.table("unsettled"), id.as_bytes().as_slice(), "u");
                    }
                    State::Succeeded(_) | State::Failed(_) | State::Forgotten { .. } => {}
                }
                let end = operation.state.changes_at().0.to_be_bytes();
                rows.insert(self.table("due"), end.as_slice(), id.as_bytes().as_slice());
            }
            if !claimed.is_empty() {
                let number = self.database.seqno().to_be_bytes();
                rows.insert(self.table("unsettled"), number.as_slice(), claimed);
            }
        })
    }

    /// Writes the bytes of a record.
    pub(in super::super) fn write_bytes(&self, id: OperationId, kept: &[u8]) {
        let id = id.as_bytes().as_slice();
        self.group(1, |rows| rows.insert(self.table("operations"), id, kept));
    }

    /// Writes a row of `unsettled`.
    pub(in super::super) fn write_unsettled(&self, key: &[u8], value: &[u8]) {
        self.group(0, |rows| rows.insert(self.table("unsettled"), key, value));
    }

    fn group(&self, changes: u32, add: impl FnOnce(&mut OwnedWriteBatch)) -> Vec<u8> {
        let is_synced = self.durability == Durability::Sync;
        let sequence = self.database.seqno();
        let mut label = CLAIMED.0.saturating_add(1000).to_be_bytes().to_vec();
        label.extend(sequence.to_be_bytes());
        label.extend(changes.to_be_bytes());
        label.push(u8::from(is_synced));
        let mode = if is_synced { PersistMode::SyncData } else { PersistMode::Buffer };
        let mut rows = self.database.batch().durability(Some(mode));
        rows.insert(self.table("meta"), LABEL_KEY, label);
        add(&mut rows);
        rows.commit().unwrap();
        if is_synced {
            synced::write(&self.records, sequence).unwrap();
        }
        list(&self.records, 0, &[]);
        content(&self.records.join("0.jnl")).unwrap()
    }
}

/// Lists what the database contains.
pub(super) fn list(records: &Path, newest: u64, empty: &[u64]) {
    let list = format!(
        "{{\"tables\":[0,1,2,3,4,5,6],\"newest_journal\":{newest},\"empty_journals\":{empty:?},\
         \"full_journals\":{{}},\"notes_synced\":true}}"
    );
    fs::write(records.join("contents"), list).unwrap();
}
