//! What an operator types, and what comes of it: output, exit status, files.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on must end")]

use std::io::{BufRead as _, BufReader, Read as _};
use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::JoinHandle;
use std::time::Duration;

use insta::assert_snapshot;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tempfile::TempDir;

/// A directory to type commands in.
struct Shell {
    directory: TempDir,
    variables: Vec<(String, String)>,
}

/// What a command came to.
struct Ended {
    stdout: String,
    stderr: String,
    status: Option<i32>,
}

impl Shell {
    fn new() -> Self {
        Self { directory: tempfile::tempdir().unwrap(), variables: Vec::new() }
    }

    fn with(file: &str, text: &str) -> Self {
        Self::new().and(file, text)
    }

    fn and(self, file: &str, text: &str) -> Self {
        std::fs::write(self.path().join(file), text).unwrap();
        self
    }

    fn variable(mut self, name: &str, value: &str) -> Self {
        self.variables.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Both listeners on ports that nobody else has.
    fn anywhere(self) -> Self {
        self.variable("ONCEWARD_SERVER__LISTEN", "127.0.0.1:0")
            .variable("ONCEWARD_ADMIN__LISTEN", "127.0.0.1:0")
    }

    fn path(&self) -> &Path {
        self.directory.path()
    }

    fn command(&self, line: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_onceward"));
        command.args(line.split_whitespace()).current_dir(self.path()).stdin(Stdio::null());
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("ONCEWARD_") {
                command.env_remove(name);
            }
        }
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        command
    }

    /// Runs a command that ends by itself.
    fn types(&self, line: &str) -> Ended {
        let output = self.command(line).output().unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        Ended {
            stdout: text(output.stdout),
            stderr: text(output.stderr),
            status: output.status.code(),
        }
    }

    /// Runs a command that serves.
    fn serves(&self, line: &str) -> Serving {
        let mut command = self.command(line);
        command.args(["--log-format", "json"]).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut serving = Serving { child: command.spawn().unwrap(), said: None };
        let mut stderr = BufReader::new(serving.child.stderr.take().unwrap());
        let line = loop {
            let mut line = String::new();
            assert_ne!(stderr.read_line(&mut line).unwrap(), 0, "it does not serve");
            if line.contains("\"message\":\"serving\"") {
                break line;
            }
        };
        let rest = std::thread::spawn(move || {
            let mut rest = String::new();
            stderr.read_to_string(&mut rest).unwrap();
            rest
        });
        serving.said = Some((serde_json::from_str(&line).unwrap(), rest));
        serving
    }
}

impl Ended {
    #[track_caller]
    fn printed(self, status: i32) -> String {
        assert_eq!(self.status, Some(status), "{}{}", self.stdout, self.stderr);
        assert_eq!(self.stderr, "");
        self.stdout
    }

    #[track_caller]
    fn complained(self, status: i32) -> String {
        assert_eq!(self.status, Some(status), "{}{}", self.stdout, self.stderr);
        assert_eq!(self.stdout, "");
        self.stderr
    }
}

/// A process that serves; it ends with this value.
struct Serving {
    child: Child,
    /// That it serves, and what it says from then on.
    said: Option<(Value, JoinHandle<String>)>,
}

impl Serving {
    fn listen(&self) -> SocketAddr {
        self.address("listen")
    }

    fn admin(&self) -> SocketAddr {
        self.address("admin")
    }

    fn address(&self, name: &str) -> SocketAddr {
        let (serving, _) = self.said.as_ref().unwrap();
        serving[name].as_str().unwrap().parse().unwrap()
    }

    /// Ends it by a signal; gives its exit status and what it said since it served.
    fn ends_by(mut self, signal: Signal) -> (Option<i32>, String) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
        let (_, rest) = self.said.take().unwrap();
        (self.child.wait().unwrap().code(), rest.join().unwrap())
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        let _ended_before = self.child.kill();
        let _reaped = self.child.wait();
    }
}

/// An answer: its status, and a header of it.
fn ask(to: SocketAddr, request: &str, header: &str) -> (u16, Option<String>) {
    use std::io::Write as _;
    let mut stream = std::net::TcpStream::connect(to).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut lines = BufReader::new(stream).lines().map(Result::unwrap);
    let status = lines.next().unwrap()["HTTP/1.1 ".len()..][..3].parse().unwrap();
    let mut head = lines.take_while(|line| !line.is_empty());
    let name = format!("{header}: ");
    let value = head.find_map(|line| line.strip_prefix(&name).map(str::to_owned));
    (status, value)
}

