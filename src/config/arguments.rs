//! Arguments of the command line as a layer, where there is no file.

use std::path::Path;

use figment::value::{Dict, Tag, Value};

use super::key::Key;
use super::layer::Layer;
use super::origin::Origin;

/// The one route that the command line describes.
#[derive(Debug, Clone, Copy)]
pub struct Arguments<'a> {
    /// The URL of the upstream.
    pub upstream: &'a str,
    /// The path of the route.
    pub path: &'a str,
    /// The provider of the sender.
    pub provider: Option<&'a str>,
    /// The secret that the signature is checked with.
    pub secret: Option<SecretIn<'a>>,
}

/// Where the command line says that the secret is.
#[derive(Debug, Clone, Copy)]
pub enum SecretIn<'a> {
    /// In the file of `--secret-file`.
    File(&'a Path),
    /// In a variable, which `--provider` stands for.
    Variable(&'a str),
}

impl Arguments<'_> {
    pub(super) fn layer(&self) -> Layer {
        let mut layer = Layer::empty("arguments", Origin::BuiltIn);
        let mut set = |name, option, value| {
            layer.set(&Key::of(&["routes", "default", name]), value, &Origin::Argument(option));
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

fn secret(kind: &str, name: &str) -> Value {
    let table = Value::Dict(Tag::Default, Dict::from([(kind.to_owned(), text(name))]));
    Value::Array(Tag::Default, vec![table])
}
