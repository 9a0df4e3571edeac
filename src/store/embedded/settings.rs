//! The settings of an embedded store.

use std::path::PathBuf;

/// The place and the durability of an embedded store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// The directory. It is made if it does not exist.
    pub path: PathBuf,
    /// The kind of crash that a record survives, once a call has returned.
    pub durability: Durability,
    /// The treatment of damaged records.
    pub if_damaged: IfDamaged,
}

/// The treatment of damaged records when a store is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IfDamaged {
    /// The store does not open.
    Refuse,
    /// The store opens without the damaged part, and logs what was lost.
    Accept,
}

/// The kind of crash that a record survives, once a call has returned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// A crash of the machine. Each record is synced to disk.
    Sync,
    /// A crash of the process. Each record is handed to the operating system.
    Os,
}
