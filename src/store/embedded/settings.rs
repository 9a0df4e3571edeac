//! The settings of an embedded store.

use std::path::PathBuf;

/// Where an embedded store keeps its records, and how durably.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// The directory. It is made if it does not exist.
    pub path: PathBuf,
    /// What a record must have survived before anybody acts on it.
    pub durability: Durability,
    /// What to do about damaged records.
    pub if_damaged: IfDamaged,
}

/// What to do about damaged records when a store is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IfDamaged {
    /// The store does not open.
    Refuse,
    /// It opens without the damaged part, and logs what was lost.
    Accept,
}

/// What a record must have survived before anybody acts on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// A crash of the machine: it is synced to disk.
    Sync,
    /// A crash of the process: it was handed to the operating system.
    Os,
}
