//! Secrets: where they come from, and that nobody sees them.

use insta::assert_snapshot;

use super::Written;

#[test]
fn a_secret_comes_from_a_variable_or_a_file_without_its_last_newline() {
    let token = |written: &Written| written.config().unwrap().admin.token.unwrap();
    let env = Written::beside_a_route("[admin]\nlisten = \"0.0.0.0:1\"\ntoken = { env = \"T\" }")
        .variable("T", "hunter2\n");
    assert!(token(&env).is(b"hunter2\n"));

    for (written, secret) in
        [("a\n", "a"), ("a\r\n", "a"), ("a", "a"), ("a\n\n", "a\n"), (" a ", " a ")]
    {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), written).unwrap();
        let text = format!("[admin]\ntoken = {{ file = \"{}\" }}", file.path().display());
        assert!(token(&Written::beside_a_route(&text)).is(secret.as_bytes()), "{written:?}");
    }
}

#[test]
fn a_secret_that_is_not_there_is_a_problem() {
    let token = |token: &str| {
        let written = Written::beside_a_route(&format!("[admin]\ntoken = {token}"));
        written.variable("EMPTY", "").variable("BLANK", " \n").problems()
    };
    let all = [
        token("{ env = \"UNSET\" }"),
        token("{ env = \"EMPTY\" }"),
        token("{ env = \"BLANK\" }"),
        token("{ file = \"/does/not/exist\" }"),
        token("{ file = \"/dev/null\" }"),
        token("{ file = \"/\" }"),
        token("{ env = \"A\", file = \"b\" }"),
        token("{}"),
    ];
    assert_snapshot!(all.join("\n"), @"
    the configuration has 1 problem
      onceward.toml:2: `admin.token.env`: expected the name of a variable that holds the secret, found `UNSET`, which is not set
    the configuration has 1 problem
      onceward.toml:2: `admin.token.env`: expected the name of a variable that holds the secret, found `EMPTY`, which is empty
    the configuration has 1 problem
      onceward.toml:2: `admin.token.env`: expected the name of a variable that holds the secret, found `BLANK`, which is empty
    the configuration has 1 problem
      onceward.toml:2: `admin.token.file`: expected the path of a file that holds the secret, found one that cannot be read: entity not found
    the configuration has 1 problem
      onceward.toml:2: `admin.token.file`: expected the path of a file that holds the secret, found one that is empty
    the configuration has 1 problem
      onceward.toml:2: `admin.token.file`: expected the path of a file that holds the secret, found one that cannot be read: is a directory
    the configuration has 1 problem
      onceward.toml:2: `admin.token.file`: expected `env` or `file`, found both
    the configuration has 1 problem
      onceward.toml:2: `admin.token`: expected `env` or `file`, found neither
    ");
}

/// faults.md, item 14: figment prints the value, and toml the line.
#[test]
fn no_message_ever_shows_a_secret() {
    const CANARY: &str = "hunter2canary";
    let forms = [
        "token = \"hunter2canary\"",
        "token = hunter2canary",
        "token = \"hunter2canary",
        "token = 'hunter2canary",
        "token = [\"hunter2canary\"]",
        "token = { env = \"hunter2canary\" }",
        "token = { env = [\"hunter2canary\"] }",
        "token = { file = \"hunter2canary\" }",
        "token = { file = \"hunter2canary\\u0000\" }",
        "token = { hunter2canary = 1 }",
        "token = { env = { x = \"hunter2canary\" } }",
        "token = { env = \"A\", file = \"hunter2canary\" }",
        "token.env = hunter2canary",
        "token = { env = \"hunter2canary\"",
        "token = hunter2canary\ntoken = 1",
        "token = \"\\hunter2canary\"",
        "token = \"\"\"hunter2canary",
        "tokn = \"hunter2canary\"",
        "token = { evn = \"hunter2canary\" }",
        "token = 0xhunter2canary",
        "token = { env = \"A\" } hunter2canary",
        "= hunter2canary",
        "listen = \"0.0.0.0:1\"\ntoken = \"hunter2canary\"",
    ];
    for form in forms {
        for written in [
            Written::file(&format!("[admin]\n{form}\n")),
            Written::beside_a_route("").variable("ONCEWARD_ADMIN__TOKEN", form),
            Written::beside_a_route("").variable("ONCEWARD_ADMIN__TOKEN__ENV", form),
            Written::beside_a_route("").variable("ONCEWARD_ADMIN__TOKEN__FILE", form),
            Written::beside_a_route("")
                .variable("ONCEWARD_ADMIN__TOKEN", form.trim_start_matches("token = ")),
            Written::beside_a_route("").variable("ONCEWARD_ADMIN", form),
            Written::beside_a_route("").variable("ONCEWARD_ADMIN__TOKN", form),
        ] {
            let said = match written.sources() {
                Ok(sources) => {
                    format!("{:?}", sources.check())
                }
                Err(problems) => format!("{problems} {problems:?}"),
            };
            assert!(!said.contains(CANARY), "{form}: {said}");
        }
    }
    let right = Written::beside_a_route("[admin]\ntoken = { env = \"T\" }").variable("T", CANARY);
    let shown = format!("{:?} {}", right.config().unwrap(), right.effective());
    assert!(!shown.contains(CANARY), "{shown}");

    let url = Written::file("[routes.a]\npath = \"/\"\nupstream = \"http://u:hunter2canary@h\"");
    assert!(!url.problems().contains(CANARY));
}

#[test]
fn the_token_is_needed_where_others_can_connect() {
    for listen in ["127.0.0.1:1", "[::1]:1", "127.9.9.9:1", "[::ffff:127.0.0.1]:1"] {
        Written::beside_a_route(&format!("[admin]\nlisten = \"{listen}\"")).config().unwrap();
    }
    for listen in ["0.0.0.0:1", "[::]:1", "10.0.0.1:1", "[::ffff:10.0.0.1]:1"] {
        let written = Written::beside_a_route(&format!("[admin]\nlisten = \"{listen}\""));
        assert!(written.problems().contains("admin.token"), "{listen}");
    }
}
