//! Findings about decisions: each is made once, and its hint has a value that helps.

use onceward::config::Finding;

use super::{TYPED, WITH_SECRET, Written, from};

/// `--strict` fails on risks, so that what an operator has decided and written must not be one.
#[test]
fn a_signature_that_is_not_checked_by_decision_is_a_note() {
    let note = "routes.hooks.verify: signature-unchecked\n";
    let plain =
        format!("[routes.hooks]\npath = \"/\"\nupstream = \"http://a\"\nverify = false\n{TYPED}");
    let own = format!("verify = false\n{TYPED}[providers.acme]\ntitle = \"Acme\"\n");
    for written in [from("stripe", "verify = false\n"), Written::file(&plain), from("acme", &own)] {
        assert_eq!(written.risks(), "");
        assert!(written.notes().contains(note), "{}", written.notes());
    }
    let undecided = Written::file(&plain.replace("verify = false\n", ""));
    let risks = undecided.config().unwrap().risks();
    assert!(risks[0].hint.contains("`verify = false`"), "{risks:?}");
    assert!(!undecided.notes().contains("signature-unchecked"));
}

/// A process with a store of its own knows after a crash that nobody holds a lease any more.
#[test]
fn one_lease_fits_the_store_and_the_attempt() {
    let route = |more: &str| {
        let start = "[routes.hooks]\npath = \"/\"\nupstream = \"http://a\"\nverify = false\n";
        Written::file(&format!("{start}{TYPED}{more}"))
    };
    let redis = "[store.redis]\nurls = [\"redis://a:6379\"]\n";
    assert_eq!(route("attempt_timeout = \"4s\"\n").risks(), "");
    let above = "routes.hooks.lease: lease-above-attempt\n";
    let without = "routes.hooks.lease: lease-without-room\n";
    for (timeout, lease, said) in [
        ("4s", "15s", above),
        ("4s", "6s", ""),
        ("4s", "4s", without),
        ("10s", "15s", above),
        ("10s", "10s", ""),
        ("60s", "5s", without),
    ] {
        let times = format!("attempt_timeout = \"{timeout}\"\nlease = \"{lease}\"\n");
        let risks = route(&format!("{times}{redis}")).config().unwrap().risks();
        assert_eq!(super::codes(&risks), said, "{timeout} {lease}");
        for risk in risks {
            let lease = risk.hint.split('"').nth(1).unwrap();
            let helped = format!("attempt_timeout = \"{timeout}\"\nlease = \"{lease}\"\n{redis}");
            assert_eq!(route(&helped).risks(), "", "{timeout} {}", risk.hint);
        }
        let passing = route(&format!("mode = \"pass\"\n{times}{redis}"));
        assert_eq!(passing.risks(), "", "{timeout} {lease}");
    }
}

/// One line of `[defaults]` is one thing to decide, however many routes it is for.
#[test]
fn a_risk_from_one_line_of_the_defaults_is_told_once() {
    let routes = ["a", "b"].map(|name| {
        format!(
            "[routes.{name}]\npath = \"/{name}\"\nupstream = \"http://a\"\nverify = false\n{TYPED}"
        )
    });
    let told = |defaults: &str, more: &str| {
        let written = Written::file(&format!("[defaults]\n{defaults}\n{}{more}", routes.concat()));
        let written = written.variable("SECRET", "whsec_canary");
        let sources = written.sources().unwrap();
        let placed = sources.located(sources.check().unwrap().risks());
        let line = |(place, risk): &(_, Finding)| format!("{place}: {}: {}\n", risk.key, risk.code);
        written.typed(&placed.iter().map(line).collect::<Vec<_>>().concat())
    };
    for (setting, code) in [
        ("lease = \"3s\"", "lease-without-room"),
        ("when_store_fails = \"forward\"", "forwards-without-store"),
        ("when_key_missing = \"forward\"", "forwards-without-key"),
        ("when_in_flight = \"wait\"", "wait-without-limit"),
    ] {
        let name = setting.split(' ').next().unwrap();
        assert_eq!(told(setting, ""), format!("onceward.toml:2: defaults.{name}: {code}\n"));
    }
    // Two routes with one built-in value are told once too.
    let redis = "[store.redis]\nurls = [\"redis://a:6379\"]\n";
    let built_in = told("attempt_timeout = \"10s\"", redis);
    assert_eq!(built_in, "built-in: defaults.lease: lease-above-attempt\n");
    let own = told("", "lease = \"3s\"\n");
    assert_eq!(own, "onceward.toml:13: routes.b.lease: lease-without-room\n");
}

/// For a sender without a preset, the hint proposes a value alone: there is no preset to leave it
/// to.
#[test]
fn a_hint_names_a_value_that_helps() {
    let facts = "[providers.acme]\nkey.event.type = \"json:/type\"\n[providers.acme.facts]\n\
                 patience = \"10s\"\nretry_window = \"24h\"\nretried = [\"5xx\"]\nlargest_event = \"3MiB\"\n";
    let hints = |of_route: &str| {
        let config = from("acme", &format!("verify = false\n{of_route}{facts}")).config().unwrap();
        config.risks().into_iter().map(|risk| risk.hint.into_owned()).collect::<Vec<_>>()
    };
    let said = hints("");
    assert_eq!(
        said,
        [
            "`retention = \"2d\"`",
            "`answer_within = \"8s\"`",
            "`in_flight_status = 503`",
            "`request_bytes_max = \"3MiB\"`"
        ]
    );
    let settings: Vec<String> = said.iter().map(|hint| hint.replace('`', "") + "\n").collect();
    assert_eq!(hints(&settings.concat()), Vec::<String>::new());
    let of_a_preset = from("shopify", &format!("{WITH_SECRET}retention = \"1h\"\n"));
    let risks = of_a_preset.config().unwrap().risks();
    assert_eq!(risks[0].hint, "`retention = \"1d\"`, or leave it to the preset");
}

#[test]
fn a_header_that_nobody_signs_is_left_out_of_the_key_of_a_sender_of_ones_own() {
    let own = |key: &str| {
        let table = format!(
            "{WITH_SECRET}[providers.acme]\n{key}key.event.type = \"json:/type\"\n\
             signature = {{ scheme = \"hmac\", header = \"x-acme\" }}\n"
        );
        let notes = from("acme", &table).config().unwrap().notes();
        notes.into_iter().find(|note| note.code == "captured-request").unwrap()
    };
    let open = own("");
    assert!(open.text.contains("nothing signs `header:x-idempotency-key`"), "{}", open.text);
    assert!(open.hint.starts_with("`key.header = []`"), "{}", open.hint);
    let closed = own("key.header = []\n");
    assert!(!closed.text.contains("nothing signs"), "{}", closed.text);
}
