//! What is allowed, but may not be meant.

use insta::assert_snapshot;
use onceward::config::Risk;

use super::{WITH_SECRET, Written, from};

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
    server.trusted_proxies: every sender can claim any address in `X-Forwarded-For`
    store.memory: every operation is forgotten at exit, so that a later copy runs again
    routes.orders.answer_within: unset: a copy waits up to 60s, and most senders hang up sooner
    routes.orders.lease: one renewal that takes the store 2s leaves no room for another
    routes.orders.hold_for: an operation is given free while the upstream may still work on it
    routes.orders.when_store_fails: while the store fails, every copy is forwarded
    routes.orders.when_key_missing: without a key every copy is forwarded
    ");
    assert_eq!(
        Written::beside_a_route("[store.embedded]\ndurability = \"os\"")
            .config()
            .unwrap()
            .risks()
            .len(),
        1
    );
    assert_eq!(Written::beside_a_route("").risks(), "");
}

/// C04, C12, C93
#[test]
fn a_route_that_its_sender_will_not_take_well_is_a_risk() {
    let own = "retention = \"1h\"\nanswer_within = \"10s\"\nin_flight_status = 409\n\
               uncertain_status = 429\nwhen_in_flight = \"refuse\"\nrequest_bytes_max = \"64KiB\"\n";
    assert_snapshot!(from("bitbucket", &format!("{WITH_SECRET}{own}")).risks(), @"
    routes.hooks.answer_within: Bitbucket Cloud hangs up after 10s
    routes.hooks.in_flight_status: the sender does not try again after a 409: if the attempt fails, the event is lost
    routes.hooks.uncertain_status: the sender does not try again after a 429: if the attempt fails, the event is lost
    routes.hooks.request_bytes_max: an event of Bitbucket Cloud may have 262144 bytes
    ");
    assert_snapshot!(from("shopify", &format!("{WITH_SECRET}{own}")).risks(), @"
    routes.hooks.retention: Shopify tries again for 4h: a later copy runs again
    routes.hooks.answer_within: Shopify hangs up after 5s
    routes.hooks.when_in_flight: a refused copy is a failure to the sender, which stops after: 8 failures in a row: the subscription is deleted
    ");
    let unwaited = from("slack", &format!("{WITH_SECRET}answer_within = \"\"\n"));
    assert_snapshot!(unwaited.risks(), @"routes.hooks.answer_within: Slack (Events API) hangs up after 3s");
}

/// C15, C20, C22
#[test]
fn a_key_that_names_something_else_than_the_event_is_a_risk() {
    let id = |selector: &str| format!("{WITH_SECRET}key.event.id = \"{selector}\"\n");
    assert_snapshot!(from("stripe", &id("json:/data/object/id")).risks(), @"routes.hooks.key.event: `json:/data/object/id` is the object, of which there are many events: what has the same is taken for a copy");
    assert_snapshot!(from("shopify", &id("header:x-shopify-event-id?")).risks(), @"routes.hooks.key.event: `header:x-shopify-event-id?` is the merchant's action, which several topics share: what has the same is taken for a copy");
    let header = format!("{WITH_SECRET}key.header = [\"paypal-transmission-id\"]\n");
    assert_snapshot!(from("paypal", &header).variable("SECRET", "8PT597110X687430LKGECATA").risks(), @"routes.hooks.key.header: `header:paypal-transmission-id` is the delivery, which may change on a retry: what has the same is taken for a copy");
    assert_snapshot!(from("mollie-classic", "replay.remember = \"retention\"\n").risks(), @"
    routes.hooks.retention: Mollie (classic) tries again for 26h: a later copy runs again
    routes.hooks.key.event: `form:id` is the object, of which there are many changes: what has the same is taken for a copy
    ");
}

#[test]
fn a_signature_that_is_not_checked_is_a_risk() {
    assert_snapshot!(from("stripe", "verify = false\n").risks(), @"routes.hooks.verify: who knows the URL can send what looks like an event of Stripe (snapshot events, v1)");
}

#[test]
fn what_cannot_be_helped_is_a_note() {
    assert_snapshot!(from("mollie-classic", "").notes(), @"
    routes.hooks.provider: no signature of Mollie (classic) can be checked
    routes.hooks.replay.remember: two events of Mollie (classic) may look the same: copies at the same moment share one attempt, a later one is forwarded
    ");
    assert_snapshot!(from("github", WITH_SECRET).notes(), @"
    routes.hooks.provider: GitHub does not try again: what fails is lost unless a person sends it again
    routes.hooks.provider: of GitHub it is not confirmed: for how long a delivery can be asked for again; the largest event (25 MB)
    ");
    assert_snapshot!(from("msgraph", "mode = \"observe\"\n").notes(), @"
    routes.hooks.mode: every copy is forwarded; what would have become of it is reported
    routes.hooks.provider: no signature of Microsoft Graph (change notifications) can be checked
    routes.hooks.when_key_missing: of Microsoft Graph (change notifications) every copy without a key is forwarded
    routes.hooks.provider: of Microsoft Graph (change notifications) it is not confirmed: which statuses it tries again; whether a retry changes the body
    ");
    let short = format!("{WITH_SECRET}retention = \"14d\"\n");
    assert_snapshot!(from("stripe", &short).notes(), @"
    routes.hooks.retention: a person can have Stripe (snapshot events, v1) send an event again for 30d: it then runs again
    routes.hooks.provider: of Stripe (snapshot events, v1) it is not confirmed: how long it waits for an answer: third parties say 10 to 30 s
    ");
    let refused = "when_in_flight = \"refuse\"\n";
    assert_snapshot!(from("mollie-classic", refused).risks(), @"routes.hooks.when_in_flight: a copy is refused, and when it comes again, it runs again");
}

/// C48: a handshake that is not signed must not be a way around the signature.
#[test]
fn an_unsigned_handshake_that_an_event_could_wear_is_a_risk() {
    let own = |handshake: &str| {
        let table = "[providers.acme]\nsignature = { scheme = \"hmac\", header = \"x-acme\" }\n";
        from("acme", &format!("{WITH_SECRET}{table}handshakes = [{{ {handshake} }}]\n")).risks()
    };
    for open in ["json = { type = \"ping\" }", "header = { x-event = \"ping\" }"] {
        assert_eq!(
            own(&format!("{open}, signed = false")),
            "routes.hooks.provider: what looks like the handshake `handshake` is forwarded unverified, \
             whatever else is in it\n"
        );
        assert_eq!(own(open), "");
    }
    for exact in [
        "form = { check = \"1\" }, signed = false",
        "query = { token = \"*\" }, empty_body = true, signed = false",
        "query = { challenge = \"*\" }, method = \"GET\", signed = false",
    ] {
        assert_eq!(own(exact), "", "{exact}");
    }
}

/// What a preset says itself is no risk, or nobody would look at risks.
#[test]
fn no_preset_is_a_risk_by_itself() {
    for preset in onceward::provider::presets() {
        let unchecked = from(preset.name, "verify = false\n").config().unwrap().risks();
        let others = unchecked.iter().filter(|risk| risk.key.to_string() != "routes.hooks.verify");
        assert_eq!(others.collect::<Vec<_>>(), Vec::<&Risk>::new(), "{}", preset.name);
    }
}
