//! Help, completions and wrong usage, for all commands.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;

use super::{Ended, ROUTE, Shell};

#[test]
fn completions_and_the_man_page_know_every_command() {
    let shell = Shell::new();
    let pages = ["bash", "zsh", "fish", "elvish", "powershell", "man"]
        .map(|target| (target, shell.types(&format!("completions {target}")).printed(0)));
    for (target, page) in &pages {
        for command in COMMANDS {
            assert!(page.contains(command), "{target} does not know `{command}`");
        }
    }
    assert!(pages[0].1.contains("complete -F _onceward"), "{}", pages[0].1);
    assert!(pages[5].1.contains(".TH onceward 1"), "{}", pages[5].1);
}

const COMMANDS: [&str; 9] = [
    "serve",
    "demo",
    "check",
    "explain",
    "operations",
    "store",
    "providers",
    "init",
    "completions",
];

#[test]
fn every_command_has_help_with_an_example() {
    let shell = Shell::new();
    for command in COMMANDS {
        let help = shell.types(&format!("{command} --help")).printed(0);
        let example = help.lines().any(|line| {
            let line = line.trim_start().trim_start_matches("Example: ");
            line.starts_with(&format!("onceward {command}"))
        });
        assert!(example, "{help}");
    }
    let help = shell.types("--help").printed(0);
    assert!(help.contains("once") && !help.contains("exactly once"), "{help}");
    for command in COMMANDS {
        assert!(help.contains(&format!("\n  {command} ")), "{help}");
    }
    let version = format!("onceward {}\n", env!("CARGO_PKG_VERSION"));
    assert_eq!(shell.types("--version").printed(0), version);
}

#[test]
fn wrong_usage_exits_with_2() {
    let shell = Shell::with("onceward.toml", ROUTE);
    for line in [
        "",
        "sreve",
        "serve",
        "serve --config",
        "serve --config onceward.toml --upstream http://127.0.0.1:1",
        "serve --path /x",
        "check",
        "check --config onceward.toml extra",
        "explain --config onceward.toml",
        "completions tcsh",
        "init --outptu x",
        "init --provider strpe",
        "providers strpe",
        "providers stripe adyen",
        "serve --provider stripe",
        "serve --config onceward.toml --provider stripe",
        "serve --upstream http://127.0.0.1:1 --secret-file x",
        "serve --config onceward.toml --log-format xml",
    ] {
        assert!(!shell.types(line).complained(2).is_empty(), "{line}");
    }
    let filter = shell.types("serve --config onceward.toml --log =nonsense=").complained(2);
    assert!(filter.starts_with("error: the log filter"), "{filter}");
}

/// A variable that is set makes nothing required.
#[test]
fn the_usage_does_not_name_what_a_variable_gives() {
    let shell = Shell::new().variable("ONCEWARD_ADMIN_URL", "http://127.0.0.1:1");
    let shell = shell.variable("USER", "ann");
    for command in ["operations show", "operations resolve", "operations forget"] {
        let usage = shell.types(command).complained(2);
        assert!(usage.contains(&format!("Usage: onceward {command}")), "{usage}");
        assert!(!usage.contains("--admin") && !usage.contains("--by"), "{usage}");
    }
    for command in ["operations resolve", "operations forget", "store acknowledge"] {
        let help = shell.types(&format!("{command} --help")).printed(0);
        assert!(help.contains("[default: $USER]"), "{help}");
    }
}

/// Somebody may have put a secret into the wrong variable.
#[test]
fn no_command_shows_what_stands_in_a_variable() {
    const CANARY: &str = "hunter2canary";
    for (variable, line, status) in [
        ("ONCEWARD_LOG", "serve --config onceward.toml", 2),
        ("ONCEWARD_LOG_FORMAT", "serve --config onceward.toml", 2),
        ("ONCEWARD_ADMIN_URL", "operations list", 2),
        ("ONCEWARD_SERVER__LISTEN", "serve --config onceward.toml", 2),
        ("ONCEWARD_LOG", "serve --help", 0),
        ("ONCEWARD_LOG_FORMAT", "serve --help", 0),
        ("ONCEWARD_LOG", "demo --help", 0),
    ] {
        let value = if variable == "ONCEWARD_LOG" { "=hunter2canary=" } else { CANARY };
        let shell = Shell::with("onceward.toml", ROUTE).variable(variable, value);
        let Ended { stdout, stderr, status: ended } = shell.types(line);
        assert_eq!(ended, Some(status), "{variable}: {stdout}{stderr}");
        assert!(!format!("{stdout}{stderr}").contains(CANARY), "{variable}: {stdout}{stderr}");
    }
}

/// It is refused where it is read, and is not taken for one that is not set.
#[test]
fn a_variable_that_is_not_text_is_refused_and_not_shown() {
    let shell = Shell::with("onceward.toml", ROUTE);
    for (variable, line) in [
        ("ONCEWARD_SERVER__LISTEN", "serve --config onceward.toml"),
        ("ONCEWARD_SERVER__LISTEN", "check --config onceward.toml"),
        ("ONCEWARD_SERVER__LISTEN", "explain --config onceward.toml --request onceward.toml"),
        ("ONCEWARD_SERVER__LISTEN", "serve --upstream http://127.0.0.1:1"),
        ("ONCEWARD_LOG", "serve --config onceward.toml"),
        ("ONCEWARD_LOG_FORMAT", "serve --config onceward.toml"),
        ("ONCEWARD_ADMIN_URL", "operations list"),
        ("ONCEWARD_ADMIN_TOKEN", "operations list"),
    ] {
        let value = OsStr::from_bytes(b"hunter2canary\xff");
        let output = shell.command(line).env(variable, value).output().unwrap();
        let said = [output.stdout, output.stderr].concat();
        let said = String::from_utf8_lossy(&said);
        assert_eq!(output.status.code(), Some(2), "{variable}: {said}");
        assert!(!said.contains("hunter2canary"), "{variable}: {said}");
        let is_setting = variable.contains("__");
        assert!(!is_setting || said.contains(&format!("{variable}: `server.listen`")), "{said}");
    }
}
