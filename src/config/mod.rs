//! The configuration: what an operator wrote, and what it means.
//!
//! There are four sources. Each one wins over those before it:
//!
//! 1. the built-in values, which are those of `config/onceward.toml`;
//! 2. the file;
//! 3. variables such as `ONCEWARD_SERVER__LISTEN`, which begin with `ONCEWARD_` and have `__`
//!    between the parts of the name;
//! 4. `--upstream` and other options, where there is no file.
//!
//! Tables are merged, lists are replaced. Then a route takes each setting that it does not have
//! from its provider, and otherwise from `[defaults]`; a step takes it from its route.
//!
//! # From text to settings
//!
//! ```text
//! file, environment, arguments -> layer -> sources -> reader and table -> settings -> risk
//!                                          (merged)   (one pass)          (Config)    (findings)
//! ```
//!
//! [`Sources`] are everything that was written, and know the origin of each value. One pass then reads
//! every setting once and collects every problem. Its result, [`Config`], is never invalid. `check`
//! looks at it for what is allowed and still may not be meant: its findings.
//!
//! A setting stands in one file. `server`, `admin`, `stores`, `providers` and `routes` read the
//! tables of these names; `shared_settings` reads what routes and `[defaults]` share, and
//! `receiver` what a route and its steps share. To add a setting, read it there, and give it a
//! built-in value in `config/onceward.toml`.

mod key;
mod origin;
mod problem;
mod shown;

mod arguments;
mod environment;
mod file;
mod inherit;
mod layer;
mod sources;

mod leaf;
mod meant;
mod quantity;
mod url;
mod value;
mod word;

mod hint;
mod reader;
mod table;

mod admin;
mod shared_settings;
mod handshakes;
mod lookup;
mod own_address;
mod providers;
mod receiver;
mod routes;
mod same_place;
mod secrets;
mod sender;
mod server;
mod settings;
mod signature;
mod steps;
mod stores;

mod check;
mod effective;
mod risk;

pub use arguments::{Arguments, SecretIn};
pub use effective::Effective;
pub(crate) use hint::nearest;
pub use key::Key;
pub use origin::Origin;
pub use problem::{Problem, Problems};
pub use risk::{Finding, captured};
pub use settings::{Config, Server};
pub use sources::Sources;

use std::ffi::OsString;
use std::path::Path;

use crate::provider;
use crate::proxy;

impl Config {
    /// Reads a file, and the environment over it, such as [`std::env::vars_os`].
    ///
    /// # Errors
    ///
    /// Every problem at once; only the first one if the file is not TOML, and only those if
    /// variables are not UTF-8.
    pub fn from_file(
        path: &Path,
        environment: impl IntoIterator<Item = (OsString, OsString)>,
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
        environment: impl IntoIterator<Item = (OsString, OsString)>,
    ) -> Result<Self, Problems> {
        let arguments = Arguments { upstream, path, provider: None, secret: None };
        Sources::from_arguments(&arguments, environment)?.check()
    }

    /// A route as a preset makes it, without a check of its signature. There is none if there is no
    /// such preset.
    ///
    /// # Errors
    ///
    /// Every problem of the preset.
    pub fn of_preset(name: &str) -> Option<Result<proxy::RouteSettings, Problems>> {
        let preset = provider::preset(name)?;
        let arguments = Arguments {
            upstream: "http://127.0.0.1:3000",
            path: "/*",
            provider: Some(preset.name),
            secret: None,
        };
        let unchecked = ("ONCEWARD_ROUTES__DEFAULT__VERIFY".into(), "false".into());
        let config = Sources::from_arguments(&arguments, [unchecked]).and_then(|it| it.check());
        config.map(|config| config.routes.into_iter().next()).transpose()
    }

    /// What is allowed, but should have been decided by the operator.
    pub fn risks(&self) -> Vec<Finding> {
        risk::risks(self)
    }

    /// Secrets that are most likely not the ones that the operator meant. They are among the risks.
    pub fn misshapen_secrets(&self) -> Vec<Finding> {
        risk::misshapen(self)
    }

    /// What is worth knowing, though nothing has to be done about it.
    pub fn notes(&self) -> Vec<Finding> {
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

    /// Variables that are not read, though a setting may have been meant by them.
    pub fn ignored_variables(&self) -> Vec<Finding> {
        let nearly = self.environment.nearly(|key| check::is_setting(self, key));
        let finding = |(variable, meant): (String, String)| Finding {
            code: "variable-ignored",
            key: Key::of(&["environment", &variable]),
            text: "it is not read: a setting has `__` between its parts".to_owned(),
            hint: format!("`{meant}` is read").into(),
        };
        nearly.into_iter().map(finding).collect()
    }

    /// Every setting with its value and its origin.
    ///
    /// Only sources that have been checked may be listed: what stands under an unknown name may be
    /// a secret.
    pub fn effective(&self) -> Vec<Effective> {
        effective::of(self)
    }
}
