//! `onceward check`: finds all problems and risks of a configuration, without starting.

use std::ffi::OsString;
use std::path::PathBuf;

use serde_json::{Value, json};

use super::output::Exit;
use crate::app::{self, StartError};
use crate::clock::Clock;
use crate::config::{Effective, Finding, Key, Origin, Problem, Problems, Sources};
use crate::store::{self, Concern, embedded};
use crate::telemetry::chain;

/// Checks a configuration without starting
///
/// Exit status: 0 without problems, 2 with problems, 1 with risks under `--strict`, or if the store
/// cannot be opened because a running process has it.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  onceward check --config onceward.toml
  onceward check --config onceward.toml --strict   in a pipeline, where each risk has been decided")]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
pub(super) struct Args {
    /// The configuration
    #[arg(long, short, value_name = "FILE")]
    config: PathBuf,
    /// Print every setting with its value and where it comes from
    #[arg(long)]
    effective: bool,
    /// Open the store too, and claim and settle a throw-away operation in it
    #[arg(long)]
    probe: bool,
    /// Fail on risks too
    #[arg(long)]
    strict: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// The text that is printed, and the exit status.
#[derive(Debug, PartialEq, Eq)]
struct Report {
    text: String,
    status: u8,
}

/// A risk or a note, and the place in the configuration that it is about.
#[derive(Debug)]
struct Located {
    origin: Origin,
    finding: Finding,
}

/// Gives each risk its place.
fn located(sources: &Sources, findings: Vec<Finding>) -> Vec<Located> {
    let located = sources.located(findings).into_iter();
    located.map(|(origin, finding)| Located { origin, finding }).collect()
}

/// Everything that is found in a configuration without problems.
#[derive(Debug, Default)]
struct Findings {
    risks: Vec<Located>,
    /// Findings that nothing has to be done about.
    notes: Vec<Located>,
    effective: Vec<Effective>,
    /// Why the store was not probed although it was asked for.
    not_probed: Option<String>,
}

/// Why a probe found out nothing about the store.
#[derive(Debug)]
enum NotProbed {
    /// A running process has it open. That is no fault of the configuration.
    InUse(String),
    /// It cannot be opened, or it does not claim or settle.
    Failed(String),
}

/// What helps if a running process has the store open.
const IN_USE_HINT: &str = "a running `onceward serve` is the usual one, and its `/readyz` tells how the store is; \
     to probe it from here, stop that process first";

pub(super) fn run(args: &Args) -> Exit {
    // Problems go to stdout: they are the result of this command, and a script reads them as JSON
    // there.
    let Report { text, status } = report(args, std::env::vars_os());
    Exit { status, ..Exit::done(text) }
}

/// Checks the configuration that `args` name, with these environment variables.
fn report(args: &Args, environment: impl IntoIterator<Item = (OsString, OsString)>) -> Report {
    match examine(args, environment) {
        Ok(findings) => {
            // A probe that was asked for and not made must not pass for one that found nothing.
            let fails = args.strict && !findings.risks.is_empty() || findings.not_probed.is_some();
            let status = u8::from(fails);
            let text = if args.json {
                as_json(&Problems::default(), &findings, args.effective)
            } else {
                as_text(args, &findings)
            };
            Report { text, status }
        }
        Err(problems) => {
            let text = if args.json {
                as_json(&problems, &Findings::default(), false)
            } else {
                format!("{problems}\n")
            };
            Report { text, status: 2 }
        }
    }
}

fn examine(
    args: &Args,
    environment: impl IntoIterator<Item = (OsString, OsString)>,
) -> Result<Findings, Problems> {
    let sources = Sources::from_file(&args.config, environment)?;
    let config = sources.check()?;
    let notes = config.notes();
    // A variable that is nearly a setting is a risk: the setting still has another value.
    let mut risks = sources.ignored_variables();
    risks.extend(config.risks());
    let mut not_probed = None;
    if args.probe {
        let key = Key::of(&["store"]);
        let is_embedded = matches!(config.store, store::Settings::Embedded(_));
        match probe(config.store) {
            Ok(concerns) => {
                risks.extend(concerns.into_iter().map(|Concern { code, text, hint }| Finding {
                    code,
                    key: key.clone(),
                    text,
                    hint: hint.into(),
                }));
            }
            Err(NotProbed::InUse(why)) => not_probed = Some(why),
            Err(NotProbed::Failed(found)) => {
                let place = sources.origin(&key);
                let expected = "a store that opens, claims and settles".to_owned();
                let hint = if is_embedded {
                    "the user that runs Onceward must be able to make this directory, and to write to it"
                } else {
                    "is the server up, and does it take this user and these certificates? its log \
                     says more"
                };
                let hint = hint.to_owned();
                return Err(Problem { origin: place, key, expected, found, hint }.into());
            }
        }
    }
    Ok(Findings {
        risks: located(&sources, risks),
        notes: located(&sources, notes),
        effective: if args.effective { sources.effective() } else { Vec::new() },
        not_probed,
    })
}

/// Opens the store, claims and settles a throw-away operation in it, and gives the concerns about
/// it.
fn probe(settings: store::Settings) -> Result<Vec<Concern>, NotProbed> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| NotProbed::Failed(error.to_string()))?;
    runtime.block_on(async {
        let opened = app::open_store(settings, Clock::system()).await;
        let store = opened.map_err(|error| {
            // Checking the configuration of a running process is normal, and its store is then
            // locked.
            if let StartError::Store(in_use @ embedded::OpenError::InUse { .. }) = &error {
                return NotProbed::InUse(in_use.to_string());
            }
            NotProbed::Failed(chain(&error))
        })?;
        let probed = async {
            store.probe().await?;
            store.concerns().await
        };
        let probed = probed.await.map_err(|error| NotProbed::Failed(chain(&error)));
        // An embedded store is locked until it is closed, and `serve` may start right after this.
        store.close().await;
        probed
    })
}

