//! Prepares TLS to the database: the trusted certificates, and the certificate of this process.

use rustls::{ClientConfig, RootCertStore};
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::store::{Certificates, SetupError};

/// Returns the connector that makes TLS connections, if the URL asks for them. It always checks the
/// server's certificate and name.
pub(super) fn connector(certificates: &Certificates) -> Result<MakeRustlsConnect, SetupError> {
    let pem = certificates.read()?;
    let roots = pem.ca.as_deref().map_or_else(|| Ok(of_this_machine()), authorities)?;
    let config = ClientConfig::builder().with_root_certificates(roots);
    let config = match &pem.identity {
        None => config.with_no_client_auth(),
        Some((own, key)) => {
            let key = PrivateKeyDer::from_pem_slice(key).map_err(SetupError::connection)?;
            config.with_client_auth_cert(parse(own)?, key).map_err(SetupError::connection)?
        }
    };
    Ok(MakeRustlsConnect::new(config))
}

/// Returns the authorities that this machine trusts. A bare container has none, so there it returns
/// those that web browsers trust.
fn of_this_machine() -> RootCertStore {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if roots.is_empty() {
        roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
    }
    roots
}

fn authorities(pem: &[u8]) -> Result<RootCertStore, SetupError> {
    let mut roots = RootCertStore::empty();
    for certificate in parse(pem)? {
        roots.add(certificate).map_err(SetupError::connection)?;
    }
    Ok(roots)
}

fn parse(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, SetupError> {
    let certificates = CertificateDer::pem_slice_iter(pem).collect::<Result<Vec<_>, _>>();
    let certificates = certificates.map_err(SetupError::connection)?;
    if certificates.is_empty() {
        return Err(SetupError::connection("expected a certificate in PEM, found none"));
    }
    Ok(certificates)
}
