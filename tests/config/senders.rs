//! Routes that take settings from the provider of their sender.

use std::time::Duration;

use http::StatusCode;
use insta::assert_snapshot;
use onceward::proxy::Mode;

use super::{WITH_SECRET, Written, from};

#[test]
fn a_provider_is_all_that_a_route_has_to_say() {
    let route = from("stripe", WITH_SECRET).route("hooks");
    assert_eq!(route.key.event.id.to_string(), "json:/id");
    assert_eq!(route.key.event.source, "hooks");
    assert!(route.key.headers.is_empty());
    assert_eq!(route.policy.durations.retention, Duration::from_hours(31 * 24));
    assert_eq!(route.in_flight_status, StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(route.provider.unwrap().name, "stripe");
    assert_eq!(route.secrets.len(), 1);
    assert_eq!((route.mode, route.tolerance), (Mode::Enforce, None));
}

/// A preset wins over `[defaults]`, and a setting of the route over the preset.
#[test]
fn a_route_is_above_its_preset_and_the_preset_above_the_defaults() {
    let more = "retention = \"40d\"\nkey.scope = []\n[routes.hooks.replay]\ndrop_headers = [\"x\"]\n\
                [defaults]\nretention = \"1h\"\nanswer_within = \"1s\"\nlease = \"20s\"\nforward_key = \"x-key\"\n";
    let text = format!("{WITH_SECRET}{more}");
    let effective = from("stripe", &text)
        .variable("ONCEWARD_ROUTES__HOOKS__UNCERTAIN_STATUS", "429")
        .effective();
    for line in [
        "routes.hooks.retention = \"40d\"  # onceward.toml:6",
        "routes.hooks.key.scope = [\"json:/account?\", \"json:/api_version?\"]  # onceward.toml:7",
        "routes.hooks.key.event.id = \"json:/id\"  # preset stripe",
        "routes.hooks.key.header = []  # preset stripe",
        "routes.hooks.answer_within = \"8s\"  # preset stripe",
        "routes.hooks.uncertain_status = 429  # ONCEWARD_ROUTES__HOOKS__UNCERTAIN_STATUS",
        "routes.hooks.lease = \"20s\"  # onceward.toml:13",
        "routes.hooks.forward_key = \"x-key\"  # onceward.toml:14",
        "routes.hooks.waiters_max = 32  # built-in",
        "routes.hooks.secrets = ***  # onceward.toml:5",
    ] {
        // A number in a variable is shown as the setting reads it.
        assert!(effective.lines().any(|found| found == line), "no `{line}` in\n{effective}");
    }
    assert!(!effective.contains("providers."), "{effective}");
}

#[test]
fn a_provider_of_ones_own_is_used_by_name() {
    let own = r#"secrets = [{ env = "SECRET" }]
[providers.acme]
title = "Acme"
retention = "3d"
key.event = { id = "header:x-acme-id", type = "json:/kind" }
signature = { scheme = "hmac", header = "x-acme-signature" }
[[providers.acme.handshakes]]
json = { kind = "ping" }
[providers.acme.facts]
patience = "4s"
"#;
    let written = from("acme", own);
    let route = written.route("hooks");
    let provider = route.provider.unwrap();
    assert_eq!((provider.title.as_str(), provider.handshakes.len()), ("Acme", 1));
    assert_eq!(provider.facts.patience, Some(Duration::from_secs(4)));
    assert!(provider.signature.is_some());
    assert_eq!(route.key.event.id.to_string(), "header:x-acme-id");
    let effective = written.effective();
    for line in [
        "routes.hooks.retention = \"3d\"  # onceward.toml:8",
        "routes.hooks.key.event.type = \"json:/kind\"  # onceward.toml:9",
        "routes.hooks.key.header = [\"x-idempotency-key\", \"idempotency-key\"]  # built-in",
    ] {
        assert!(effective.lines().any(|found| found == line), "no `{line}` in\n{effective}");
    }
}

/// Zendesk gives an event up after a 502 or 504.
#[test]
fn a_sender_that_gives_up_after_a_502_has_a_status_in_its_place() {
    let route = from("zendesk", "verify = false\n").route("hooks");
    assert_eq!(route.retry_status, Some(StatusCode::SERVICE_UNAVAILABLE));
    let instead = |status| route.in_place_of(StatusCode::from_u16(status).unwrap()).as_u16();
    assert_eq!([500, 502, 504].map(instead), [503; 3]);
    assert_eq!([200, 404, 429, 503].map(instead), [200, 404, 429, 503]);

    let own = "retry_status = 502\n[providers.acme.facts]\nfinal = [\"6xx\"]\n";
    assert_snapshot!(from("acme", own).problems(), @"
    the configuration has 2 problems
      onceward.toml:5: `routes.hooks.retry_status`: expected 409, 425, 429, 500 or 503, found the number 502
        hint: `retry_status = 503`
      onceward.toml:7: `providers.acme.facts.final.0`: expected a status from 200 to 599 such as `2xx` or `504`, found `6xx`
        hint: `onceward providers NAME` shows what a built-in one knows of its sender
    ");
}

#[test]
fn a_preset_can_be_changed_setting_by_setting() {
    let own = format!("{WITH_SECRET}[providers.stripe]\nretention = \"60d\"\n");
    let route = from("stripe", &own).route("hooks");
    assert_eq!(route.policy.durations.retention, Duration::from_hours(60 * 24));
    assert_eq!(route.key.event.id.to_string(), "json:/id");
}

#[test]
fn an_unknown_provider_has_a_suggestion() {
    assert_snapshot!(from("strpe", WITH_SECRET).problems(), @"
    the configuration has 1 problem
      onceward.toml:4: `routes.hooks.provider`: expected the name of a provider, found `strpe`
        hint: did you mean `stripe`?
    ");
    assert_snapshot!(from("unheard-of", "").problems(), @"
    the configuration has 1 problem
      onceward.toml:4: `routes.hooks.provider`: expected the name of a provider, found `unheard-of`
        hint: `onceward providers` lists them; `[providers.NAME]` makes another
    ");
}

/// Without a secret nobody could tell a forged event from a real one.
#[test]
fn a_provider_that_signs_needs_a_secret_or_an_admission_that_it_has_none() {
    assert_snapshot!(from("stripe-thin", "").problems(), @r#"
    the configuration has 1 problem
      onceward.toml:1: `routes.hooks.secrets`: expected the signing secret of `stripe-thin`, found none
        hint: `secrets = [{ env = "STRIPE_THIN_WEBHOOK_SECRET" }]`; without a check: `verify = false`
    "#);
    assert_snapshot!(from("paypal", "secrets = []\n").problems(), @r#"
    the configuration has 1 problem
      onceward.toml:5: `routes.hooks.secrets`: expected the id of the webhook of `paypal`, found none
        hint: `secrets = [{ env = "PAYPAL_WEBHOOK_SECRET" }]`; without a check: `verify = false`
    "#);
    let unchecked = from("stripe", "verify = false\n").route("hooks");
    assert!(unchecked.secrets.is_empty() && unchecked.provider.is_some());
    assert!(from("chargebee", "").route("hooks").secrets.is_empty());
}

#[test]
fn secrets_that_nobody_could_use_are_a_problem() {
    assert_snapshot!(from("chargebee", WITH_SECRET).problems(), @"
    the configuration has 1 problem
      onceward.toml:5: `routes.hooks.secrets`: expected a `provider` that signs, found `chargebee`, which does not sign
        hint: name the sender with `provider`, or take `secrets` out
    ");
    assert_snapshot!(from("adyen", WITH_SECRET).problems(), @"
    the configuration has 1 problem
      onceward.toml:5: `routes.hooks.secrets.0`: expected hexadecimal, found a secret that is not
        hint: the sender shows it where the webhook is set up; copy it as it is
    ");
    let file = "[routes.a]\npath = \"/\"\nupstream = \"http://a\"\nsecrets = [\"whsec_canary\"]\n";
    assert_snapshot!(Written::file(file).problems(), @r#"
    the configuration has 2 problems
      onceward.toml:4: `routes.a.secrets`: expected a `provider` that signs, found no provider
        hint: name the sender with `provider`, or take `secrets` out
      onceward.toml:4: `routes.a.secrets.0`: expected `{ env = "NAME" }` or `{ file = "path" }`, found a string
        hint: `{ env = "NAME" }` names a variable that holds it, `{ file = "/path" }` a file
    "#);
    assert_snapshot!(from("stripe", "secrets = { env = \"SECRET\" }\n").problems(), @r#"
    the configuration has 1 problem
      onceward.toml:5: `routes.hooks.secrets`: expected a list, found a table
        hint: `{ env = "NAME" }` names a variable that holds it, `{ file = "/path" }` a file
    "#);
}

/// Square and others sign the URL that they call, which a proxy cannot know from the request.
#[test]
fn what_signs_the_url_needs_to_know_it() {
    assert_snapshot!(from("square", WITH_SECRET).problems(), @r#"
    the configuration has 1 problem
      onceward.toml:1: `routes.hooks.public_url`: expected the URL as senders see it, which `square` signs, found none
        hint: `public_url = "https://hooks.example.com"` here or in `[server]`
    "#);
    let own = format!("{WITH_SECRET}public_url = \"https://hooks.example.com\"\n");
    assert!(from("square", &own).route("hooks").public_url.is_some());
    let shared = format!("{WITH_SECRET}[server]\npublic_url = \"https://hooks.example.com\"\n");
    assert!(from("square", &shared).route("hooks").public_url.is_some());
    assert!(from("square", "verify = false\n").route("hooks").public_url.is_none());
}

#[test]
fn mistakes_in_a_provider_have_their_place() {
    let own = r#"[routes.orders]
path = "/"
upstream = "http://a"
[defaults]
provider = "stripe"
[providers.acme]
retention = "soon"
upstream = "http://b"
signature = { scheme = "hmca" }
[[providers.acme.handshakes]]
signed = false
[[providers.acme.handshakes]]
header = { "x y" = "ping" }
[[providers.acme.handshakes]]
json = { type = "ping" }
empty_body = true
[providers.acme.facts]
patience = 4
"#;
    assert_snapshot!(Written::file(own).problems(), @r#"
    the configuration has 8 problems
      onceward.toml:5: `defaults.provider`: expected it in a route, found it for all of them
        hint: move it into each `[routes.NAME]` that it is meant for
      onceward.toml:7: `providers.acme.retention`: expected a duration such as `500ms`, `30s`, `5m`, `72h` or `30d`, found `soon`
        hint: `onceward providers NAME` shows what a built-in one knows of its sender
      onceward.toml:8: `providers.acme.upstream`: expected a known key, found `upstream`
        hint: once this is mended, `onceward check --config FILE --effective` lists the keys
      onceward.toml:9: `providers.acme.signature.scheme`: expected `hmac`, `ed25519`, `ecdsa-p256`, `rsa`, `token`, `standard-webhooks`, `twilio`, `hubspot`, `adyen-items`, `braintree`, `mailgun`, `paypal`, `plaid` or `sns`, found `hmca`
        hint: `onceward providers NAME` shows what a built-in one knows of its sender
      onceward.toml:10: `providers.acme.handshakes.0`: expected at least one of `header`, `query`, `json` and `form`, found none
        hint: say what such a request has that no event has: `json = { type = "ping" }`
      onceward.toml:13: `providers.acme.handshakes.1.header."x y"`: expected the name of a header, found `x y`
        hint: `onceward providers NAME` shows what a built-in one knows of its sender
      onceward.toml:14: `providers.acme.handshakes.2`: expected one of `json`, `form` and `empty_body`, found several
        hint: keep one of them
      onceward.toml:18: `providers.acme.facts.patience`: expected a duration such as `500ms`, `30s`, `5m`, `72h` or `30d`, found the number 4
        hint: write `"4s"` for seconds; `m`, `h` and `d` are other units
    "#);
    let signed = "[providers.acme.signature]\nscheme = \"hmac\"\nheader = \"x\"\nsigned = [1]\n";
    assert_snapshot!(Written::beside_a_route(signed).problems(), @"
    the configuration has 1 problem
      onceward.toml:4: `providers.acme.signature.signed.0`: expected another value, found the number 1
        hint: `onceward providers NAME` shows what a built-in one knows of its sender
    ");
}

/// Providers have the same kind of name as routes.
#[test]
fn a_provider_has_a_name_as_a_route_has() {
    let own = "[providers.Acme]\ntitle = \"Acme\"\n[providers.\"a b\"]\ntitle = \"AB\"\n";
    assert_snapshot!(Written::beside_a_route(own).problems(), @r#"
    the configuration has 2 problems
      onceward.toml:1: `providers.Acme`: expected a name of 1 to 64 letters a to z, digits, `_` and `-`, found `Acme`
        hint: such as `orders` or `shop-eu`
      onceward.toml:3: `providers."a b"`: expected a name of 1 to 64 letters a to z, digits, `_` and `-`, found `a b`
        hint: such as `orders` or `shop-eu`
    "#);
    let named = "[providers.Acme]\ntitle = \"Acme\"\n";
    assert_snapshot!(from("Acme", named).problems(), @"
    the configuration has 1 problem
      onceward.toml:5: `providers.Acme`: expected a name of 1 to 64 letters a to z, digits, `_` and `-`, found `Acme`
        hint: such as `orders` or `shop-eu`
    ");
}

/// Without the parts of the preset, two of the sender's events would be one.
#[test]
fn a_routes_scope_comes_behind_that_of_its_preset() {
    let scope = |written: Written| -> Vec<String> {
        written.route("hooks").key.scope.iter().map(ToString::to_string).collect()
    };
    let preset = scope(from("cloudevents", ""));
    assert!(!preset.is_empty());
    let added = format!("key.scope = [\"header:x-tenant\", \"{}\"]\n", preset[0]);
    let both: Vec<_> = preset.iter().cloned().chain(["header:x-tenant".to_owned()]).collect();
    assert_eq!(scope(from("cloudevents", &added)), both);
    let variable = "ONCEWARD_ROUTES__HOOKS__KEY__SCOPE";
    let by_variable = from("cloudevents", "").variable(variable, "header:x-tenant");
    assert_eq!(scope(by_variable), both);
    // A smaller scope has to be a statement about the sender, and not about the route.
    let less = "[providers.cloudevents]\nkey.scope = []\n";
    assert_eq!(scope(from("cloudevents", less)), [] as [String; 0]);
    let event = from("cloudevents", "key.event.id = \"json:/own\"\nkey.header = [\"x-k\"]\n");
    let route = event.route("hooks");
    assert_eq!(route.key.event.id.to_string(), "json:/own");
    assert_eq!(route.key.headers, ["x-k"]);
    assert_eq!(route.key.event.kind, from("cloudevents", "").route("hooks").key.event.kind);
}

/// Each scheme takes a few of the settings of all schemes.
#[test]
fn an_unknown_key_of_a_signature_is_told_those_of_its_scheme() {
    let own = |signature: &str| {
        from("acme", &format!("{WITH_SECRET}[providers.acme]\nsignature = {{ {signature} }}\n"))
            .problems()
    };
    let token = own("scheme = \"token\", header = \"x\", algorithm = \"sha256\"");
    let known = "hint: known here: `scheme`, `name`, `accept`, `carries`, `otherwise`, `header`, `prefix`, `encoding`";
    assert!(token.contains(known), "{token}");
    let hmac = own("scheme = \"hmac\", header = \"x\", algorithm = \"sha256\"");
    for key in ["`signed`", "`timestamp`", "`hash`", "`tolerance`"] {
        assert!(hmac.contains(key), "{hmac}");
    }
    assert!(
        own("scheme = \"hmac\", header = \"x\", hashh = \"sha1\"").contains("did you mean `hash`?")
    );
}