/// Writes the findings for people.
fn as_text(args: &Args, findings: &Findings) -> String {
    let Findings { risks, notes, effective, not_probed } = findings;
    let settings: Vec<String> = effective
        .iter()
        .map(|Effective { key, value, origin }| format!("{key} = {value}  # {origin}\n"))
        .collect();
    let settings = settings.concat();
    let blank = if args.effective { "\n" } else { "" };
    let count = match risks.len() {
        0 => "no risks".to_owned(),
        1 => "1 risk".to_owned(),
        count => format!("{count} risks"),
    };
    let noted = match notes.len() {
        0 => String::new(),
        1 => ", 1 note".to_owned(),
        count => format!(", {count} notes"),
    };
    let file = args.config.display();
    let found: Vec<String> = [("", risks), ("note: ", notes)]
        .into_iter()
        .flat_map(|(kind, found)| found.iter().map(move |found| (kind, found)))
        .map(|(kind, Located { origin, finding: Finding { key, text, hint, .. } })| {
            format!("  {origin}: {kind}`{key}`: {text}\n    hint: {hint}\n")
        })
        .collect();
    let not_probed = not_probed.as_ref().map_or_else(String::new, |why| {
        format!("  the store was not probed: {why}\n    hint: {IN_USE_HINT}\n")
    });
    let found = found.concat();
    format!("{settings}{blank}{file}: no problems, {count}{noted}\n{found}{not_probed}")
}

/// Writes problems and findings for programs.
fn as_json(problems: &Problems, findings: &Findings, effective: bool) -> String {
    let mut report = json!({
        "problems": problems.iter().map(problem).collect::<Vec<_>>(),
        "risks": findings.risks.iter().map(finding).collect::<Vec<_>>(),
        "notes": findings.notes.iter().map(finding).collect::<Vec<_>>(),
    });
    if let Value::Object(report) = &mut report {
        if effective {
            let settings = findings.effective.iter().map(setting).collect();
            report.insert("effective".to_owned(), Value::Array(settings));
        }
        if let Some(why) = &findings.not_probed {
            report.insert("not_probed".to_owned(), json!({ "reason": why, "hint": IN_USE_HINT }));
        }
    }
    format!("{report:#}\n")
}

