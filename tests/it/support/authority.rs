//! Certificates for servers and clients of a test.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig, SupportedProtocolVersion};
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
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

/// Whether a server asks its clients for a certificate of the same authority.
#[derive(Debug, Clone, Copy)]
pub enum ClientCertificate {
    NotAsked,
    /// It is asked for, and a client need not have one.
    Asked,
    /// A client must have one, in this version of TLS.
    Required(&'static SupportedProtocolVersion),
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

    /// Where all its files are.
    pub fn directory(&self) -> &Path {
        self.files.path()
    }

    /// How a server of this name speaks TLS.
    pub fn server(&self, name: &str, client: ClientCertificate) -> ServerConfig {
        let signed = self.signs(name);
        let chain = vec![CertificateDer::from_pem_file(signed.certificate).unwrap()];
        let key = PrivateKeyDer::from_pem_file(signed.key).unwrap();
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_file(self.file()).unwrap()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let verifier =
            WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider));
        let config = ServerConfig::builder_with_provider(provider);
        let config = match client {
            ClientCertificate::NotAsked => {
                config.with_safe_default_protocol_versions().unwrap().with_no_client_auth()
            }
            ClientCertificate::Asked => config
                .with_safe_default_protocol_versions()
                .unwrap()
                .with_client_cert_verifier(verifier.allow_unauthenticated().build().unwrap()),
            ClientCertificate::Required(version) => config
                .with_protocol_versions(&[version])
                .unwrap()
                .with_client_cert_verifier(verifier.build().unwrap()),
        };
        config.with_single_cert(chain, key).unwrap()
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