fn get(to: SocketAddr, path: &str) -> u16 {
    ask(to, &format!("GET {path} HTTP/1.1\r\nhost: {to}\r\n\r\n"), "date").0
}

/// A receiver that answers every connection with 200.
fn receiver() -> SocketAddr {
    use std::io::Write as _;
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            std::thread::spawn(move || {
                let mut bytes = [0; 4096];
                while stream.read(&mut bytes).is_ok_and(|read| read > 0) {
                    let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";
                    if stream.write_all(answer).is_err() {
                        return;
                    }
                }
            });
        }
    });
    address
}

/// A route with all that `check` wants of one.
const SIGNED: &str = "[routes.orders]\npath = \"/orders\"\nupstream = \"http://127.0.0.1:3000\"\n\
    provider = \"acme\"\nsecrets = [{ file = \"secret\" }]\nkey.header = []\nkey.event.type = \"json:/type\"\n[providers.acme]\n\
    signature = { scheme = \"hmac\", header = \"x-acme\" }\n";

const ROUTE: &str = "[routes.orders]\npath = \"/orders\"\nupstream = \"http://127.0.0.1:3000\"\n";

#[test]
fn check_finds_nothing_in_a_good_configuration() {
    let shell = Shell::with("onceward.toml", SIGNED).and("secret", "0123456789abcdef\n");
    for line in ["check --config onceward.toml", "check --config onceward.toml --strict"] {
        let printed = shell.types(line).printed(0);
        assert!(printed.starts_with("onceward.toml: no problems, no risks"), "{printed}");
    }
    let printed = shell.types("check --config onceward.toml --json").printed(0);
    let report: Value = serde_json::from_str(&printed).unwrap();
    assert_eq!((&report["problems"], &report["risks"]), (&json!([]), &json!([])));
}