fn problem(problem: &Problem) -> Value {
    json!({
        "place": place(&problem.origin),
        "key": problem.key.to_string(),
        "expected": problem.expected,
        "found": problem.found,
        "hint": problem.hint,
    })
}

fn finding(Located { origin, finding }: &Located) -> Value {
    json!({
        "code": finding.code,
        "place": place(origin),
        "key": finding.key.to_string(),
        "risk": finding.text,
        "hint": finding.hint,
    })
}

fn setting(setting: &Effective) -> Value {
    json!({
        "place": place(&setting.origin),
        "key": setting.key.to_string(),
        "value": setting.value,
    })
}

fn place(place: &Origin) -> Value {
    match place {
        Origin::Argument(name) => json!({ "argument": name }),
        Origin::File(file) => json!({ "file": file.display().to_string() }),
        Origin::Line(file, line) => json!({ "file": file.display().to_string(), "line": line }),
        Origin::Variable(name) => json!({ "variable": name }),
        Origin::Preset(name) => json!({ "preset": name }),
        Origin::BuiltIn => Value::Null,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROUTE: &str = "[routes.a]\npath = \"/\"\nupstream = \"http://a\"\nmode = \"pass\"\n";

    fn check(file: &str, args: impl FnOnce(&mut Args)) -> Report {
        let directory = tempfile::tempdir().unwrap();
        let config = directory.path().join("onceward.toml");
        std::fs::write(&config, file).unwrap();
        let mut asked = Args { config, effective: false, strict: false, json: false, probe: false };
        args(&mut asked);
        let mut report = report(&asked, []);
        report.text = report.text.replace(&format!("{}/", directory.path().display()), "");
        report
    }

    #[test]
    fn the_status_is_that_of_the_worst_that_was_found() {
        let risky = format!("[store.memory]\n{ROUTE}");
        assert_eq!(check(ROUTE, |args| args.strict = true).status, 0);
        assert_eq!(check(&risky, |_| ()).status, 0);
        assert_eq!(check(&risky, |args| args.strict = true).status, 1);
        for text in ["", "[routes"] {
            assert_eq!(check(text, |_| ()).status, 2);
            assert_eq!(check(text, |args| args.json = true).status, 2);
        }
    }

    #[test]
    fn a_risk_names_its_place() {
        insta::assert_snapshot!(check(&format!("[store.memory]\n{ROUTE}"), |_| ()).text, @"
        onceward.toml: no problems, 1 risk
          onceward.toml:1: `store.memory`: every operation is forgotten at exit, so that a later copy runs again
            hint: `[store.embedded]` remembers
        ");
    }

    #[test]
    fn every_value_is_printed_with_its_source() {
        let text = check(ROUTE, |args| args.effective = true).text;
        assert!(text.contains("routes.a.lease = \"15s\"  # built-in\n"), "{text}");
        assert!(text.contains("routes.a.path = \"/\"  # onceward.toml:2\n"), "{text}");
        assert!(text.ends_with("\n\nonceward.toml: no problems, no risks\n"), "{text}");
    }

    #[test]
    fn json_holds_problems_risks_and_values() {
        let text = check(ROUTE, |args| (args.json, args.effective) = (true, true)).text;
        let report: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(report["problems"], json!([]));
        let setting = json!({
            "key": "routes.a.path",
            "value": "\"/\"",
            "place": { "file": "onceward.toml", "line": 2 },
        });
        assert!(report["effective"].as_array().unwrap().contains(&setting), "{text}");

        let report: Value =
            serde_json::from_str(&check("x = 1", |args| args.json = true).text).unwrap();
        assert_eq!(report["problems"][0]["key"], "routes");
        assert_eq!(report["problems"][1]["place"]["line"], 1);
    }
}
