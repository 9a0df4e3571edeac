//! The secret itself in a header: GitLab's token, Flutterwave's hash, basic auth.

use super::encoding::Encoding;
use super::header::signature;
use super::keys::Numbered;
use super::settings::Token;
use super::verdict::{Place, Reason, Refused, Verified};
use super::{SecretError, Signed};
use crate::secret::Secret;

/// Compares a header with the secrets.
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

    pub(super) fn verify(&self, signed: &Signed<'_>) -> Result<Verified, Refused> {
        let Token { header, prefix, encoding } = &self.settings;
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
                found = Some(Verified { secret: *index });
            }
        }
        Ok(found.ok_or_else(|| Reason::Mismatch(place()))?)
    }
}
