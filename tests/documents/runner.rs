//! `tests/run` does what it says.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A round of the tests is named where it fails, and nothing is run after it.
#[test]
fn the_runner_of_the_tests_stops_at_the_first_round_that_fails_and_names_it() {
    let runner = Runner::that_fails_in_round(2);
    let ended = runner.runs(&["--repeat", "3"]);
    assert_eq!(ended.status.code(), Some(1));
    let told = String::from_utf8(ended.stdout).unwrap();
    let last = told.trim_end().lines().last().unwrap();
    assert!(last.starts_with("failed: test-2-of-3 (after "), "{told}");
    assert!(last.ends_with("passed: install format lint test-1-of-3"), "{told}");
    let called = runner.called();
    assert_eq!(called[called.len() - 3..], ["cargo clippy", "cargo test", "cargo test"]);
}

#[test]
fn the_runner_of_the_tests_repeats_the_tests_alone() {
    let runner = Runner::that_fails_in_round(4);
    assert!(runner.runs(&["--repeat", "3"]).status.success());
    let mut repeated = runner.called();
    let once = Runner::that_fails_in_round(2);
    assert!(once.runs(&[]).status.success());
    let first = repeated.iter().position(|call| call == "cargo test").unwrap();
    assert_eq!(repeated.drain(first..first + 2).as_slice(), ["cargo test", "cargo test"]);
    assert_eq!(repeated, once.called());
}

#[test]
fn the_runner_of_the_tests_says_what_it_takes_and_refuses_the_rest() {
    let runner = Runner::that_fails_in_round(1);
    let help = runner.runs(&["--help"]);
    assert!(help.status.success());
    assert!(String::from_utf8(help.stdout).unwrap().contains("--repeat N"));
    for wrong in [&["--repeat"][..], &["--repeat", "0"], &["--repeat", "1.5"], &["--again"]] {
        let ended = runner.runs(wrong);
        assert_eq!(ended.status.code(), Some(2), "{wrong:?}");
        let told = String::from_utf8(ended.stderr).unwrap();
        assert!(told.starts_with("error: ") && told.contains(wrong[0]), "{told}");
    }
    assert!(runner.called().is_empty(), "nothing was run");
}

/// `tests/run`, where the programs that it calls only note that they were called. So a test
/// installs nothing and builds nothing.
struct Runner(tempfile::TempDir);

impl Runner {
    fn that_fails_in_round(round: usize) -> Self {
        let runner = Self(tempfile::tempdir().unwrap());
        let calls = runner.calls();
        let calls = calls.display();
        runner.has("bash", &format!("echo \"bash $1\" >>'{calls}'"));
        let fails = format!("[ \"$(grep -c 'cargo test' '{calls}')\" -eq {round} ]");
        runner.has(
            "cargo",
            &format!("echo \"cargo $1\" >>'{calls}'; ! {{ [ \"$1\" = test ] && {fails}; }}"),
        );
        for part in ["cargo-clippy", "cargo-fmt", "cargo-deny"] {
            runner.has(part, "exit 1");
        }
        runner
    }

    fn calls(&self) -> PathBuf {
        self.0.path().join("calls")
    }

    fn has(&self, name: &str, does: &str) {
        let file = self.0.path().join(name);
        std::fs::write(&file, format!("#!/bin/sh\n{does}\n")).unwrap();
        std::fs::set_permissions(&file, Permissions::from_mode(0o755)).unwrap();
    }

    fn runs(&self, arguments: &[&str]) -> Output {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/run");
        let path = std::env::var("PATH").unwrap();
        let mut bash = Command::new("/bin/bash");
        bash.arg(script).args(arguments);
        bash.env("PATH", format!("{}:{path}", self.0.path().display())).output().unwrap()
    }

    /// The programs that were called, in order, each with its first argument.
    fn called(&self) -> Vec<String> {
        let calls = std::fs::read_to_string(self.calls()).unwrap_or_default();
        calls.lines().map(str::to_owned).collect()
    }
}
