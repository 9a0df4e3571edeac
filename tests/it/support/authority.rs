//! Certificates for servers and clients of a test.

use std::path::PathBuf;

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use tempfile::TempDir;

/// An authority, and what it has signed, as files.
#[derive(Debug)]
pub struct Authority {
    issuer: Issuer<'static, KeyPair>,
    files: TempDir,
}

/// A certificate and its key.
#[derive(Debug, Clone)]
pub struct Signed {
    pub certificate: PathBuf,
    pub key: PathBuf,
}

impl Authority {
    pub fn new() -> Self {
        let mut parameters = CertificateParams::new(Vec::new()).unwrap();
        parameters.distinguished_name.push(DnType::CommonName, "an authority");
        parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let files = TempDir::new().unwrap();
        let own = parameters.self_signed(&key).unwrap();
        std::fs::write(files.path().join("ca.pem"), own.pem()).unwrap();
        Self { issuer: Issuer::new(parameters, key), files }
    }

    /// Its own certificate.
    pub fn file(&self) -> PathBuf {
        self.files.path().join("ca.pem")
    }

    /// Signs for a name.
    pub fn signs(&self, name: &str) -> Signed {
        let key = KeyPair::generate().unwrap();
        let mut parameters = CertificateParams::new(vec![name.to_owned()]).unwrap();
        parameters.distinguished_name.push(DnType::CommonName, name);
        let signed = parameters.signed_by(&key, &self.issuer).unwrap();
        let file = |kind: &str| self.files.path().join(format!("{name}.{kind}.pem"));
        let files = Signed { certificate: file("certificate"), key: file("key") };
        std::fs::write(&files.certificate, signed.pem()).unwrap();
        std::fs::write(&files.key, key.serialize_pem()).unwrap();
        files
    }
}
