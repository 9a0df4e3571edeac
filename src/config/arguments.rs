//! Arguments of the command line as a layer, where there is no file.

use std::path::Path;

use figment::value::{Dict, Tag, Value};

use super::layer::Layer;
use super::problem::{Key, Place};

/// What the command line says of its one route.
#[derive(Debug, Clone, Copy)]
pub struct Arguments<'a> {
    /// Where everything is forwarded to.
    pub upstream: &'a str,
    /// What is forwarded.
    pub path: &'a str,
    /// Who sends.
    pub provider: Option<&'a str>,
    /// What the sender's signature is checked with.
    pub secret: Option<SecretIn<'a>>,
}

/// Where the command line says that a secret is.
#[derive(Debug, Clone, Copy)]
pub enum SecretIn<'a> {
    /// A file of `--secret-file`.
    File(&'a Path),
    /// A variable that `--provider` stands for.
    Variable(&'a str),
}

impl Arguments<'_> {
    pub(super) fn layer(&self) -> Layer {
        let mut layer = Layer::empty("arguments", Place::BuiltIn);
        let mut set = |name, option, value| {
            layer.set(&Key::of(&["routes", "default", name]), value, &Place::Argument(option));
        };
        set("path", "--path", text(self.path));
        set("upstream", "--upstream", text(self.upstream));
        if let Some(provider) = self.provider {
            set("provider", "--provider", text(provider));
        }
        match self.secret {
            None => {}
            Some(SecretIn::File(path)) => {
                set("secrets", "--secret-file", secret("file", &path.to_string_lossy()));
            }
            Some(SecretIn::Variable(name)) => set("secrets", "--provider", secret("env", name)),
        }
        layer
    }
}

fn text(text: &str) -> Value {
    Value::String(Tag::Default, text.to_owned())
}

fn secret(place: &str, name: &str) -> Value {
    let table = Value::Dict(Tag::Default, Dict::from([(place.to_owned(), text(name))]));
    Value::Array(Tag::Default, vec![table])
}
