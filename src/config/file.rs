//! TOML: a file as a layer, a text as a value, and a value as text.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;

use figment::value::{Dict, Num, Tag, Value};
use toml::Spanned;
use toml::de::{DeInteger, DeTable, DeValue};

use super::key::Key;
use super::layer::Layer;
use super::origin::Origin;
use super::problem::{Problem, Problems};

/// A larger file is not a configuration.
const FILE_BYTES_MAX: u64 = 1024 * 1024;

/// Reads a file of at most 1 MiB. It reads no further, since the file may be a device without an
/// end.
pub(super) fn read_small(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    // One byte more tells a file of the greatest size from a larger one.
    File::open(path)?.take(FILE_BYTES_MAX + 1).read_to_string(&mut text)?;
    if text.len() as u64 > FILE_BYTES_MAX {
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, "the file is larger than 1 MiB"));
    }
    Ok(text)
}

/// The file as a layer. If it cannot be read or is not TOML, that is the only problem.
pub(super) fn layer(name: &'static str, path: &Path) -> Result<Layer, Problems> {
    let text = read_small(path).map_err(|error| Problem {
        origin: Origin::File(path.into()),
        key: Key::default(),
        expected: "a configuration that can be read".to_owned(),
        found: format!("an error: {error}"),
        hint: if error.kind() == io::ErrorKind::NotFound {
            "`onceward init --output FILE` writes one to start with"
        } else if error.kind() == io::ErrorKind::PermissionDenied {
            "let the user that Onceward runs as read it"
        } else {
            "it is a file of text, in TOML, of at most 1 MiB"
        }
        .to_owned(),
    })?;
    parse(name, path, &text)
}

/// The text of a file as a layer.
pub(super) fn parse(name: &'static str, path: &Path, text: &str) -> Result<Layer, Problems> {
    let file: Arc<Path> = path.into();
    let document = DeTable::parse(text).map_err(|error| syntax_problem(&file, text, &error))?;
    let mut layer = Layer::empty(name, Origin::File(Arc::clone(&file)));
    let lines = LineEnds::of(text);
    let mut converter = Converter { file, lines, tag: Tag::Default, layer: &mut layer };
    layer.settings = converter.table(&Key::default(), document.get_ref());
    Ok(layer)
}

/// A single TOML value, marked with the layer that `tag` stands for.
pub(super) fn value(text: &str, tag: Tag) -> Option<Value> {
    let parsed = DeValue::parse(text).ok()?;
    let mut nowhere = Layer::empty("", Origin::BuiltIn);
    let file: Arc<Path> = Path::new("").into();
    let mut converter = Converter { file, lines: LineEnds::of(text), tag, layer: &mut nowhere };
    Some(converter.value(&Key::default(), parsed.get_ref()))
}

/// The message of the library names what was expected. Its `Display` would show the line, which may
/// hold a secret.
fn syntax_problem(file: &Arc<Path>, text: &str, error: &toml::de::Error) -> Problem {
    let start = error.span().map_or(0, |span| span.start);
    let before = text.get(..start).unwrap_or_default();
    // People count characters, and the library bytes.
    let column = before.chars().rev().take_while(|c| *c != '\n').count() + 1;
    Problem {
        origin: Origin::Line(Arc::clone(file), LineEnds::of(text).at(start)),
        key: Key::default(),
        expected: "valid TOML".to_owned(),
        found: format!("a mistake at column {column}: {}", error.message()),
        hint:
            "a setting is written `name = \"text\"`, `name = 5` or `name = [\"one\", \"two\"]`, a \
               table `[name]`"
                .to_owned(),
    }
}

/// Where the lines of a text end. With it the line of each of many offsets is found fast.
struct LineEnds(Vec<usize>);

impl LineEnds {
    fn of(text: &str) -> Self {
        let ends = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
        Self(ends.map(|(offset, _)| offset).collect())
    }

