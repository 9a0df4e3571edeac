//! The secret itself in a header: GitLab's token, Flutterwave's hash, basic auth.

use http::HeaderName;

use super::encoding::Encoding;
use super::header::signature;
use super::keys::Numbered;
use super::settings::Token;
use super::verdict::{Place, Reason, Refused};
use super::{SecretError, Signed};
use crate::secret::Secret;

/// Compares headers with the secrets.
#[derive(Debug)]
pub(super) struct Check {
    settings: Token,
    secrets: Vec<(usize, Secret)>,
}

impl Check {
    pub(super) fn new(settings: &Token, secrets: &[Numbered<'_>]) -> Result<Self, SecretError> {
        let usable = |numbered: &Numbered<'_>| match numbered.secret.reveal() {
            "" => {
                let expected = "a text that is not empty";
                Err(SecretError { index: numbered.index, expected })
            }
            _ => Ok((numbered.index, numbered.secret.clone())),
        };
        let secrets = secrets.iter().map(usable).collect::<Result<_, _>>()?;
        Ok(Self { settings: settings.clone(), secrets })
    }

    /// A token that may stand in several headers has to be right in one of them: who sends it there
    /// knows it.
    pub(super) fn verify(&self, signed: &Signed<'_>) -> Result<usize, Refused> {
        let mut refused = None;
        for header in &self.settings.headers {
            match self.verify_in(header, signed) {
                Ok(secret) => return Ok(secret),
                Err(Refused::Missing(_)) => {}
                Err(error) => refused = refused.or(Some(error)),
            }
        }
        Err(refused.unwrap_or_else(|| Refused::Missing(self.settings.place())))
    }

    fn verify_in(&self, header: &HeaderName, signed: &Signed<'_>) -> Result<usize, Refused> {
        let Token { prefix, encoding, .. } = &self.settings;
        let place = || Place::Header(header.clone());
        let value = signature(signed.headers, header)?;
        let written = value.strip_prefix(prefix.as_bytes());
        let written = written.ok_or_else(|| Reason::Prefix(place(), prefix.clone()))?;
        let token = match encoding {
            None => written.to_vec(),
            Some(encoding) => Encoding::decode(*encoding, written)
                .ok_or_else(|| Reason::Undecodable(place(), *encoding))?,
        };
        let mut found = None;
        for (index, secret) in &self.secrets {
            if secret.is(&token) && found.is_none() {
                found = Some(*index);
            }
        }
        Ok(found.ok_or_else(|| Reason::Mismatch(place()))?)
    }
}
