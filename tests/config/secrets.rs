//! Secrets: where they come from, and that nobody sees them.

use insta::assert_snapshot;

use super::{WITH_SECRET, Written, from};

#[test]
fn a_secret_comes_from_a_variable_or_a_file_without_its_last_newline() {
    let token = |written: &Written| written.config().unwrap().admin.token.unwrap();
    let env = Written::beside_a_route("[admin]\nlisten = \"0.0.0.0:1\"\ntoken = { env = \"T\" }")
        .variable("T", "hunter2\n");
    assert!(token(&env).is(b"hunter2"));

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
    assert_snapshot!(all.join("\n"), @r#"
    the configuration has 1 problem
      onceward.toml:2: `admin.token.env`: expected the name of a variable that holds the secret, found `UNSET`, which is not set
        hint: `export UNSET=…` where it is started, or `{ file = "path" }` in its place
    the configuration has 1 problem
      onceward.toml:2: `admin.token.env`: expected the name of a variable that holds the secret, found `EMPTY`, which is empty
        hint: `export EMPTY=…` where it is started, or `{ file = "path" }` in its place
    the configuration has 1 problem
      onceward.toml:2: `admin.token.env`: expected the name of a variable that holds the secret, found `BLANK`, which is empty
        hint: `export BLANK=…` where it is started, or `{ file = "path" }` in its place
    the configuration has 1 problem
      onceward.toml:2: `admin.token.file`: expected the path of a file that holds the secret, found one that cannot be read: there is no such file
        hint: a file that Onceward can read, with the secret and nothing else in it
    the configuration has 1 problem
      onceward.toml:2: `admin.token.file`: expected the path of a file that holds the secret, found one that is empty
        hint: a file that Onceward can read, with the secret and nothing else in it
    the configuration has 1 problem
      onceward.toml:2: `admin.token.file`: expected the path of a file that holds the secret, found one that cannot be read: is a directory
        hint: a file that Onceward can read, with the secret and nothing else in it
    the configuration has 1 problem
      onceward.toml:2: `admin.token.file`: expected `env` or `file`, found both
        hint: keep one of them
    the configuration has 1 problem
      onceward.toml:2: `admin.token`: expected `env` or `file`, found neither
        hint: `{ env = "NAME" }` names a variable that holds it, `{ file = "/path" }` a file
    "#);
}

/// The errors of figment show the value, and those of toml the line.
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

/// With a secret that was copied badly every event is refused, and nothing else would say why.
#[test]
fn a_secret_of_another_shape_than_the_senders_is_a_risk_that_shows_nothing_of_it() {
    let risks = |provider: &str, secret: &str| {
        let written = from(provider, WITH_SECRET).variable("SECRET", secret);
        let config = written.config().unwrap();
        assert_eq!(config.misshapen_secrets().len(), config.risks().len(), "{secret:?}");
        for risk in config.risks() {
            let text = format!("{} {}", risk.text, risk.hint);
            assert!(!text.contains("canary"), "{text}");
        }
        written.risks()
    };
    assert_eq!(risks("stripe", "whsec_canary"), "");
    assert_eq!(risks("stripe", "whsec_canary\n"), "");
    assert_eq!(risks("stripe", "whsec_canary\r\n"), "");
    for (secret, code) in [
        (" whsec_canary ", "secret-with-blanks-around"),
        ("whsec_canary\n\n", "secret-with-blanks-around"),
        ("\"whsec_canary\"", "secret-with-quotes"),
        ("'whsec_canary'", "secret-with-quotes"),
        ("whsec_\rcanary", "secret-with-control-characters"),
        ("whsec_ canary", "secret-with-blanks-inside"),
        ("sk_live_canary", "secret-prefix"),
    ] {
        let risk = format!("routes.hooks.secrets.0: {code}\n");
        assert_eq!(risks("stripe", secret), risk, "{secret:?}");
    }
    assert_eq!(risks("paddle", "canary"), "routes.hooks.secrets.0: secret-prefix\n");
    assert_eq!(risks("twitch", "canary"), "routes.hooks.secrets.0: secret-length\n");
    assert_eq!(risks("telegram", "canary+"), "routes.hooks.secrets.0: secret-characters\n");
    assert_eq!(risks("github", "any words, canary"), "");
}

#[test]
fn the_shape_of_the_secrets_of_a_sender_of_ones_own_is_a_fact() {
    let own = |facts: &str| {
        let table = "[providers.acme]\nkey.event.type = \"json:/type\"\nsignature = { scheme = \"hmac\", \
                     header = \"x-acme\" }\n";
        from("acme", &format!("{WITH_SECRET}{table}facts = {{ {facts} }}\n"))
    };
    assert_eq!(own("secret_prefix = [\"whsec_\"]").risks(), "");
    let other = own("secret_prefix = [\"acme_\", \"test_\"]").config().unwrap().risks();
    assert_eq!(
        other[0].text,
        "it does not begin with `acme_` or `test_`, as those of acme do: every event may be a 401"
    );
    assert_snapshot!(own("secret_length = \"9-3\", secret_characters = \"all\"").problems(), @"
    the configuration has 2 problems
      onceward.toml:9: `providers.acme.facts.secret_characters`: expected `hex` or `url-safe`, found `all`
        hint: `onceward providers NAME` shows what a built-in one knows of its sender
      onceward.toml:9: `providers.acme.facts.secret_length`: expected a number of characters such as `32`, or two such as `10-100`, found `9-3`
        hint: `onceward providers NAME` shows what a built-in one knows of its sender
    ");
}
