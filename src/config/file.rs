//! TOML: a file as a layer, and a single value.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;

use figment::value::{Dict, Num, Tag, Value};
use toml::Spanned;
use toml::de::{DeInteger, DeTable, DeValue};

use super::layer::Layer;
use super::problem::{Key, Place, Problem, Problems};

/// Larger is not a configuration.
const FILE_BYTES_MAX: u64 = 1024 * 1024;

/// Reads a small file; it is never read on without end, whatever it is.
pub(super) fn read_small(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    File::open(path)?.take(FILE_BYTES_MAX + 1).read_to_string(&mut text)?;
    if text.len() as u64 > FILE_BYTES_MAX {
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, "the file is larger than 1 MiB"));
    }
    Ok(text)
}

/// The file as a layer; if it cannot be read or is not TOML, that is the only problem.
pub(super) fn layer(name: &'static str, path: &Path) -> Result<Layer, Problems> {
    let text = read_small(path).map_err(|error| Problem {
        place: Place::File(path.into()),
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
    let mut layer = Layer::empty(name, Place::File(Arc::clone(&file)));
    let lines = Lines::of(text);
    layer.settings =
        Reader { file, lines, layer: &mut layer }.table(&Key::default(), document.get_ref());
    Ok(layer)
}

/// A single TOML value, marked as coming from where `tag` came from.
pub(super) fn value(text: &str, tag: Tag) -> Option<Value> {
    let parsed = DeValue::parse(text).ok()?;
    let mut nowhere = Layer::empty("", Place::BuiltIn);
    let file: Arc<Path> = Path::new("").into();
    let mut reader = Reader { file, lines: Lines::of(text), layer: &mut nowhere };
    Some(marked(reader.value(&Key::default(), parsed.get_ref()), tag))
}

fn marked(value: Value, tag: Tag) -> Value {
    match value {
        Value::String(_, text) => Value::String(tag, text),
        Value::Char(_, c) => Value::Char(tag, c),
        Value::Bool(_, bool) => Value::Bool(tag, bool),
        Value::Num(_, number) => Value::Num(tag, number),
        Value::Empty(_, empty) => Value::Empty(tag, empty),
        Value::Dict(_, dict) => Value::Dict(
            tag,
            dict.into_iter().map(|(key, value)| (key, marked(value, tag))).collect(),
        ),
        Value::Array(_, items) => {
            Value::Array(tag, items.into_iter().map(|item| marked(item, tag)).collect())
        }
    }
}

/// The library's message names what it expected; its `Display` would show the line.
fn syntax_problem(file: &Arc<Path>, text: &str, error: &toml::de::Error) -> Problem {
    let start = error.span().map_or(0, |span| span.start);
    let before = text.get(..start).unwrap_or_default();
    let column = before.chars().rev().take_while(|c| *c != '\n').count() + 1;
    Problem {
        place: Place::Line(Arc::clone(file), Lines::of(text).at(start)),
        key: Key::default(),
        expected: "valid TOML".to_owned(),
        found: format!("a mistake at column {column}: {}", error.message()),
        hint:
            "a setting is written `name = \"text\"`, `name = 5` or `name = [\"one\", \"two\"]`, a \
               table `[name]`"
                .to_owned(),
    }
}

/// Where the lines of a text end, so that no place in it is found by reading it from its start.
struct Lines(Vec<usize>);

impl Lines {
    fn of(text: &str) -> Self {
        let ends = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
        Self(ends.map(|(offset, _)| offset).collect())
    }

    /// The line of this place, counted from 1.
    fn at(&self, offset: usize) -> usize {
        self.0.partition_point(|end| *end < offset) + 1
    }
}

/// Turns parsed TOML into figment's values, and notes the line of each key.
struct Reader<'a> {
    file: Arc<Path>,
    lines: Lines,
    layer: &'a mut Layer,
}

impl Reader<'_> {
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
        let tag = Tag::Default;
        match value {
            DeValue::String(text) => Value::String(tag, text.to_string()),
            DeValue::Integer(integer) => Value::Num(tag, number(integer)),
            DeValue::Float(float) => {
                Value::Num(tag, Num::F64(float.as_str().parse().unwrap_or(f64::NAN)))
            }
            DeValue::Boolean(boolean) => Value::Bool(tag, *boolean),
            DeValue::Datetime(datetime) => Value::String(tag, datetime.to_string()),
            // Whoever writes on and on is told of an unknown key or a wrong type further up.
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
        self.layer.places.insert(key.clone(), Place::Line(Arc::clone(&self.file), line));
    }
}

/// No setting takes a number that fits neither; as a float it is refused as what it is.
fn number(integer: &DeInteger<'_>) -> Num {
    i64::from_str_radix(integer.as_str(), integer.radix()).map_or(Num::F64(f64::INFINITY), Num::I64)
}
