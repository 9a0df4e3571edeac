//! The files by which a server and this process prove who they are.

use std::io;
use std::path::{Path, PathBuf};

/// Where the certificates of a connection to a server are.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Certificates {
    /// Authorities that are trusted, in PEM; else those of this machine.
    pub ca: Option<PathBuf>,
    /// A certificate for this process, and its key, both in PEM.
    pub identity: Option<(PathBuf, PathBuf)>,
}

/// What stands in the files.
#[derive(Debug, Clone, Default)]
pub(super) struct Pem {
    pub(super) ca: Option<Vec<u8>>,
    pub(super) identity: Option<(Vec<u8>, Vec<u8>)>,
}

/// A connection to a store's server cannot be prepared.
#[derive(Debug, thiserror::Error)]
pub enum SetupError {
    /// A file of a certificate or key cannot be read.
    #[error("`{}` cannot be read", path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// What was read or set does not make a connection.
    #[error("the connection to the store cannot be prepared")]
    Connection(#[source] Box<dyn std::error::Error + Send + Sync>),
}

impl Certificates {
    /// Reads the files.
    pub(super) fn read(&self) -> Result<Pem, SetupError> {
        let ca = self.ca.as_deref().map(read).transpose()?;
        let identity = self.identity.as_ref();
        let identity = identity.map(|(own, key)| Ok::<_, SetupError>((read(own)?, read(key)?)));
        Ok(Pem { ca, identity: identity.transpose()? })
    }
}

fn read(path: &Path) -> Result<Vec<u8>, SetupError> {
    std::fs::read(path).map_err(|source| SetupError::File { path: path.to_owned(), source })
}
