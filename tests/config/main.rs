//! The configuration as an operator meets it: what is written, and the messages about it.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod decided;
mod layers;
mod lookup;
mod origins;
mod paths;
mod problems;
mod reader;
mod risks;
mod secrets;
mod senders;
mod steps;
mod stores;
mod values;

use std::ffi::{OsStr, OsString};

use onceward::config::{Config, Finding, Problems, Sources};
use onceward::proxy::RouteSettings;
use tempfile::TempDir;

/// A configuration file and an environment.
struct Written {
    directory: TempDir,
    variables: Vec<(OsString, OsString)>,
}

impl Written {
    fn file(text: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("onceward.toml"), text).unwrap();
        Self { directory, variables: Vec::new() }
    }

    /// A file with this text and a route without mistakes.
    fn beside_a_route(text: &str) -> Self {
        Self::file(&format!(
            "{text}\n[routes.orders]\npath = \"/orders\"\nupstream = \"http://a\"\n{TYPED}"
        ))
    }

    fn variable(mut self, name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> Self {
        self.variables.push((name.as_ref().to_owned(), value.as_ref().to_owned()));
        self
    }

    fn sources(&self) -> Result<Sources, Problems> {
        let path = self.directory.path().join("onceward.toml");
        Sources::from_file(&path, self.variables.clone())
    }

    fn config(&self) -> Result<Config, Problems> {
        self.sources()?.check()
    }

    /// The problems, with the path of the file as an operator would have typed it. Each problem has
    /// a hint.
    fn problems(&self) -> String {
        let problems = self.config().unwrap_err();
        for problem in problems.iter() {
            assert!(!problem.hint.is_empty(), "no hint: {problem}");
        }
        self.typed(&problems.to_string())
    }

    /// The setting and the code of each risk. The text of a risk may change.
    fn risks(&self) -> String {
        codes(&self.config().unwrap().risks())
    }

    fn notes(&self) -> String {
        codes(&self.config().unwrap().notes())
    }

    fn effective(&self) -> String {
        let lines = self.sources().unwrap().effective().into_iter();
        let lines = lines.map(|line| format!("{} = {}  # {}\n", line.key, line.value, line.origin));
        self.typed(&lines.collect::<Vec<_>>().concat())
    }

    fn typed(&self, text: &str) -> String {
        text.replace(&format!("{}/", self.directory.path().display()), "")
    }

    fn route(&self, name: &str) -> RouteSettings {
        let routes = self.config().unwrap().routes;
        routes.into_iter().find(|route| &*route.name == name).unwrap()
    }
}

fn codes(risks: &[Finding]) -> String {
    risks.iter().map(|risk| format!("{}: {}\n", risk.key, risk.code)).collect::<Vec<_>>().concat()
}

/// A file with one route of this provider.
fn from(provider: &str, more: &str) -> Written {
    Written::file(&format!(
        "[routes.hooks]\npath = \"/hooks\"\nupstream = \"http://a\"\nprovider = \"{provider}\"\n{more}"
    ))
    .variable("SECRET", "whsec_canary")
}

/// The type of an event. Without it, a route of a sender without a preset has a risk.
const TYPED: &str = "key.event.type = \"json:/type\"\n";

/// The secret that a route needs if its sender signs.
const WITH_SECRET: &str = "secrets = [{ env = \"SECRET\" }]\n";
