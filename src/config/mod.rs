//! What the operator wrote: one source of settings over the other, checked as a whole.
//!
//! In order, each over the ones before it:
//!
//! 1. the built-in values, which are those of `config/onceward.toml`;
//! 2. the file;
//! 3. variables such as `ONCEWARD_SERVER__LISTEN`: what begins with `ONCEWARD_` and has `__`
//!    further on;
//! 4. `--upstream` and the like, where there is no file.
//!
//! Then a route takes what it does not say itself from its provider, and then from `[defaults]`,
//! setting by setting. Tables are merged; lists are replaced.
//!
//! `raw` is what was written, [`Config`] what it means: the second cannot be invalid.

mod advice;
mod arguments;
mod captured;
mod check;
mod effective;
mod environment;
mod event_risk;
mod file;
mod hint;
mod inherit;
mod layer;
mod leaf;
mod lookup;
mod lookup_risk;
mod meant;
mod own_address;
mod placed;
mod problem;
mod providers;
mod quantity;
mod raw;
mod raw_provider;
mod read;
mod risk;
mod routes;
mod same_place;
mod secret_shape;
mod secrets;
mod sender;
mod sender_note;
mod sender_risk;
mod signed_risk;
mod source;
mod steps;
mod stores;
mod url;
mod value;
mod word;

pub use arguments::{Arguments, SecretIn};
pub use captured::captured;
pub use effective::Effective;
pub use problem::{Key, Place, Problem, Problems};
pub(crate) use read::nearest;
pub use risk::Risk;
pub use source::Sources;

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use http::Uri;
use ipnet::IpNet;

use crate::admin;
use crate::listener;
use crate::provider;
use crate::proxy;
use crate::store;

/// A configuration that can be run.
#[derive(Debug, Clone)]
pub struct Config {
    /// The data plane as a whole.
    pub server: Server,
    /// The control plane.
    pub admin: admin::Settings,
    /// Where operations live.
    pub store: store::Settings,
    /// At least one, and no two of them for the same host and path.
    pub routes: Vec<proxy::RouteSettings>,
}

/// What all routes share.
#[derive(Debug, Clone)]
pub struct Server {
    /// Where senders connect.
    pub listen: SocketAddr,
    /// How senders see the proxy, if it says so.
    pub public_url: Option<Uri>,
    /// Whose `X-Forwarded-*` is believed.
    pub trusted_proxies: Vec<IpNet>,
    /// How long requests are still taken after the signal to stop.
    pub drain_delay: Duration,
    /// How long attempts in flight may take after that.
    pub shutdown_timeout: Duration,
    /// What the listener allows its peers.
    pub listener: listener::Limits,
    /// What all requests together may use.
    pub limits: proxy::Limits,
}

impl Config {
    /// Reads a file, and the environment over it.
    ///
    /// # Errors
    ///
    /// Every problem at once; of a file that is not TOML the first.
    pub fn from_file(
        path: &Path,
        environment: impl IntoIterator<Item = (String, String)>,
    ) -> Result<Self, Problems> {
        Sources::from_file(path, environment)?.check()
    }

    /// One route named `default` from `path` to `upstream`, and the environment.
    ///
    /// # Errors
    ///
    /// Every problem at once.
    pub fn from_upstream(
        upstream: &str,
        path: &str,
        environment: impl IntoIterator<Item = (String, String)>,
    ) -> Result<Self, Problems> {
        let given = Arguments { upstream, path, provider: None, secret: None };
        Sources::from_arguments(&given, environment)?.check()
    }

    /// A route as a preset makes it, its signature unchecked; none if there is no such preset.
    pub fn of_preset(name: &str) -> Option<Result<proxy::RouteSettings, Problems>> {
        let preset = provider::preset(name)?;
        let given = Arguments {
            upstream: "http://127.0.0.1:3000",
            path: "/*",
            provider: Some(preset.name),
            secret: None,
        };
        let unchecked = ("ONCEWARD_ROUTES__DEFAULT__VERIFY".to_owned(), "false".to_owned());
        let config = Sources::from_arguments(&given, [unchecked]).and_then(|it| it.check());
        config.map(|config| config.routes.into_iter().next()).transpose()
    }

    /// What is allowed, but may not be meant.
    pub fn risks(&self) -> Vec<Risk> {
        risk::of(self)
    }

    /// Secrets that are most likely not the ones that are meant.
    pub fn misshapen_secrets(&self) -> Vec<Risk> {
        secret_shape::risks(self)
    }

    /// What is worth knowing, though nothing has to be done about it.
    pub fn notes(&self) -> Vec<Risk> {
        risk::notes(self)
    }
}

impl Sources {
    /// What the sources mean together.
    ///
    /// # Errors
    ///
    /// Every problem at once.
    pub fn check(&self) -> Result<Config, Problems> {
        check::check(self)
    }

    /// Variables that are left alone, though a setting may have been meant by them.
    pub fn ignored_variables(&self) -> Vec<Risk> {
        let nearly = self.environment.nearly(|key| read::is_setting(self, key));
        let risk = |(variable, meant): (String, String)| Risk {
            code: "variable-ignored",
            key: Key::of(&["environment", &variable]),
            text: "it is not read: a setting has `__` between its parts".to_owned(),
            hint: format!("`{meant}` is read").into(),
        };
        nearly.into_iter().map(risk).collect()
    }

    /// Every setting with its value and its place. Only of sources that have been checked: what
    /// stands under an unknown key may be a secret.
    pub fn effective(&self) -> Vec<Effective> {
        effective::of(self)
    }
}
