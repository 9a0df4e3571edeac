//! The published requests, explained by the program itself.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::process::{Command, Stdio};

use onceward::provider::presets;
use serde_json::Value;

use super::provider;
use super::samples::{Kind, Sample, folder, samples};

/// The result of a request.
#[derive(Debug)]
struct Explained {
    handled: String,
    signature: String,
    operation: Option<String>,
    refusal: String,
}

impl Sample {
    /// The method and the path of the request.
    fn target(&self) -> (String, String) {
        let request = self.request();
        let line = request.split(|byte| *byte == b'\n').next().unwrap();
        let line = std::str::from_utf8(line).unwrap();
        let mut words = line.split(' ').map(str::to_owned);
        let method = words.next().unwrap();
        let target = words.next().unwrap();
        (method, target.split('?').next().unwrap().to_owned())
    }

    /// A route for it. One that is strict forwards without a key only what the preset describes.
    fn config(&self, strict: bool) -> String {
        let (method, path) = self.target();
        let quoted = |text: &str| Value::from(text).to_string();
        let mut config = "[store.memory]\n".to_owned();
        writeln!(config, "[server]\npublic_url = {}", quoted(&self.public_url)).unwrap();
        writeln!(config, "[routes.sample]\npath = {}", quoted(&path)).unwrap();
        writeln!(config, "upstream = \"http://127.0.0.1:9\"\nprovider = \"{}\"", self.provider)
            .unwrap();
        if strict {
            let methods = quoted(&method);
            writeln!(config, "when_key_missing = \"refuse\"\nmethods = [{methods}]").unwrap();
        } else if !self.methods.is_empty() {
            writeln!(config, "methods = {}", Value::from(self.methods.clone())).unwrap();
        }
        if !self.verify {
            config += "verify = false\n";
        } else if !self.secrets.is_empty() {
            let secrets = (0..self.secrets.len()).map(|n| format!("{{ env = \"SECRET_{n}\" }}"));
            let secrets = secrets.collect::<Vec<_>>().join(", ");
            writeln!(config, "secrets = [{secrets}]").unwrap();
        }
        config
    }

    fn explain(&self, strict: bool) -> Explained {
        let config = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(config.path(), self.config(strict)).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_onceward"));
        command.arg("explain").arg("--json").arg("--at").arg(&self.at);
        command.arg("--config").arg(config.path());
        command.arg("--request").arg(folder().join(&self.file));
        for (url, file) in &self.certificates {
            let file = folder().join(file);
            command.arg("--certificate").arg(format!("{url}={}", file.display()));
        }
        command.env_clear().stdin(Stdio::null());
        for (n, secret) in self.secrets.iter().enumerate() {
            command.env(format!("SECRET_{n}"), secret);
        }
        let output = command.output().unwrap();
        if !output.status.success() {
            let refusal = String::from_utf8_lossy(&output.stderr).into_owned();
            let none = String::new;
            return Explained { handled: none(), signature: none(), operation: None, refusal };
        }
        let told: Value = serde_json::from_slice(&output.stdout).unwrap();
        let text = |pointer: &str| told.pointer(pointer).and_then(Value::as_str).map(str::to_owned);
        let handled = match text("/disposition").unwrap().as_str() {
            "executed" => "keyed".to_owned(),
            other => other.to_owned(),
        };
        Explained {
            handled,
            signature: text("/signature/verdict").unwrap(),
            operation: text("/operation"),
            refusal: text("/refusal/detail").unwrap_or_default(),
        }
    }

    /// A handshake is what is forwarded even where every request must have a key.
    fn explained(&self) -> Explained {
        let told = self.explain(false);
        if told.handled == "passed" && self.explain(true).handled == "passed" {
            return Explained { handled: "handshake".to_owned(), ..told };
        }
        told
    }

    /// The differences from the expected result.
    fn deviations(&self, all: &BTreeMap<&str, Explained>) -> Vec<String> {
        let told = &all[self.file.as_str()];
        let mut wrong = Vec::new();
        if !self.expect.handled.allows(&told.handled) {
            wrong.push(format!("{} {}", told.handled, told.refusal));
        }
        if self.expect.signature.as_ref().is_some_and(|it| !it.allows(&told.signature)) {
            wrong.push(format!("signature {} {}", told.signature, told.refusal));
        }
        if told.handled == "keyed" {
            let of = |file: &String| all[file.as_str()].operation.as_ref();
            let own = told.operation.as_ref();
            let others = self.expect.same_as.iter().filter(|file| of(file) != own);
            wrong.extend(others.map(|file| format!("another operation than {file}")));
            let same = self.expect.different_from.iter().filter(|file| of(file) == own);
            wrong.extend(same.map(|file| format!("the operation of {file}")));
        }
        wrong.into_iter().map(|what| format!("{}: {}", self.file, what.trim_end())).collect()
    }
}