#[test]
fn check_reports_all_problems_at_once() {
    let text = r#"
[server]
listen = "8080"
lisen = "127.0.0.1:80"

[admin]
listen = "0.0.0.0:8081"

[defaults]
retention = "1 year"

[routes.orders]
path = "orders"

[routes.orders.key]
event.id = "/id"
"#;
    let shell = Shell::with("bad.toml", text).variable("ONCEWARD_SERVER__DRAIN_DELAY", "soon");
    assert_snapshot!(shell.types("check --config bad.toml").printed(2), @r#"
    the configuration has 8 problems
      bad.toml:3: `server.listen`: expected an address and port such as `127.0.0.1:8080` or `[::1]:8080`, found `8080`
      bad.toml:4: `server.lisen`: expected a known key, found `lisen`
        hint: did you mean `listen`?
      bad.toml:7: `admin.listen`: expected a loopback address where there is no `admin.token`, found `0.0.0.0:8081`
        hint: `token = { env = "ONCEWARD_ADMIN_TOKEN" }` in `[admin]` opens it to others
      bad.toml:10: `defaults.retention`: expected a duration such as `500ms`, `30s`, `5m`, `72h` or `30d`, found `1 year`
        hint: write `365d`
      bad.toml:12: `routes.orders.upstream`: expected a value, found none
        hint: `upstream = "http://127.0.0.1:3000"`
      bad.toml:13: `routes.orders.path`: expected a path such as `/webhooks/orders`, or a prefix such as `/webhooks/*`, without query or fragment, found `orders`
      bad.toml:16: `routes.orders.key.event.id`: expected `header:NAME`, `json:/pointer`, `form:FIELD`, `query:NAME`, `signature:NAME` or `body`, several with `|` between them, with `?` behind it where it may be absent, found `/id`
      ONCEWARD_SERVER__DRAIN_DELAY: `server.drain_delay`: expected a duration such as `500ms`, `30s`, `5m`, `72h` or `30d`, found another value
    "#);
    let json = shell.types("check --config bad.toml --json").printed(2);
    let json: Value = serde_json::from_str(&json).unwrap();
    let problems = json["problems"].as_array().unwrap();
    assert_eq!(problems.len(), 8, "{json}");
    let place = json!({ "file": "bad.toml", "line": 3 });
    let listen = problems.iter().find(|problem| problem["place"] == place).unwrap();
    assert_eq!(listen["key"], "server.listen");
}

#[test]
fn check_of_a_file_that_is_not_there_or_is_no_toml_names_it() {
    let shell = Shell::with("broken.toml", "[server]\nlisten = \"127.0.0.1:80\n");
    assert_snapshot!(shell.types("check --config nowhere.toml").printed(2), @"
    the configuration has 1 problem
      nowhere.toml: expected a configuration that can be read, found an error: No such file or directory (os error 2)
        hint: `onceward init --output FILE` writes one to start with
    ");
    assert_snapshot!(shell.types("check --config broken.toml").printed(2), @r#"
    the configuration has 1 problem
      broken.toml:2: expected valid TOML, found a mistake at column 23: invalid basic string, expected `"`
    "#);
}

#[test]
fn check_fails_on_risks_only_if_it_is_strict() {
    let risky = format!("[store.memory]\n[defaults]\nwhen_in_flight = \"wait\"\n{ROUTE}");
    let shell = Shell::with("risky.toml", &risky);
    assert_snapshot!(shell.types("check --config risky.toml").printed(0), @r#"
    risky.toml: no problems, 4 risks
      risky.toml:1: `store.memory`: every operation is forgotten at exit, so that a later copy runs again
        hint: `[store.embedded]` remembers
      risky.toml:4: `routes.orders.answer_within`: unset: a copy waits up to 60s, and most senders hang up sooner
        hint: set it below the patience of the sender, such as `"8s"`
      risky.toml:4: `routes.orders.key.event`: of two events with one id and no type, the second one is refused with 422
        hint: `key.event.type`, without `?`, names where their type is; a provider knows it
      risky.toml:4: `routes.orders.provider`: who knows the URL can send what looks like an event of the sender
        hint: name the sender with `provider`, or describe its signature in `[providers.NAME]`
    "#);
    let strict = shell.types("check --config risky.toml --strict");
    assert_eq!(strict.printed(1), shell.types("check --config risky.toml").stdout);
    let json = shell.types("check --config risky.toml --json --strict").printed(1);
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["problems"], json!([]));
    let codes: Vec<_> =
        json["risks"].as_array().unwrap().iter().map(|risk| &risk["code"]).collect();
    let expected =
        ["store-in-memory", "wait-without-limit", "event-without-type", "signature-unchecked"];
    assert_eq!(codes, expected);
}

/// Whoever can reach the admin listener can forget operations: others need a token.
#[test]
fn an_admin_listener_for_others_needs_a_token() {
    let open = format!("[admin]\nlisten = \"[::]:8081\"\n{ROUTE}");
    let shell = Shell::with("open.toml", &open).variable("ADMIN_TOKEN", "canary");
    assert_snapshot!(shell.types("check --config open.toml").printed(2), @r#"
    the configuration has 1 problem
      open.toml:2: `admin.listen`: expected a loopback address where there is no `admin.token`, found `[::]:8081`
        hint: `token = { env = "ONCEWARD_ADMIN_TOKEN" }` in `[admin]` opens it to others
    "#);
    let serve = shell.types("serve --config open.toml").complained(2);
    assert!(serve.contains("open.toml:2: `admin.listen`"), "{serve}");

    let token = open.replace("8081\"\n", "8081\"\ntoken = { env = \"ADMIN_TOKEN\" }\n");
    let shell = shell.and("open.toml", &token);
    for line in ["", " --effective", " --effective --json"] {
        let printed = shell.types(&format!("check --config open.toml{line}")).printed(0);
        assert!(!printed.contains("canary"), "{printed}");
    }
}

#[test]
fn check_shows_every_value_and_where_it_comes_from() {
    let text = format!("[defaults]\nlease = \"20s\"\n{ROUTE}retention = \"72h\"\n");
    let shell = Shell::with("onceward.toml", &text)
        .variable("ONCEWARD_SERVER__LISTEN", "127.0.0.1:9999")
        .variable("ONCEWARD_ROUTES__ORDERS__ATTEMPT_TIMEOUT", "25s");
    let printed = shell.types("check --config onceward.toml --effective").printed(0);
    for line in [
        "server.listen = \"127.0.0.1:9999\"  # ONCEWARD_SERVER__LISTEN",
        "server.limits.header_timeout = \"10s\"  # built-in",
        "routes.orders.lease = \"20s\"  # onceward.toml:2",
        "routes.orders.retention = \"72h\"  # onceward.toml:6",
        "routes.orders.attempt_timeout = \"25s\"  # ONCEWARD_ROUTES__ORDERS__ATTEMPT_TIMEOUT",
        "onceward.toml: no problems, 2 risks",
    ] {
        assert!(printed.lines().any(|found| found == line), "no `{line}` in\n{printed}");
    }
    let json = shell.types("check --config onceward.toml --effective --json").printed(0);
    let json: Value = serde_json::from_str(&json).unwrap();
    let lease = json!({
        "key": "routes.orders.lease", "value": "\"20s\"",
        "place": { "file": "onceward.toml", "line": 2 },
    });
    assert!(json["effective"].as_array().unwrap().contains(&lease), "{json:#}");
}

const CAPTURED: &str = "POST /orders?a=1 HTTP/1.1\r\nHost: hooks.example.com\r\n\
    Content-Type: application/json\r\nContent-Length: 40\r\n\r\n\
    {\"id\":8202522731445525542,\"type\":\"paid\"}";

#[test]
fn explain_says_what_a_request_would_be_taken_for() {
    let shell = Shell::with("onceward.toml", ROUTE).and("captured.http", CAPTURED);
    let explain = "explain -c onceward.toml --request captured.http";
    assert_snapshot!(shell.types(explain).printed(0), @r#"
    route        orders
    signature    not-checked
    key          event: "orders" "8202522731445525542" "paid"
    operation    op_92b0ea2075b84f9d734df50ef6b6d935
    fingerprint  1785cfc3bc6ac773-e3b0c44298fc1c149afbf4c8996fb924 over nothing
    ignored      nothing
    disposition  executed, unless the store knows it
    "#);
    let json = shell.types(&format!("{explain} --json")).printed(0);
    assert_snapshot!(json, @r#"{"route":"orders","provider":null,"signature":{"verdict":"not-checked","reason":null},"key":{"from":"event","parts":["orders","8202522731445525542","paid"]},"operation":"op_92b0ea2075b84f9d734df50ef6b6d935","fingerprint":"1785cfc3bc6ac773-e3b0c44298fc1c149afbf4c8996fb924","disposition":"executed"}"#);

    let other = CAPTURED.replace("/orders", "/other");
    let shell = shell.and("other.http", &other);
    assert_snapshot!(shell.types("explain --config onceward.toml --request other.http").printed(0), @"
    route        none
    signature    not-checked
    disposition  refused: no-route, no route serves this host and path
    ");
}

#[test]
fn explain_without_a_request_or_a_configuration_exits_with_2() {
    let shell = Shell::with("onceward.toml", ROUTE)
        .and("bad.toml", "[routes.orders]\npath = \"/orders\"\n")
        .and("no.http", "{\"id\":1}");
    assert_snapshot!(
        shell.types("explain --config onceward.toml --request nowhere.http").complained(2),
        @"
    error: cannot read `nowhere.http`
      because: No such file or directory (os error 2)
    "
    );
    assert_snapshot!(shell.types("explain --config onceward.toml --request no.http").complained(2), @"
    error: `no.http` is not a captured request
      because: expected the head of an HTTP/1.1 request
      because: invalid token
    ");
    assert_snapshot!(shell.types("explain --config bad.toml --request no.http").complained(2), @r#"
    error: the configuration has 1 problem
      bad.toml:1: `routes.orders.upstream`: expected a value, found none
        hint: `upstream = "http://127.0.0.1:3000"`
    "#);
}

/// What is explained is what happens.
#[test]
fn explain_names_the_operation_that_the_proxy_makes() {
    let config = ROUTE.replace("127.0.0.1:3000", &receiver().to_string());
    let shell = Shell::with("onceward.toml", &config).and("captured.http", CAPTURED).anywhere();
    let explained =
        shell.types("explain --config onceward.toml --request captured.http --json").printed(0);
    let explained: Value = serde_json::from_str(&explained).unwrap();
    let serving = shell.serves("serve --config onceward.toml");
    let (status, operation) = ask(serving.listen(), CAPTURED, "onceward-operation");
    assert_eq!((status, operation.as_deref()), (200, explained["operation"].as_str()));
}

#[test]
fn init_writes_a_configuration_that_checks_and_serves() {
    let shell = Shell::new().anywhere();
    assert_eq!(shell.types("init --output onceward.toml").printed(0), "wrote `onceward.toml`\n");
    let written = std::fs::read_to_string(shell.path().join("onceward.toml")).unwrap();
    assert_eq!(shell.types("init").printed(0), written);
    assert!(!written.contains("config/"), "whoever has the program alone has no such file");
    let checked = shell.types("check -c onceward.toml --json").printed(0);
    let checked: Value = serde_json::from_str(&checked).unwrap();
    let risks = checked["risks"].as_array().unwrap().iter().map(|risk| &risk["code"]);
    assert_eq!(risks.collect::<Vec<_>>(), ["event-without-type", "signature-unchecked"]);
    let serving = shell.serves("serve --config onceward.toml");
    assert_eq!(get(serving.admin(), "/readyz"), 200);
    assert_eq!(get(serving.listen(), "/nowhere"), 404);
    assert!(shell.path().join("onceward-data").is_dir());
    assert_eq!(serving.ends_by(Signal::TERM).0, Some(0));
    // And it is not written over.
    assert_snapshot!(shell.types("init --output onceward.toml").complained(1), @"
    error: `onceward.toml` exists already, and is left as it is
      hint: name another file, or move this one away
    ");
    let kept = std::fs::read_to_string(shell.path().join("onceward.toml")).unwrap();
    assert_eq!(kept, written);
}

#[test]
fn init_for_a_sender_writes_what_needs_only_its_secret() {
    let shell = Shell::new();
    shell.types("init --provider stripe --output onceward.toml").printed(0);
    let problems = shell.types("check --config onceward.toml").printed(2);
    assert!(problems.contains("`routes.stripe.secrets.0.env`"), "{problems}");
    let shell = shell.variable("STRIPE_WEBHOOK_SECRET", "whsec_1");
    let checked = shell.types("check --config onceward.toml --strict").printed(0);
    assert!(checked.starts_with("onceward.toml: no problems, no risks, 2 notes\n"), "{checked}");
}

#[test]
fn a_sender_is_enough_to_serve_without_a_file() {
    let serve = "serve --upstream http://127.0.0.1:1 --provider stripe";
    assert_snapshot!(Shell::new().types(serve).complained(2), @"
    error: the configuration has 1 problem
      --provider: `routes.default.secrets.0.env`: expected the name of a variable that holds the secret, found `ONCEWARD_SECRET`, which is not set
        hint: set `ONCEWARD_SECRET`, or give `--secret-file FILE`
    ");
    assert_snapshot!(Shell::new().types(&format!("{serve} --secret-file nowhere")).complained(2), @"
    error: the configuration has 1 problem
      --secret-file: `routes.default.secrets.0.file`: expected the path of a file that holds the secret, found one that cannot be read: entity not found
    ");
    let secret = Shell::with("secret", "whsec_1\n").anywhere();
    let serving = secret.serves(&format!("{serve} --secret-file secret"));
    assert_eq!(get(serving.admin(), "/readyz"), 200);
    assert_eq!(serving.ends_by(Signal::TERM).0, Some(0));
}

#[test]
fn what_is_known_of_a_sender_is_shown() {
    let shell = Shell::new();
    let list = shell.types("providers").printed(0);
    assert!(list.contains("stripe             Stripe (snapshot events, v1)\n"), "{list}");
    assert_snapshot!(shell.types("providers lemonsqueezy").printed(0), @"
    Lemon Squeezy

      The body's digest is the key: events before 2025 have no id. All retries are over after 2.6 min:
      copies wait for the outcome, since a refusal would use up a retry.

      key              body
      type             json:/meta/event_name
      remembered for   24h
      a copy waits     8s
      signature        hmac in X-Signature
      its secret       Settings > Webhooks > the webhook > signing secret: you choose it
      done means       200 alone
      on failure       tries again after 5, 25 and 125 s, and never after that
      tries again for  3m
      after statuses   3xx, 4xx, 5xx
      by hand          dashboard

      One captured request:
        who has captured one request can have it run again once it is forgotten, after 1d, for as long as the secret is valid

      Not the event:
        json:/data/id is the object, of which there are many events

      Not confirmed:
        whether a retry or a resend has the same body to the byte: if not, it is a new operation
        how long it waits for an answer
        for how long an event can be resent
    ");
    let known: Value =
        serde_json::from_str(&shell.types("providers stripe --json").printed(0)).unwrap();
    assert_eq!((&known["name"], &known["retention"]), (&json!("stripe"), &json!("31d")));
    assert_snapshot!(shell.types("providers strpe").complained(2), @"error: no provider `strpe` is built in; `onceward providers` lists those that are");
}

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

#[test]
fn serve_with_a_wrong_configuration_says_where_and_starts_nothing() {
    let text = format!("[server]\nlisten = 8080\n{ROUTE}leese = \"1s\"\n");
    let shell = Shell::with("bad.toml", &text);
    assert_snapshot!(shell.types("serve --config bad.toml").complained(2), @"
    error: the configuration has 2 problems
      bad.toml:2: `server.listen`: expected an address and port such as `127.0.0.1:8080` or `[::1]:8080`, found the number 8080
      bad.toml:6: `routes.orders.leese`: expected a known key, found `leese`
        hint: did you mean `lease`?
    ");
    assert_snapshot!(shell.types("serve --upstream ftp://127.0.0.1").complained(2), @"
    error: the configuration has 1 problem
      --upstream: `routes.default.upstream`: expected an `http` or `https` URL such as `http://127.0.0.1:3000`, without user, query or fragment, found `ftp://127.0.0.1`
    ");
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

/// S11
#[test]
fn a_second_process_on_one_directory_refuses_to_start_and_names_it() {
    let shell = Shell::with("onceward.toml", ROUTE).anywhere();
    let first = shell.serves("serve --config onceward.toml");
    assert_snapshot!(shell.types("serve --config onceward.toml").complained(1), @"
    error: the store cannot be opened
      because: another process is using the store in `onceward-data`
    ");
    assert_eq!(get(first.admin(), "/readyz"), 200, "the first one is not disturbed");
    assert_eq!(first.ends_by(Signal::TERM).0, Some(0));
    drop(shell.serves("serve --config onceward.toml"));
}

/// Ctrl-C is no failure either.
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

/// A shell that hangs up, or an operator that means "read your configuration again".
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

/// With one underscore a variable is none of the settings, and nobody would notice.
#[test]
fn a_variable_that_is_nearly_a_setting_is_named() {
    let shell = Shell::with("onceward.toml", SIGNED)
        .and("secret", "0123456789abcdef\n")
        .variable("ONCEWARD_SERVER_LISTEN", "canary")
        .variable("ONCEWARD_ROUTES_ORDERS_ANSWER_WITHIN", "canary")
        .variable("ONCEWARD_SERVER_LIMITS_BODY_TIMEOUT", "canary")
        .variable("ONCEWARD_IMAGE_TAG", "canary")
        .variable("ONCEWARD_ROUTES_OTHERS_LEASE", "canary")
        .variable("ONCEWARD_LOG_FORMAT", "text")
        .variable("ONCEWARD_ADMIN_TOKEN", "canary");
    let printed = shell.types("check --config onceward.toml --json").printed(0);
    assert!(!printed.contains("canary"), "{printed}");
    let report: Value = serde_json::from_str(&printed).unwrap();
    let hints = report["risks"].as_array().unwrap().iter().map(|risk| {
        assert_eq!(risk["code"], "variable-ignored");
        risk["hint"].as_str().unwrap()
    });
    assert_eq!(
        hints.collect::<Vec<_>>(),
        [
            "`ONCEWARD_ROUTES__ORDERS__ANSWER_WITHIN` is read",
            "`ONCEWARD_SERVER__LIMITS__BODY_TIMEOUT` is read",
            "`ONCEWARD_SERVER__LISTEN` is read",
        ]
    );
}

/// Somebody puts a secret into the wrong variable.
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

#[test]
fn a_route_that_anybody_may_send_to_is_said_at_start() {
    let shell = Shell::with("onceward.toml", ROUTE).anywhere();
    let mut command = shell.command("serve --config onceward.toml");
    let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
    let lines = BufReader::new(child.stderr.take().unwrap()).lines().map(Result::unwrap);
    let until_it_serves: Vec<String> =
        lines.take_while(|line| !line.contains(" serving")).collect();
    child.kill().unwrap();
    child.wait().unwrap();
    let told = until_it_serves.iter().find(|line| line.contains("no signature is checked"));
    assert!(told.unwrap().contains("route.name=\"orders\""), "{told:?}");
}