    /// The line of an offset, counted from 1.
    fn at(&self, offset: usize) -> usize {
        self.0.partition_point(|end| *end < offset) + 1
    }
}

/// Turns parsed TOML into figment's values, and notes the line of each key.
struct Converter<'a> {
    file: Arc<Path>,
    lines: LineEnds,
    /// Marks each value.
    tag: Tag,
    layer: &'a mut Layer,
}

impl Converter<'_> {
    fn table(&mut self, at: &Key, table: &DeTable<'_>) -> Dict {
        let mut dict = Dict::new();
        for (name, value) in table {
            let key = at.join(name.get_ref().as_ref());
            self.note(&key, name.span().start);
            dict.insert(name.get_ref().to_string(), self.value(&key, value.get_ref()));
        }
        dict
    }

    fn value(&mut self, at: &Key, value: &DeValue<'_>) -> Value {
        let tag = self.tag;
        match value {
            DeValue::String(text) => Value::String(tag, text.to_string()),
            DeValue::Integer(integer) => Value::Num(tag, number(integer)),
            DeValue::Float(float) => {
                Value::Num(tag, Num::F64(float.as_str().parse().unwrap_or(f64::NAN)))
            }
            DeValue::Boolean(boolean) => Value::Bool(tag, *boolean),
            // No setting is a date. As a text it is refused by what the setting expects.
            DeValue::Datetime(datetime) => Value::String(tag, datetime.to_string()),
            // No setting is as deep. A table further up is unknown or of the wrong type, and that
            // is reported. Without this limit, a deep file could overflow the stack.
            DeValue::Array(_) | DeValue::Table(_) if at.parts().len() >= Key::DEPTH_MAX => {
                Value::Dict(tag, Dict::new())
            }
            DeValue::Array(items) => {
                let items = items.iter().enumerate();
                Value::Array(tag, items.map(|(index, item)| self.item(at, index, item)).collect())
            }
            DeValue::Table(table) => Value::Dict(tag, self.table(at, table)),
        }
    }

    fn item(&mut self, at: &Key, index: usize, item: &Spanned<DeValue<'_>>) -> Value {
        let key = at.join(index.to_string());
        self.note(&key, item.span().start);
        self.value(&key, item.get_ref())
    }

    fn note(&mut self, key: &Key, offset: usize) {
        let line = self.lines.at(offset);
        self.layer.origins.insert(key.clone(), Origin::Line(Arc::clone(&self.file), line));
    }
}

/// No setting takes a number beyond 64 bits. As a float it is refused for its type.
fn number(integer: &DeInteger<'_>) -> Num {
    i64::from_str_radix(integer.as_str(), integer.radix()).map_or(Num::F64(f64::INFINITY), Num::I64)
}

/// A value as TOML writes it.
pub(super) fn as_toml(value: &Value) -> String {
    match value {
        Value::String(_, text) => toml::Value::String(text.clone()).to_string(),
        Value::Char(_, c) => toml::Value::String(c.to_string()).to_string(),
        Value::Bool(_, boolean) => boolean.to_string(),
        Value::Num(_, number) => number_as_toml(*number),
        Value::Array(_, items) => {
            let items: Vec<String> = items.iter().map(as_toml).collect();
            format!("[{}]", items.join(", "))
        }
        Value::Dict(_, table) if table.is_empty() => "{}".to_owned(),
        Value::Dict(_, table) => {
            let pairs = table.iter().map(|(name, value)| format!("{name} = {}", as_toml(value)));
            format!("{{ {} }}", pairs.collect::<Vec<_>>().join(", "))
        }
        Value::Empty(..) => String::new(),
    }
}

fn number_as_toml(number: Num) -> String {
    match (number.to_i128(), number.to_f64()) {
        (Some(whole), _) => whole.to_string(),
        (None, Some(number)) => toml::Value::Float(number).to_string(),
        (None, None) => String::new(),
    }
}