/// The result of each request.
fn explained(samples: &[Sample]) -> BTreeMap<&str, Explained> {
    const AT_A_TIME: usize = 4;
    let mut all = BTreeMap::new();
    for some in samples.chunks(AT_A_TIME) {
        std::thread::scope(|scope| {
            let explain = |sample| scope.spawn(move || Sample::explained(sample));
            let running: Vec<_> = some.iter().map(|it| (it.file.as_str(), explain(it))).collect();
            all.extend(running.into_iter().map(|(file, it)| (file, it.join().unwrap())));
        });
    }
    all
}

#[test]
fn every_published_request_is_taken_for_what_it_is() {
    let samples = samples();
    let all = explained(&samples);
    let wrong: Vec<String> = samples.iter().flat_map(|sample| sample.deviations(&all)).collect();
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), samples.len(), wrong.join("\n"));
}

/// A digest of another route, path or version of the derivation would look the same to every other
/// test, and run each remembered event again.
#[test]
fn the_identity_of_every_preset_is_pinned() {
    let samples = samples();
    let firsts: Vec<&Sample> = samples.iter().filter(|it| it.kind == Kind::First).collect();
    let mut pinned = String::new();
    for preset in presets() {
        let name = preset.name;
        let first = firsts.iter().find(|sample| sample.provider == name);
        let first = first.unwrap_or_else(|| panic!("{name}: no first delivery in expect.json"));
        let operation = first.explain(false).operation;
        let operation = operation.unwrap_or_else(|| panic!("{name}: {} has no key", first.file));
        writeln!(pinned, "{name} {operation}").unwrap();
    }
    let expected = include_str!("vectors.txt");
    let found = lines_missing(expected, &pinned);
    let written = lines_missing(&pinned, expected);
    assert!(
        found.is_empty() && written.is_empty(),
        "an identity changes once, named in the changelog, or never\n\
         vectors.txt lacks:\n{found}vectors.txt has instead:\n{written}"
    );
    assert_eq!(pinned, expected, "vectors.txt is in the order of the presets");
}

/// The lines of `other` that `text` does not have.
fn lines_missing(text: &str, other: &str) -> String {
    let is_missing = |line: &&str| text.lines().all(|known| known != *line);
    other.lines().filter(is_missing).fold(String::new(), |missing, line| missing + line + "\n")
}

/// A sample that is missing proves nothing.
#[test]
fn every_sender_has_a_first_delivery_a_retry_a_sibling_and_its_handshakes() {
    let mut kinds: BTreeMap<String, BTreeSet<Kind>> = BTreeMap::new();
    let samples = samples();
    for sample in &samples {
        kinds.entry(sample.provider.clone()).or_default().insert(sample.kind);
        assert_eq!(sample.kind == Kind::Handshake, sample.expect.handled.allows("handshake"));
    }
    let mut missing = Vec::new();
    for preset in presets() {
        let has = kinds.remove(preset.name).unwrap_or_default();
        let mut wanted = vec![Kind::First, Kind::Sibling];
        let facts = &provider(preset.name).facts;
        if !facts.never_retries() || facts.resend.is_some() {
            wanted.push(Kind::Retry);
        }
        if !provider(preset.name).handshakes.is_empty() {
            wanted.push(Kind::Handshake);
        }
        wanted.retain(|kind| !has.contains(kind));
        if !wanted.is_empty() {
            missing.push(format!("{}: {wanted:?}", preset.name));
        }
    }
    assert!(missing.is_empty(), "{}", missing.join("\n"));
    assert!(kinds.is_empty(), "no preset: {:?}", kinds.keys());
    let named: BTreeSet<&str> = samples.iter().map(|sample| sample.file.as_str()).collect();
    let files = std::fs::read_dir(folder()).unwrap();
    for file in files.map(|entry| entry.unwrap().file_name().into_string().unwrap()) {
        let is_request = std::path::Path::new(&file).extension() == Some("http".as_ref());
        assert!(!is_request || named.contains(file.as_str()), "{file} is not in expect.json");
    }
}
