//! `onceward serve`: how it starts, and how it ends.

use std::io::{BufRead as _, BufReader};
use std::net::TcpListener;
use std::process::{Command, Stdio};

use insta::assert_snapshot;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use super::{ROUTE, Shell, ask, get, receiver};

#[test]
fn serve_with_a_wrong_configuration_says_where_and_starts_nothing() {
    let text = format!("[server]\nlisten = 8080\n{ROUTE}leese = \"1s\"\n");
    let shell = Shell::with("bad.toml", &text);
    assert_snapshot!(shell.types("serve --config bad.toml").complained(2), @r#"
    error: the configuration has 2 problems
      bad.toml:2: `server.listen`: expected an address and port such as `127.0.0.1:8080` or `[::1]:8080`, found the number 8080
        hint: left out, `listen` is `"127.0.0.1:8080"`
      bad.toml:6: `routes.orders.leese`: expected a known key, found `leese`
        hint: did you mean `lease`?
    "#);
    assert_snapshot!(shell.types("serve --upstream ftp://127.0.0.1").complained(2), @r#"
    error: the configuration has 1 problem
      --upstream: `routes.default.upstream`: expected an `http` or `https` URL such as `http://127.0.0.1:3000`, without user, query or fragment, found `ftp://127.0.0.1`
        hint: `upstream = "http://127.0.0.1:3000"`
    "#);
    let files = std::fs::read_dir(shell.path()).unwrap().count();
    assert_eq!(files, 1, "nothing but the configuration");
}

#[test]
fn serve_runs_without_a_file() {
    let shell = Shell::new().anywhere();
    let upstream = receiver();
    let serving = shell.serves(&format!("serve --upstream http://{upstream}"));
    let event = "POST /anything HTTP/1.1\r\nHost: h\r\nContent-Length: 10\r\n\r\n{\"id\":\"e\"}";
    let dispositions: Vec<_> =
        (0..2).map(|_| ask(serving.listen(), event, "onceward-disposition")).collect();
    assert_eq!(dispositions, [(200, Some("executed".into())), (200, Some("replayed".into()))]);
    assert_eq!(get(serving.admin(), "/livez"), 200);
    let (status, log) = serving.ends_by(Signal::TERM);
    assert_eq!(status, Some(0), "{log}");

    let one_path = shell.serves(&format!("serve --upstream http://{upstream} --path /only"));
    assert_eq!(get(one_path.listen(), "/only"), 200);
    assert_eq!(get(one_path.listen(), "/only/"), 404);
}

#[test]
fn serve_on_a_port_that_is_taken_names_the_setting() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    for (variable, setting) in
        [("ONCEWARD_SERVER__LISTEN", "server.listen"), ("ONCEWARD_ADMIN__LISTEN", "admin.listen")]
    {
        let shell = Shell::with("onceward.toml", ROUTE).anywhere().variable(variable, &address);
        let said = shell.types("serve --config onceward.toml").complained(1);
        let expected = format!(
            "error: cannot listen on `{address}` (`{setting}`)\n  \
             because: Address already in use (os error 98)\n  \
             hint: `ss -ltnp 'sport = :{}'` shows who listens there; or change `{setting}`\n",
            taken.local_addr().unwrap().port()
        );
        assert_eq!(said, expected);
    }
}

/// Two processes on one directory would both grant claims.
#[test]
fn a_second_process_on_one_directory_refuses_to_start_and_names_it() {
    let shell = Shell::with("onceward.toml", ROUTE).anywhere();
    let first = shell.serves("serve --config onceward.toml");
    assert_snapshot!(shell.types("serve --config onceward.toml").complained(1), @"
    error: the store cannot be opened
      because: another process is using the store in `onceward-data`
      hint: stop that process, or give this one another `store.embedded.path`
    ");
    // Nothing is wrong with the configuration, so `check` reports no problem.
    let checked = shell.types("check --config onceward.toml --probe").printed(1);
    assert!(checked.starts_with("onceward.toml: no problems, 2 risks\n"), "{checked}");
    let (_, not_probed) = checked.split_once("  the store was not probed: ").unwrap();
    assert_snapshot!(not_probed, @"
    another process is using the store in `onceward-data`
        hint: a running `onceward serve` is the usual one, and its `/readyz` tells how the store is; to probe it from here, stop that process first
    ");
    let json = shell.types("check --config onceward.toml --probe --json").printed(1);
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["problems"], json!([]));
    assert!(json["not_probed"]["hint"].as_str().unwrap().contains("stop that process"), "{json}");
    assert_eq!(get(first.admin(), "/readyz"), 200, "the first one is not disturbed");
    assert_eq!(first.ends_by(Signal::TERM).0, Some(0));
    assert!(shell.types("check --config onceward.toml --probe").printed(0).contains("no problems"));
    drop(shell.serves("serve --config onceward.toml"));
    let strange = Shell::with("onceward.toml", ROUTE)
        .anywhere()
        .variable("ONCEWARD_STORE__EMBEDDED__PATH", ".");
    let said = strange.types("serve --config onceward.toml").complained(1);
    assert!(said.contains("\n  hint: let `store.embedded.path` name an empty directory"), "{said}");
}

/// Ctrl-C is a normal end, like SIGTERM.
#[test]
fn both_signals_end_it_in_good_order() {
    let shell = Shell::with("onceward.toml", ROUTE).anywhere();
    for signal in [Signal::TERM, Signal::INT] {
        let (status, log) = shell.serves("serve --config onceward.toml").ends_by(signal);
        assert_eq!(status, Some(0), "{log}");
        let messages: Vec<Value> = log
            .lines()
            .map(|line| serde_json::from_str::<Value>(line).unwrap()["message"].take())
            .collect();
        assert_eq!(messages, ["not ready from now on; draining", "done"]);
    }
}

/// SIGHUP comes from a shell that hangs up, or from an operator who wants the configuration read
/// again.
#[test]
fn a_hangup_ends_nothing_and_leaves_a_line() {
    let shell = Shell::with("onceward.toml", ROUTE).anywhere();
    let serving = shell.serves("serve --config onceward.toml");
    kill_process(Pid::from_child(&serving.child), Signal::HUP).unwrap();
    assert_eq!(get(serving.admin(), "/readyz"), 200);
    let (status, log) = serving.ends_by(Signal::TERM);
    assert_eq!(status, Some(0), "{log}");
    assert!(log.contains("SIGHUP is ignored"), "{log}");
}

#[test]
fn serve_without_arguments_says_what_to_do() {
    assert_snapshot!(Shell::new().types("serve").complained(2), @"
    error: nothing to serve: neither `--config` nor `--upstream` is given
      hint: `onceward init --output onceward.toml` writes a configuration to start with,
            `onceward serve --config onceward.toml` runs it;
            `onceward serve --upstream http://127.0.0.1:3000` needs no file,
            `onceward serve --help` says the rest
    ");
}

#[test]
fn a_route_that_anybody_may_send_to_is_reported_at_start() {
    let shell = Shell::with("onceward.toml", ROUTE).anywhere();
    let logged = logged_at_start(shell.command("serve --config onceward.toml"));
    let logged = logged.iter().find(|line| line.contains("no signature is checked"));
    assert!(logged.unwrap().contains("route.name=\"orders\""), "{logged:?}");
}

/// With such a secret every event is refused with 401, and nothing else would say why.
#[test]
fn a_secret_that_is_most_likely_the_wrong_one_is_reported_at_start_and_not_shown() {
    let route = format!("{ROUTE}provider = \"stripe\"\nsecrets = [{{ env = \"SECRET\" }}]\n");
    let shell = Shell::with("onceward.toml", &route).anywhere();
    let mut command = shell.command("serve --config onceward.toml");
    command.env("SECRET", "sk_live_canary");
    let logged = logged_at_start(command);
    assert!(logged.iter().any(|line| line.contains("secret-prefix")), "{logged:?}");
    assert!(!logged.concat().contains("canary"), "{logged:?}");
}

/// The lines of the log until it serves.
fn logged_at_start(mut command: Command) -> Vec<String> {
    let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
    let lines = BufReader::new(child.stderr.take().unwrap()).lines().map(Result::unwrap);
    let logged = lines.take_while(|line| !line.contains(" serving")).collect();
    child.kill().unwrap();
    child.wait().unwrap();
    logged
}
