//! The choice of a store.

use super::{embedded, postgres, redis, shared};

/// A kind of store, with its settings.
#[derive(Debug, Clone)]
pub enum Settings {
    /// A store on disk, for one machine.
    Embedded(embedded::Settings),
    /// A store on a Redis or Valkey server, for several machines.
    Redis(redis::Settings),
    /// A store in a PostgreSQL database, for several machines.
    Postgres(postgres::Settings),
    /// A store in the memory of the process, for tests and trials.
    Memory,
}

impl Settings {
    /// The codes of all concerns that a store of this kind can report.
    pub fn concern_codes(&self) -> Vec<&'static str> {
        match self {
            Self::Embedded(_) | Self::Memory => Vec::new(),
            Self::Redis(_) => redis::concern_codes().chain([shared::EPOCH_CHANGED]).collect(),
            Self::Postgres(_) => postgres::concern_codes().chain([shared::EPOCH_CHANGED]).collect(),
        }
    }
}
