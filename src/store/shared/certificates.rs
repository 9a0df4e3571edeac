//! The certificates of a TLS connection to a store's server.

use std::error::Error;
use std::io;
use std::path::{Path, PathBuf};

/// The files with the certificates of a connection to a server.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Certificates {
    /// The authorities to trust, in PEM. Without this file they are those of this machine.
    pub ca: Option<PathBuf>,
    /// The certificate of this process and its key, both in PEM.
    pub identity: Option<(PathBuf, PathBuf)>,
}

/// The contents of the files.
#[derive(Debug, Clone, Default)]
pub(in crate::store) struct Pem {
    pub(in crate::store) ca: Option<Vec<u8>>,
    pub(in crate::store) identity: Option<(Vec<u8>, Vec<u8>)>,
}

/// Why a connection to a store's server cannot be prepared.
#[derive(Debug, thiserror::Error)]
pub enum SetupError {
    /// The file of a certificate or of a key cannot be read.
    #[error("`{}` cannot be read", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The error of the file system.
        source: io::Error,
    },
    /// No connection can be made with these settings or with the contents of the files.
    #[error("the connection to the store cannot be prepared")]
    Connection(#[source] Box<dyn Error + Send + Sync>),
}

impl SetupError {
    /// No connection can be made, for this reason.
    pub(in crate::store) fn connection(why: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self::Connection(why.into())
    }
}

impl Certificates {
    /// Reads the files.
    pub(in crate::store) fn read(&self) -> Result<Pem, SetupError> {
        let ca = self.ca.as_deref().map(read).transpose()?;
        let identity = self.identity.as_ref();
        let identity = identity.map(|(own, key)| Ok::<_, SetupError>((read(own)?, read(key)?)));
        Ok(Pem { ca, identity: identity.transpose()? })
    }
}

fn read(path: &Path) -> Result<Vec<u8>, SetupError> {
    std::fs::read(path).map_err(|source| SetupError::File { path: path.to_owned(), source })
}
