//! How one sender signs: all of its signing methods, and which of them count.

use std::time::Duration;

use super::carried::Carried;
use super::part::{Part, Selector};
use super::profile::SignedValues;
use super::request::RequestReader;
use super::scheme::{Detached, Scheme};
use crate::provider::ReceivedRequest;
use crate::secret::Secret;

/// How a sender signs. Made by [`super::SignatureTable::settings`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// The strongest first, at least one.
    pub(super) methods: Vec<SigningMethod>,
}

/// One of the ways in which a sender signs: a scheme, and the values that go with its signature.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SigningMethod {
    /// The name by which `accept` lists it.
    pub(super) name: String,
    pub(super) scheme: Scheme,
    /// The values that a key may select as `signature:NAME`, each with where this method has
    /// it. Of several selectors the first counts that finds a value.
    pub(super) carries: Vec<(String, Vec<Selector>)>,
    /// Whether it counts.
    pub(super) accepted: bool,
}

impl SigningMethod {
    /// The values of a request that belong to this method.
    fn carried(&self, received: &ReceivedRequest<'_>) -> Carried {
        // The field that should hold the JSON text is given twice: no value of it can be trusted.
        let Ok(request) = RequestReader::new(received, self.scheme.document()) else {
            return Carried::default();
        };
        let mut carried = Carried::read(&self.carries, &request);
        if let Some(carry) = self.scheme.profile().and_then(|profile| profile.carry) {
            carry(received, &mut carried);
        }
        carried
    }

    /// Whether the signature covers the value of this name.
    fn signs(&self, name: &str) -> bool {
        match self.carries.iter().find(|(own, _)| own == name) {
            Some((_, selectors)) => selectors.iter().all(|it| signs_value(&self.scheme, it)),
            None => self.scheme.own_values().contains(&name),
        }
    }
}

/// Whether a scheme covers the value that a selector finds.
fn signs_value(scheme: &Scheme, selector: &Selector) -> bool {
    match scheme {
        Scheme::Detached(detached) => signs_part_of(detached, selector),
        Scheme::Token(_) => false,
        Scheme::BuiltIn(scheme) => match scheme.profile().signed_values {
            // What a key may select there, the scheme carries by itself.
            SignedValues::None => false,
            SignedValues::OfBody => matches!(selector, Selector::Member(_) | Selector::Field(_)),
            SignedValues::OfFormAndQuery => {
                matches!(selector, Selector::Field(_) | Selector::Query(_))
            }
        },
    }
}

fn signs_part_of(detached: &Detached, selector: &Selector) -> bool {
    let is_in_what_is_signed = match selector {
        Selector::Member(_) | Selector::Field(_) => detached.signs(&Part::Body),
        Selector::Query(_) => detached.signs(&Part::Url) || detached.signs(&Part::Path),
        Selector::Header(_) => false,
    };
    is_in_what_is_signed || detached.signs_if_present(&Part::Value(selector.clone()))
}

impl Settings {
    /// The methods that count.
    pub(super) fn accepted(&self) -> impl Iterator<Item = &SigningMethod> {
        self.methods.iter().filter(|method| method.accepted)
    }

    /// The names of the methods that count, the strongest first.
    pub fn accepts(&self) -> impl Iterator<Item = &str> {
        self.accepted().map(|method| method.name.as_str())
    }

    /// Whether a certificate or a key has to be fetched for a check.
    pub fn needs_certificates(&self) -> bool {
        self.accepted()
            .any(|method| method.scheme.profile().is_some_and(|profile| profile.is_fetched))
    }

    /// How far a timestamp may be from now, if that is checked.
    pub fn tolerance(&self) -> Option<Duration> {
        self.accepted().next().and_then(|method| method.scheme.tolerance())
    }

    /// Whether there is a timestamp to which a tolerance could apply.
    pub fn has_timestamp(&self) -> bool {
        self.accepted().any(|method| method.scheme.has_timestamp())
    }

    /// Whether every method that counts covers the value that is selected as `signature:NAME`.
    pub fn covers(&self, name: &str) -> bool {
        self.accepted().all(|method| method.signs(name))
    }

    /// Whether a selector `signature:NAME` may ask for this name.
    pub fn carries(&self, name: &str) -> bool {
        self.methods.iter().any(|method| {
            method.carries.iter().any(|(own, _)| own == name)
                || method.scheme.own_values().contains(&name)
        })
    }

    /// The values that belong to the signature of a request that is not checked: those of the first
    /// method of which the request has any.
    pub fn carried(&self, received: &ReceivedRequest<'_>) -> Carried {
        let all = self.methods.iter().map(|method| method.carried(received));
        let found: Vec<Carried> = all.filter(|carried| !carried.is_empty()).collect();
        let Some((first, others)) = found.split_first() else {
            return Carried::default();
        };
        let mut carried = first.clone();
        for other in others {
            carried.must_agree_with(other);
        }
        carried
    }

    /// The values that belong to a signature that was checked by this method. A value of the same
    /// name in another method, even one that does not count, has to be the same: the upstream may
    /// read it from there.
    pub(super) fn carried_by(
        &self,
        method: &SigningMethod,
        received: &ReceivedRequest<'_>,
    ) -> Carried {
        let mut carried = method.carried(received);
        for other in self.methods.iter().filter(|other| *other != method) {
            carried.must_agree_with(&other.carried(received));
        }
        carried
    }

    /// What an operator has to give as the secret.
    pub fn secret_is(&self) -> &'static str {
        self.accepted().next().map_or("the signing secret", |method| method.scheme.secret_is())
    }

    /// Whether anybody can sign with this secret, as with that of a sender's public test tool.
    pub fn is_public_secret(&self, secret: &Secret) -> bool {
        let public = self.accepted().filter_map(|method| method.scheme.profile()?.public_secret);
        public.into_iter().any(|public| secret.is(public.as_bytes()))
    }
}
