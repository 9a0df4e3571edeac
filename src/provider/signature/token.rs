//! The secret itself in a header: the token of GitLab, the hash of Flutterwave, HTTP basic
//! authentication. It proves who sends and protects nothing else: whoever sees one request can make
//! any other.

use http::HeaderName;

use super::encoding::Encoding;
use super::header::signature;
use super::keys::{NumberedSecret, SecretError};
use super::scheme::Token;
use super::verdict::{InvalidReason, Location, SignatureError};
use crate::provider::ReceivedRequest;
use crate::secret::Secret;

/// Compares headers with the secrets.
#[derive(Debug)]
pub(super) struct TokenVerifier {
    settings: Token,
    secrets: Vec<(usize, Secret)>,
}

impl TokenVerifier {
    pub(super) fn new(
        settings: &Token,
        secrets: &[NumberedSecret<'_>],
    ) -> Result<Self, SecretError> {
        let usable = |numbered: &NumberedSecret<'_>| match numbered.secret.reveal() {
            "" => {
                let expected = "a text that is not empty";
                Err(SecretError { index: numbered.index, expected })
            }
            _ => Ok((numbered.index, numbered.secret.clone())),
        };
        let secrets = secrets.iter().map(usable).collect::<Result<_, _>>()?;
        Ok(Self { settings: settings.clone(), secrets })
    }

    /// A token that may stand in several headers has to be right in one of them: whoever writes the
    /// right one knows the secret, so a wrong one beside it does no harm.
    pub(super) fn verify(&self, received: &ReceivedRequest<'_>) -> Result<usize, SignatureError> {
        let mut first = None;
        for header in &self.settings.headers {
            match self.verify_in(header, received) {
                Ok(secret) => return Ok(secret),
                Err(SignatureError::Missing(_)) => {}
                Err(error) => first = first.or(Some(error)),
            }
        }
        Err(first.unwrap_or_else(|| SignatureError::Missing(self.settings.location())))
    }

    fn verify_in(
        &self,
        header: &HeaderName,
        received: &ReceivedRequest<'_>,
    ) -> Result<usize, SignatureError> {
        let Token { prefix, encoding, .. } = &self.settings;
        let location = || Location::Header(header.clone());
        let value = signature(received.headers, header)?;
        let written = value.strip_prefix(prefix.as_bytes());
        let written = written.ok_or_else(|| InvalidReason::Prefix(location(), prefix.clone()))?;
        let token = match encoding {
            None => written.to_vec(),
            Some(encoding) => Encoding::decode(*encoding, written)
                .ok_or_else(|| InvalidReason::Undecodable(location(), *encoding))?,
        };
        // Every secret is compared, so that the time does not tell which one it was.
        let mut found = None;
        for (index, secret) in &self.secrets {
            if secret.is(&token) && found.is_none() {
                found = Some(*index);
            }
        }
        Ok(found.ok_or_else(|| InvalidReason::Mismatch(location()))?)
    }
}
