//! `onceward init` and `onceward providers`.

use insta::assert_snapshot;
use rustix::process::Signal;
use serde_json::{Value, json};

use super::{Shell, get};

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
    // A second `init` does not overwrite the file.
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
      --secret-file: `routes.default.secrets.0.file`: expected the path of a file that holds the secret, found one that cannot be read: there is no such file
        hint: a file that Onceward can read, with the secret and nothing else in it
    ");
    let secret = Shell::with("secret", "whsec_1\n").anywhere();
    let serving = secret.serves(&format!("{serve} --secret-file secret"));
    assert_eq!(get(serving.admin(), "/readyz"), 200);
    assert_eq!(serving.ends_by(Signal::TERM).0, Some(0));
}

#[test]
fn providers_shows_a_sender() {
    let shell = Shell::new();
    let list = shell.types("providers").printed(0);
    assert!(list.contains("stripe             Stripe (snapshot events, v1)\n"), "{list}");
    assert_snapshot!(shell.types("providers lemonsqueezy").printed(0), @"
    Lemon Squeezy

      The body's digest is the key: events before 2025 have no id. All retries are over after 2.6 min,
      so copies wait for the outcome: a refusal would use up a retry.

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
    for line in ["providers strip", "init --provider strip"] {
        let said = shell.types(line).complained(2);
        let expected = "error: no provider `strip` is built in\n  hint: did you mean `stripe`?\n";
        assert_eq!(said, expected);
    }
    assert_snapshot!(shell.types("init --provider nope").complained(2), @"
    error: no provider `nope` is built in
      hint: `onceward providers` lists those that are
    ");
}
