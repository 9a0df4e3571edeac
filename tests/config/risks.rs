//! Risks and notes: what is allowed, and still may not be meant.

use insta::assert_snapshot;
use onceward::config::Finding;

use super::{TYPED, WITH_SECRET, Written, from};

#[test]
fn what_may_not_be_meant_is_a_risk() {
    let text = r#"
[server]
trusted_proxies = ["0.0.0.0/0"]
[store.memory]
[defaults]
lease = "3s"
hold_for = "30s"
when_in_flight = "wait"
when_store_fails = "forward"
when_key_missing = "forward"
"#;
    assert_snapshot!(Written::beside_a_route(text).risks(), @"
    server.trusted_proxies: everybody-trusted
    store.memory: store-in-memory
    routes.orders.when_in_flight: wait-without-limit
    routes.orders.lease: lease-without-room
    routes.orders.hold_for: hold-below-attempt
    routes.orders.when_store_fails: forwards-without-store
    routes.orders.when_key_missing: forwards-without-key
    routes.orders.provider: signature-unchecked
    ");
    assert_eq!(
        Written::beside_a_route("[store.embedded]\ndurability = \"os\"")
            .config()
            .unwrap()
            .risks()
            .len(),
        2
    );
    assert_eq!(
        Written::beside_a_route("").risks(),
        "routes.orders.provider: signature-unchecked\n"
    );
}

#[test]
fn a_share_of_each_peer_is_a_risk_where_no_proxy_is_known() {
    let share = "[server.limits]\nper_peer_max = 0.1\n";
    let risks = Written::beside_a_route(share).risks();
    let of_a_share = "server.limits.per_peer_max: peer-is-a-proxy\n";
    assert!(risks.contains(of_a_share), "{risks}");
    let known = format!("[server]\ntrusted_proxies = [\"10.0.0.0/8\"]\n{share}");
    assert!(!Written::beside_a_route(&known).risks().contains(of_a_share));
}

#[test]
fn a_route_that_its_sender_will_not_take_well_is_a_risk() {
    let own = "retention = \"1h\"\nanswer_within = \"10s\"\nin_flight_status = 409\n\
               uncertain_status = 429\nwhen_in_flight = \"refuse\"\nrequest_bytes_max = \"64KiB\"\n";
    assert_snapshot!(from("bitbucket", &format!("{WITH_SECRET}{own}")).risks(), @"
    routes.hooks.answer_within: answer-after-patience
    routes.hooks.in_flight_status: status-not-retried
    routes.hooks.uncertain_status: status-not-retried
    routes.hooks.request_bytes_max: event-too-large
    ");
    assert_snapshot!(from("shopify", &format!("{WITH_SECRET}{own}")).risks(), @"
    routes.hooks.retention: retention-below-retries
    routes.hooks.answer_within: answer-after-patience
    routes.hooks.when_in_flight: refusals-count-as-failures
    ");
    let unwaited = from("slack", &format!("{WITH_SECRET}answer_within = \"\"\n"))
        .variable("SECRET", "8f742231b10e8888abcd99baa0c1e0a5");
    assert_snapshot!(unwaited.risks(), @"routes.hooks.answer_within: answer-after-patience");
}

#[test]
fn a_key_that_names_something_else_than_the_event_is_a_risk() {
    let id = |selector: &str| format!("{WITH_SECRET}key.event.id = \"{selector}\"\n");
    assert_snapshot!(from("stripe", &id("json:/data/object/id")).risks(), @"routes.hooks.key.event: key-not-the-event");
    assert_snapshot!(from("shopify", &id("header:x-shopify-event-id?")).risks(), @"routes.hooks.key.event: key-not-the-event");
    let header = format!("{WITH_SECRET}key.header = [\"paypal-transmission-id\"]\n");
    assert_snapshot!(from("paypal", &header).variable("SECRET", "8PT597110X687430LKGECATA").risks(), @"routes.hooks.key.header: key-not-the-event");
    assert_snapshot!(from("mollie-classic", "replay.remember = \"retention\"\n").risks(), @"
    routes.hooks.retention: retention-below-retries
    routes.hooks.key.event: key-not-the-event
    ");
}

/// A sender that gives several events of an order one id would lose the second one.
#[test]
fn an_event_of_a_sender_that_nobody_knows_needs_a_type() {
    let route = |more: &str| {
        let start = "[routes.orders]\npath = \"/orders\"\nupstream = \"http://a\"\n";
        Written::file(&format!("{start}{more}")).risks()
    };
    let untyped = "routes.orders.key.event: event-without-type\n";
    assert!(route("").contains(untyped));
    let own = "provider = \"acme\"\n[providers.acme]\nkey.event.id = \"json:/n\"\n";
    assert!(route(own).contains(untyped));
    assert!(!route(TYPED).contains(untyped));
    assert!(!route("fingerprint.over = [\"body\"]\n").contains(untyped));
    assert!(!from("stripe", WITH_SECRET).risks().contains("event-without-type"));
}

#[test]
fn check_says_which_methods_pass_unverified() {
    let methods = "routes.hooks.methods: methods-unverified\n";
    assert!(from("stripe", WITH_SECRET).notes().contains(methods));
    let named = "methods = [\"POST\", \"GET\", \"HEAD\"]\n";
    let config = from("stripe", &format!("{WITH_SECRET}{named}")).config().unwrap();
    let notes = config.notes();
    let note = notes.iter().find(|note| note.code == "methods-unverified").unwrap();
    assert!(note.text.contains("OPTIONS without a body are forwarded"), "{}", note.text);
    assert!(!from("stripe", "verify = false\n").notes().contains(methods));
    assert!(!from("cloudevents", "").notes().contains(methods));
}

#[test]
fn a_502_503_or_504_that_ends_an_event_is_a_risk() {
    let own = |facts: &str, more: &str| {
        from("acme", &format!("{more}[providers.acme]\n[providers.acme.facts]\n{facts}\n")).risks()
    };
    let given_up = "routes.hooks.retry_status: final-statuses\n";
    for facts in ["final = [\"503\"]", "final = [\"504\"]", "retried = [\"429\"]"] {
        assert!(own(facts, "").contains(given_up), "{facts}");
        assert!(!own(facts, "retry_status = 429\n").contains(given_up), "{facts}");
    }
    for facts in ["", "final = [\"500\"]", "retried = [\"5xx\"]", "retried = []"] {
        assert!(!own(facts, "").contains(given_up), "{facts}");
    }
}

#[test]
fn a_time_that_does_not_fit_the_others_is_a_risk() {
    let risks = |text: &str| {
        Written::file(&format!(
            "[server]\n{text}\n[admin]\ntoken = {{ env = \"T\" }}\n[routes.hooks]\npath = \"/\"\n\
             upstream = \"http://a\"\nverify = false\n{TYPED}"
        ))
        .variable("T", "0123456789abcdef")
    };
    assert_eq!(risks("").risks(), "");
    assert_eq!(
        risks("shutdown_timeout = \"59s\"").risks(),
        "server.shutdown_timeout: shutdown-below-attempt\n"
    );
    assert_eq!(risks("shutdown_timeout = \"60s\"").risks(), "");
    let late = risks("").variable("ONCEWARD_ROUTES__HOOKS__ANSWER_WITHIN", "61s");
    assert_eq!(late.risks(), "routes.hooks.answer_within: answer-after-attempt\n");
    let token = risks("").variable("T", "0123456789abcde");
    assert_eq!(token.risks(), "admin.token: admin-token-short\n");
    let said = token.config().unwrap().risks();
    assert!(!format!("{said:?}").contains("0123"), "{said:?}");
}

/// If the sender never signs, a missing check is a note. Otherwise it is a risk.
#[test]
fn a_route_without_any_signature_check_is_a_risk() {
    let plain = format!("[routes.hooks]\npath = \"/\"\nupstream = \"http://a\"\n{TYPED}");
    assert_eq!(Written::file(&plain).risks(), "routes.hooks.provider: signature-unchecked\n");
    let own = from("acme", &format!("{TYPED}[providers.acme]\ntitle = \"Acme\"\n"));
    assert_eq!(own.risks(), "routes.hooks.provider: signature-unchecked\n");
    assert_eq!(from("chargebee", "").risks(), "");
    assert_eq!(from("stripe", WITH_SECRET).risks(), "");
    let proxy = format!("{plain}mode = \"pass\"\n");
    assert_eq!(Written::file(&proxy).risks(), "");
}

/// The simulator is for trials: everybody who has an account can send what it signs.
#[test]
fn the_secret_of_a_simulator_is_a_risk() {
    let found = |secret: &str| from("paypal", WITH_SECRET).variable("SECRET", secret).risks();
    assert!(found("WEBHOOK_ID").contains("routes.hooks.secrets: secret-of-a-simulator"));
    assert!(!found("8PT597110X687430LKGECATA").contains("simulator"));
}

#[test]
fn a_value_that_no_signature_has_is_a_risk() {
    let found = |name: &str| {
        let key = format!("key.event.id = \"signature:{name}\"\n");
        from("standard-webhooks", &(WITH_SECRET.to_owned() + &key))
            .variable("SECRET", "whsec_Y2FuYXJ5")
            .risks()
    };
    assert!(found("ids").contains("routes.hooks.key: key-never-found"));
    assert!(!found("id").contains("key-never-found"));
}

/// Bytes could be moved from one part to the other under the same signature.
#[test]
fn parts_that_are_signed_side_by_side_are_a_risk() {
    let own = |signature: &str| {
        let table = format!(
            "[providers.acme]\n{TYPED}[providers.acme.signature]\nscheme = \"hmac\"\nheader = \"x-acme\"\n{signature}"
        );
        let of_route = format!("{WITH_SECRET}public_url = \"https://a.example\"\n");
        from("acme", &format!("{of_route}{table}")).risks()
    };
    let found = "routes.hooks.provider: signed-without-separator\n";
    for signed in [r#"["url", "body"]"#, r#"["header:x-id", "body"]"#] {
        assert_eq!(own(&format!("signed = {signed}\n")), found, "{signed}");
    }
    let timed = "timestamp = \"header:x-time\"\ntolerance = \"5m\"\n";
    for safe in [
        "signed = [\"header:x-id\", \"text:.\", \"body\"]\n".to_owned(),
        "signed = [\"url\", \"body\"]\nbody = \"json\"\n".to_owned(),
        format!("signed = [\"timestamp\", \"body\"]\n{timed}"),
    ] {
        assert_eq!(own(&safe), "", "{safe}");
    }
}

#[test]
fn what_cannot_be_helped_is_a_note() {
    assert_snapshot!(from("mollie-classic", "").notes(), @"
    routes.hooks.provider: sender-does-not-sign
    routes.hooks.replay.remember: nothing-remembered
    ");
    assert_snapshot!(from("github", WITH_SECRET).notes(), @"
    routes.hooks.methods: methods-unverified
    routes.hooks.provider: captured-request
    routes.hooks.provider: sender-never-retries
    routes.hooks.provider: facts-unconfirmed
    ");
    assert_snapshot!(from("msgraph", "mode = \"observe\"\n").notes(), @"
    routes.hooks.mode: observing
    routes.hooks.provider: sender-does-not-sign
    routes.hooks.when_key_missing: events-without-key
    routes.hooks.provider: facts-unconfirmed
    ");
    let short = format!("{WITH_SECRET}retention = \"14d\"\n");
    assert_snapshot!(from("stripe", &short).notes(), @"
    routes.hooks.methods: methods-unverified
    routes.hooks.retention: retention-below-resends
    routes.hooks.provider: facts-unconfirmed
    ");
}

/// A route that observes need not be told to begin with that.
#[test]
fn what_is_not_confirmed_is_tried_by_observing_unless_the_route_observes() {
    for (mode, begins) in [("", true), ("mode = \"observe\"\n", false)] {
        let notes = from("msgraph", mode).config().unwrap().notes();
        let note = notes.iter().find(|note| note.code == "facts-unconfirmed").unwrap();
        assert_eq!(note.hint.contains("observe"), begins, "{note:?}");
    }
}

/// All changes of a payment look the same. A change that shares the attempt for the change before
/// it never reaches the upstream.
#[test]
fn sharing_an_attempt_where_events_look_the_same_is_a_risk() {
    let waiting = "when_in_flight = \"wait\"\n";
    assert_snapshot!(from("mollie-classic", waiting).risks(), @"routes.hooks.when_in_flight: events-shared");
    assert_eq!(from("mollie-classic", "").risks(), "");
}

/// Linear seems to keep the first time in its retries, which go on for 8 hours; Stripe signs anew.
#[test]
fn a_tolerance_that_refuses_retries_is_a_risk() {
    let short = format!("{WITH_SECRET}tolerance = \"1m\"\n");
    assert_snapshot!(from("linear", &short).risks(), @"routes.hooks.tolerance: tolerance-below-retries");
    assert_eq!(from("stripe", &short).risks(), "");
    assert_eq!(from("linear", WITH_SECRET).risks(), "");
}

/// The sentence names what the signature does not cover, and for how long a captured request works.
#[test]
fn what_one_captured_request_can_do_is_said() {
    let said = |name: &str, more: &str| {
        let route = from(name, &format!("{WITH_SECRET}{more}")).route("hooks");
        onceward::config::captured(&route).unwrap_or_default()
    };
    assert_snapshot!(said("github", ""), @"nothing signs `header:x-github-delivery`, `header:x-github-event` and `header:x-github-hook-id`: who has captured one request can have it run again under another value, for as long as the secret is valid");
    assert_snapshot!(said("linear", ""), @"nothing signs `header:linear-delivery`: who has captured one request can have it run again under another value, for 8h from its signature on");
    assert_snapshot!(said("zendesk-trigger", ""), @"nothing signs `header:x-zendesk-webhook-invocation-id` and `header:x-zendesk-webhook-id`: who has captured one request can have it run again under another value, for 15m from its signature on");
    assert_snapshot!(said("flutterwave", ""), @"the secret itself is sent along: who has seen one request can make any other, for as long as the secret is valid");
    assert_snapshot!(said("mailgun", ""), @"the signature does not bind the event: who has captured one request can make any event pass, for 9h from its signature on");
    assert_snapshot!(said("checkout", ""), @"who has captured one request can have it run again once it is forgotten, after 91d, for as long as the secret is valid");
    assert_snapshot!(said("zoom", "tolerance = \"30h\"\n"), @"who has captured one request can have it run again once it is forgotten, after 1d, for 30h from its signature on");
    assert_eq!(said("stripe", ""), "");
    assert_eq!(said("zoom", ""), "");
}

/// A handshake that is not signed must not be a way around the signature.
#[test]
fn an_unsigned_handshake_that_an_event_could_wear_is_a_risk() {
    let own = |handshake: &str| {
        let table = "[providers.acme]\nkey.event.type = \"json:/type\"\nsignature = { scheme = \"hmac\", header = \"x-acme\" }\n";
        from("acme", &format!("{WITH_SECRET}{table}handshakes = [{{ {handshake} }}]\n")).risks()
    };
    for open in ["json = { type = \"ping\" }", "header = { x-event = \"ping\" }"] {
        let risks = own(&format!("{open}, signed = false"));
        assert!(risks.starts_with("routes.hooks.provider: handshake-open\n"), "{risks}");
    }
    assert_eq!(own("json = { type = \"ping\" }"), "");
    // Nothing signs the header, so that any event could be sent under it.
    assert_eq!(
        own("header = { x-event = \"ping\" }"),
        "routes.hooks.provider: handshake-by-header\n"
    );
    for exact in [
        "form = { check = \"1\" }, signed = false",
        "json = { test = true }, whole_body = true, signed = false",
        "query = { token = \"*\" }, empty_body = true, signed = false",
        "query = { challenge = \"*\" }, method = \"GET\", signed = false",
    ] {
        assert_eq!(own(exact), "", "{exact}");
    }
}

/// If presets had risks, nobody would look at risks.
#[test]
fn no_preset_is_a_risk_by_itself() {
    for preset in onceward::provider::presets() {
        let unchecked = from(preset.name, "verify = false\n").config().unwrap().risks();
        let others = unchecked.iter().filter(|risk| risk.code != "signature-unchecked");
        assert_eq!(others.collect::<Vec<_>>(), Vec::<&Finding>::new(), "{}", preset.name);
    }
}
