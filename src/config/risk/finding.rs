//! One finding of `check`, and the route that a rule looks at.

use std::borrow::Cow;

use crate::config::key::Key;
use crate::config::settings::Config;
use crate::idempotency::Remember;
use crate::provider::Provider;
use crate::proxy::{Mode, RouteSettings};
use crate::store;

/// Something about a configuration that `check` tells the operator.
///
/// The text and the hint are for people and may change. The code stays the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// A stable word for the finding, which programs can match.
    pub code: &'static str,
    /// The setting that the finding is about.
    pub key: Key,
    /// What may happen.
    pub text: String,
    /// What would help.
    pub hint: Cow<'static, str>,
}

/// A route with what a rule needs to judge it.
pub(super) struct ExaminedRoute<'a> {
    key: Key,
    pub(super) route: &'a RouteSettings,
    /// The sender, if the route names a provider.
    pub(super) sender: Option<&'a Provider>,
    pub(super) store: &'a store::Settings,
}

impl<'a> ExaminedRoute<'a> {
    pub(super) fn new(config: &'a Config, route: &'a RouteSettings) -> Self {
        Self {
            key: Key::of(&["routes", &route.name]),
            route,
            sender: route.provider.as_deref(),
            store: &config.store,
        }
    }

    /// The key of a setting of the route. Its parts are separated by dots: `key.event`.
    pub(super) fn key(&self, setting: &str) -> Key {
        setting.split('.').fold(self.key.clone(), |key, part| key.join(part))
    }

    /// A finding about a setting of the route.
    pub(super) fn finding(
        &self,
        code: &'static str,
        setting: &str,
        text: impl Into<String>,
        hint: impl Into<Cow<'static, str>>,
    ) -> Finding {
        Finding { code, key: self.key(setting), text: text.into(), hint: hint.into() }
    }

    /// Whether requests of the route are only passed on.
    pub(super) fn is_pass(&self) -> bool {
        self.route.mode == Mode::Pass
    }

    /// Whether a later copy of a succeeded operation is answered from the store.
    pub(super) fn is_remembered(&self) -> bool {
        match self.route.policy.remember {
            Remember::Retention => true,
            Remember::InFlight => false,
        }
    }

    /// Whether the route checks signatures.
    pub(super) fn verifies(&self) -> bool {
        !self.route.secrets.is_empty()
    }
}
